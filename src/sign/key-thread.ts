/**
 * The main thread's side of one signing key: a worker thread that signs, and is started anew should it die. Whoever waits
 * for a thread that dies is refused, not forgotten.
 */

import { Worker } from "node:worker_threads";
import type { Clock } from "../lib/clock.ts";
import { FileProblem } from "../lib/watched-files.ts";
import type { DetachedSignature } from "./detached.ts";
import type { KeyOrder, KeyReport, SignAnswer, SignOrder } from "./sign-worker.ts";
import { SigningError } from "./signing-error.ts";
import type { KeyInfo, KeyMaterial } from "./signing-key.ts";

export interface KeyThreadOptions {
  readonly material: KeyMaterial;
  readonly clock: Pick<Clock, "nowMs">;
  /** What the thread runs. */
  readonly worker?: URL;
}

/** What is signed and waits for it, at most. RSA-4096 makes some 200 a second, and GRUB waits for more than a minute. */
const maxWaiting = 4_096;
const maxWaitingBytes = 64 * 1024 * 1024;

// Type stripping runs the sources as they are; a build has the same file compiled.
const workerUrl = new URL(`./sign-worker${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

interface Waiting {
  readonly sizeBytes: number;
  readonly promise: Promise<DetachedSignature>;
  readonly resolve: (signature: DetachedSignature) => void;
  readonly reject: (error: SigningError) => void;
}

export class KeyThread {
  readonly info: KeyInfo;
  readonly #options: KeyThreadOptions;
  /** No signature is older than the look at the key that found it good: the clock may step back. */
  readonly #openedAtMs: number;
  readonly #waiting = new Map<number, Waiting>();
  #waitingBytes = 0;
  #lastId = 0;
  /** Undefined once the thread died. */
  #worker: Promise<Worker> | undefined;
  #isStopped = false;

  private constructor(options: KeyThreadOptions, openedAtMs: number, { worker, info }: OpenedKey) {
    this.info = info;
    this.#options = options;
    this.#openedAtMs = openedAtMs;
    this.#worker = Promise.resolve(this.#adopt(worker));
  }

  /**
   * Reads a key and starts its thread.
   * @throws {FileProblem} when nothing in it can sign.
   */
  static async start(options: KeyThreadOptions): Promise<KeyThread> {
    const nowMs = options.clock.nowMs();
    return new KeyThread(options, nowMs, await openKey(options, nowMs));
  }

  /**
   * Signs. The bytes are given away: they are the thread's from now on.
   * @throws {SigningError} busy or failed.
   */
  async sign(bytes: Uint8Array<ArrayBuffer>): Promise<DetachedSignature> {
    const { length: sizeBytes } = bytes;
    if (this.#isStopped) throw new SigningError("failed");
    if (this.#waiting.size >= maxWaiting || this.#waitingBytes + sizeBytes > maxWaitingBytes) {
      throw new SigningError("busy");
    }
    const id = ++this.#lastId;
    const waiting: Waiting = { sizeBytes, ...Promise.withResolvers<DetachedSignature>() };
    this.#waiting.set(id, waiting);
    this.#waitingBytes += sizeBytes;
    void this.#send({ id, bytes, nowMs: this.#nowMs() });
    return await waiting.promise;
  }

  /** Lets what waits be signed, then ends the thread. */
  async retire(): Promise<void> {
    await Promise.allSettled([...this.#waiting.values()].map(({ promise }) => promise));
    await this.stop();
  }

  /** Ends the thread; who waits is refused. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const worker = await this.#worker?.catch(() => undefined);
    await worker?.terminate();
  }

  #nowMs(): number {
    return Math.max(this.#options.clock.nowMs(), this.#openedAtMs);
  }

  async #send(order: SignOrder & { readonly bytes: Uint8Array<ArrayBuffer> }): Promise<void> {
    try {
      this.#worker ??= openKey(this.#options, this.#nowMs()).then(({ worker }) => this.#adopt(worker));
      (await this.#worker).postMessage(order, [order.bytes.buffer]);
    } catch (cause) {
      this.#worker = undefined;
      this.#take(order.id)?.reject(new SigningError("failed", { cause }));
    }
  }

  #adopt(worker: Worker): Worker {
    worker.on("message", ({ id, signature }: SignAnswer) => {
      const waiting = this.#take(id);
      if (signature === undefined) waiting?.reject(new SigningError("failed"));
      else waiting?.resolve(signature);
    });
    worker.once("exit", () => {
      this.#worker = undefined;
      for (const id of this.#waiting.keys()) this.#take(id)?.reject(new SigningError("failed"));
    });
    return worker;
  }

  /** Whoever waits under this number, who does so no longer. */
  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(id);
    this.#waitingBytes -= waiting.sizeBytes;
    return waiting;
  }
}

interface OpenedKey {
  readonly worker: Worker;
  readonly info: KeyInfo;
}

/** Starts a thread and waits for its report. */
function openKey({ material, worker: url = workerUrl }: KeyThreadOptions, nowMs: number): Promise<OpenedKey> {
  const order: KeyOrder = { ...material, nowMs };
  const worker = new Worker(url, { workerData: order });
  return new Promise((resolve, reject) => {
    let cause: unknown;
    // Its death is told by `exit`, later to whoever waits for an answer; an error nobody listens to ends the process.
    worker.on("error", (error) => {
      cause = error;
    });
    const died = () => reject(new FileProblem("the thread that reads it ended at once", { cause }));
    worker.once("exit", died);
    worker.once("message", (report: KeyReport) => {
      worker.off("exit", died);
      if (report.kind === "ready") resolve({ worker, info: report.info });
      else reject(new FileProblem(report.problem));
    });
  });
}
