/**
 * The thread of one signing key. It gets the key's file as its data, reports whether the key can sign, and then signs
 * the bytes of each order. Only this thread has the unlocked key.
 *
 * The thread keeps work off the event loop of the main thread. The library leaves only RSA itself to WebCrypto, which
 * works outside the event loop. Processor time of the main event loop, measured on a busy computer of two cores (AMD
 * EPYC):
 *
 * - RSA-4096 over 4 KiB: 0.9 to 2 ms without a thread, 0.4 to 0.8 ms with one.
 * - The longest config, 8 MiB: 15 to 22 ms without a thread, 5 to 12 ms with one.
 * - Unlocking a key with gpg's 65 MB of hashing: 66 ms without a thread, no time with one.
 */

import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../lib/errors.ts";
import { FileError } from "../../lib/files/watched-files.ts";
import { type DetachedSignature, signDetached } from "./detached.ts";
import { type KeyInfo, type KeyMaterial, readSigningKey, type SigningKey } from "./signing-key.ts";

/** The data that the thread gets at its start. */
export interface KeyOrder extends KeyMaterial {
  /** The time of the wall clock, Unix milliseconds. */
  readonly nowMs: number;
}

/** The thread's first message, sent once. */
export type KeyReport =
  | { readonly kind: "ready"; readonly info: KeyInfo }
  /** `problem` is worded to follow the file's name and a colon. */
  | { readonly kind: "unusable"; readonly problem: string };

/** An order to sign bytes, dated `nowMs`. */
export interface SignOrder {
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly nowMs: number;
}

/** The answer to one order. `signature` is undefined if the bytes could not be signed. */
export interface SignAnswer {
  readonly id: number;
  readonly signature: DetachedSignature | undefined;
}

/**
 * How many signatures are made at a time. WebCrypto uses the process's pool of four threads, which also reads files. So
 * two threads remain for files.
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

/** Signs once as a test. This shows faults that reading the key does not show. */
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
