/**
 * The main thread's side of one signing key. A worker thread signs. It gets only a few orders at a time, so that the
 * queue decides on turns as late as possible (`signing-queue.ts`).
 *
 * If the thread dies, the requests whose orders it has are refused, and the next order starts another thread. If that
 * thread does not start, all waiting requests are refused.
 */

import { Worker } from "node:worker_threads";
import type { Clock } from "../../lib/clock.ts";
import { FileError } from "../../lib/files/watched-files.ts";
import { threadLimits } from "../../lib/memory-limit.ts";
import type { DetachedSignature } from "./detached.ts";
import type { KeyOrder, KeyReport, SignAnswer, SignOrder } from "./sign-worker.ts";
import { SigningError } from "./signing-error.ts";
import type { KeyInfo, KeyMaterial } from "./signing-key.ts";
import { type QueuePlace, type SignatureWish, SigningQueue } from "./signing-queue.ts";

interface KeyThreadOptions {
  readonly material: KeyMaterial;
  readonly clock: Pick<Clock, "nowMs">;
  /** The thread's program; `sign-worker` unless given. */
  readonly worker?: URL;
}

/**
 * The most orders that the thread has at a time. The thread makes two signatures at a time. Two more orders wait in the
 * thread, so that it is never idle.
 */
const maxAtWork = 4;

const nobody: SignatureWish = { name: "", isShared: false, client: undefined };

// Node runs the sources as they are, by type stripping. A build contains the same file compiled.
const workerUrl = new URL(`./sign-worker${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

interface WaitingSignature {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly promise: Promise<DetachedSignature>;
  readonly resolve: (signature: DetachedSignature) => void;
  readonly reject: (error: SigningError) => void;
}

export class KeyThread {
  readonly info: KeyInfo;
  readonly #options: KeyThreadOptions;
  /** When the key was checked. No signature has an earlier date, even if the clock steps back. */
  readonly #openedAtMs: number;
  readonly #queue = new SigningQueue<WaitingSignature>();
  /** All signatures that requests wait for, including those that the thread is making. */
  readonly #waiting = new Set<WaitingSignature>();
  readonly #atWork = new Map<number, QueuePlace<WaitingSignature>>();
  #lastId = 0;
  /** Undefined after the thread died, until the next order. */
  #worker: Promise<Worker> | undefined;
  #isStopped = false;

  private constructor(options: KeyThreadOptions, openedAtMs: number, { worker, info }: OpenedKey) {
    this.info = info;
    this.#options = options;
    this.#openedAtMs = openedAtMs;
    this.#worker = Promise.resolve(this.#adopt(worker));
  }

  /**
   * Starts a thread, which reads the key.
   * @throws {FileError} if no key of the file can sign.
   */
  static async start(options: KeyThreadOptions): Promise<KeyThread> {
    const nowMs = options.clock.nowMs();
    return new KeyThread(options, nowMs, await openKey(options, nowMs));
  }

  /**
   * Signs bytes when the request's turn has come. The bytes are transferred to the thread: the caller must not use them
   * any more.
   * @throws {SigningError} busy or failed.
   */
  async sign(bytes: Uint8Array<ArrayBuffer>, wish = nobody): Promise<DetachedSignature> {
    if (this.#isStopped) throw new SigningError("failed");
    const waiting: WaitingSignature = { bytes, ...Promise.withResolvers<DetachedSignature>() };
    this.#queue.enter(waiting, bytes.length, wish);
    this.#waiting.add(waiting);
    this.#pump();
    return await waiting.promise;
  }

  /**
   * Notes that another client asks for a waiting signature of this name. The signature is made when the first of its
   * clients has its turn.
   */
  join(wish: SignatureWish): void {
    this.#queue.join(wish);
  }

  /** Waits until all requested signatures are made, then ends the thread. */
  async retire(): Promise<void> {
    await Promise.allSettled([...this.#waiting].map(({ promise }) => promise));
    await this.stop();
  }

  /** Ends the thread and refuses all waiting requests. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#refuseQueued(new SigningError("failed"));
    const worker = await this.#worker?.catch(() => undefined);
    await worker?.terminate();
  }

  #nowMs(): number {
    return Math.max(this.#options.clock.nowMs(), this.#openedAtMs);
  }

  #pump(): void {
    while (this.#atWork.size < maxAtWork) {
      const place = this.#queue.next();
      if (place === undefined) return;
      const id = ++this.#lastId;
      this.#atWork.set(id, place);
      void this.#send({ id, bytes: place.order.bytes, nowMs: this.#nowMs() });
    }
  }

  async #send(order: SignOrder & { readonly bytes: Uint8Array<ArrayBuffer> }): Promise<void> {
    try {
      this.#worker ??= openKey(this.#options, this.#nowMs()).then(({ worker }) => this.#adopt(worker));
      (await this.#worker).postMessage(order, [order.bytes.buffer]);
    } catch (cause) {
      this.#worker = undefined;
      const failed = new SigningError("failed", { cause });
      // Without this, each queued order would wait again for a thread that does not start.
      this.#refuseQueued(failed);
      this.#end(order.id, failed);
    }
  }

  #adopt(worker: Worker): Worker {
    worker.on("message", ({ id, signature }: SignAnswer) => this.#end(id, signature ?? new SigningError("failed")));
    worker.once("exit", () => {
      this.#worker = undefined;
      const lost = [...this.#atWork.keys()];
      for (const id of lost) this.#end(id, new SigningError("failed"));
    });
    return worker;
  }

  #refuseQueued(error: SigningError): void {
    for (let place = this.#queue.next(); place !== undefined; place = this.#queue.next()) this.#settle(place, error);
  }

  #end(id: number, outcome: DetachedSignature | SigningError): void {
    const place = this.#atWork.get(id);
    if (place === undefined) return;
    this.#atWork.delete(id);
    this.#settle(place, outcome);
    this.#pump();
  }

  #settle(place: QueuePlace<WaitingSignature>, outcome: DetachedSignature | SigningError): void {
    this.#queue.leave(place);
    this.#waiting.delete(place.order);
    if (outcome instanceof SigningError) place.order.reject(outcome);
    else place.order.resolve(outcome);
  }
}

interface OpenedKey {
  readonly worker: Worker;
  readonly info: KeyInfo;
}

// The longest config has 8 MiB, so this is enough. At this limit, V8 ends the thread, not the process.
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

/** Starts a thread and waits for its report. */
function openKey({ material, worker: url = workerUrl }: KeyThreadOptions, nowMs: number): Promise<OpenedKey> {
  const order: KeyOrder = { ...material, nowMs };
  const worker = new Worker(url, { workerData: order, resourceLimits: threadLimits(resourceLimits) });
  return new Promise((resolve, reject) => {
    let cause: unknown;
    // An unhandled error would end the process. The `exit` event follows, and its listeners refuse the waiting
    // requests.
    worker.on("error", (error) => {
      cause = error;
    });
    const died = () => reject(new FileError("the thread that reads it ended at once", { cause }));
    worker.once("exit", died);
    worker.once("message", (report: KeyReport) => {
      worker.off("exit", died);
      if (report.kind === "ready") resolve({ worker, info: report.info });
      else reject(new FileError(report.problem));
    });
  });
}
