/**
 * The thread of one signing key. It gets the key's file as its data, says what came of that, and then signs what it is
 * sent. The unlocked key is here alone.
 *
 * Why a thread, as measured on a busy machine of two cores (AMD EPYC), in processor time of the event loop: the library
 * leaves RSA itself to WebCrypto, beside the loop, so RSA-4096 over 4 KiB takes 0.9 to 2 ms of it there and 0.4 to 0.8
 * when the thread does it. But 8 MiB, as long as a config may be, take 15 to 22 ms there and 5 to 12 here, and unlocking
 * a key with gpg's 65 MB of hashing takes 66 ms and none here.
 */

import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../lib/errors.ts";
import { FileError } from "../lib/watched-files.ts";
import { type DetachedSignature, signDetached } from "./detached.ts";
import { type KeyInfo, type KeyMaterial, readSigningKey, type SigningKey } from "./signing-key.ts";

/** What the thread is started with. */
export interface KeyOrder extends KeyMaterial {
  /** Of the wall clock, Unix milliseconds. */
  readonly nowMs: number;
}

/** Said once, first. */
export type KeyReport =
  | { readonly kind: "ready"; readonly info: KeyInfo }
  /** `problem` follows the file's name and a colon. */
  | { readonly kind: "unusable"; readonly problem: string };

/** What to sign, when. */
export interface SignOrder {
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly nowMs: number;
}

/** The answer to each order; undefined when it cannot be signed. */
export interface SignAnswer {
  readonly id: number;
  readonly signature: DetachedSignature | undefined;
}

/**
 * Signatures made at a time. WebCrypto's own threads are four for the whole process, and files are read by the same:
 * two are left to those.
 */
const laneCount = 2;

const port = parentPort;
assert(port !== null, "A signing key is used in a worker thread");
const order: KeyOrder = workerData;
const key = await open(order);
if (key === undefined) port.close();
else serve(key);

async function open({ nowMs, ...material }: KeyOrder): Promise<SigningKey | undefined> {
  try {
    const opened = await readSigningKey(material, nowMs);
    await tryOut(opened, nowMs);
    report({ kind: "ready", info: opened.info });
    return opened;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    report({ kind: "unusable", problem: error.message });
    return undefined;
  }
}

/** Whatever else may be wrong with a key shows here. */
async function tryOut(opened: SigningKey, nowMs: number): Promise<void> {
  try {
    await signDetached(opened, new Uint8Array(1), nowMs);
  } catch (error) {
    throw new FileError("it does not sign", { cause: error });
  }
}

function report(message: KeyReport): void {
  port?.postMessage(message);
}

function serve(opened: SigningKey): void {
  const lanes = Array.from({ length: laneCount }, () => Promise.resolve());
  port?.on("message", (next: SignOrder) => {
    const lane = next.id % laneCount;
    lanes[lane] = (lanes[lane] ?? Promise.resolve()).then(() => answer(opened, next));
  });
}

async function answer(opened: SigningKey, { id, bytes, nowMs }: SignOrder): Promise<void> {
  const signature = await signDetached(opened, bytes, nowMs).catch(() => undefined);
  const message: SignAnswer = { id, signature };
  port?.postMessage(message);
}
