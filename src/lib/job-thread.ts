/**
 * A worker thread that does one job at a time. It starts with the first job, ends after some time without one, and is
 * replaced when it dies or takes too long. The job that it was doing then has no answer.
 */

import { Worker, type WorkerOptions } from "node:worker_threads";
import type { Clock } from "./clock.ts";

export interface JobThreadOptions {
  /** The thread's program: it answers each message with one. */
  readonly worker: URL;
  /** Passed to the thread at its start. */
  readonly workerData: unknown;
  readonly resourceLimits: NonNullable<WorkerOptions["resourceLimits"]>;
  /** Longest time for one job; undefined: any. */
  readonly limitMs?: number;
  /** The thread takes about 30 MiB: it ends after this long without a job. */
  readonly idleMs: number;
  readonly clock: Clock;
}

/** The result of a job; `lost` when the thread died during it, or `stop` was called. */
export type JobEnd<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "late" | "lost" };

export class JobThread<Job, Answer> {
  readonly #options: JobThreadOptions;
  readonly #stopping = new AbortController();
  #worker: Worker | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  /** Changes with each job that begins or ends. */
  #activity = 0;
  #isBusy = false;
  #isWatched = false;

  constructor(options: JobThreadOptions) {
    this.#options = options;
  }

  /** Does a job; the previous one must have ended. */
  async run(job: Job): Promise<JobEnd<Answer>> {
    if (this.#stopping.signal.aborted) return { kind: "lost" };
    this.#setBusy(true);
    this.#worker ??= this.#startWorker();
    const end = await this.#ask(this.#worker, job);
    if (end.kind === "late") this.#end();
    this.#setBusy(false);
    if (!this.#isWatched) void this.#endWhenIdle();
    return end;
  }

  /** Abandons the present job. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#end();
    await this.#ended;
  }

  #setBusy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.#activity++;
  }

  async #endWhenIdle(): Promise<void> {
    const { clock, idleMs } = this.#options;
    this.#isWatched = true;
    for (let before = -1; before !== this.#activity || this.#isBusy; ) {
      before = this.#activity;
      await clock.sleep(idleMs, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
    }
    this.#isWatched = false;
    this.#end();
  }

  #end(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker !== undefined) this.#ended = Promise.all([this.#ended, worker.terminate()]);
  }

  #startWorker(): Worker {
    const { worker: url, workerData, resourceLimits } = this.#options;
    const worker = new Worker(url, { workerData, resourceLimits });
    // `exit` notifies whoever waits; an unhandled error would end the process. Its text may quote a template.
    worker.on("error", () => {});
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }

  async #ask(worker: Worker, job: Job): Promise<JobEnd<Answer>> {
    const settled = new AbortController();
    const ends: Promise<JobEnd<Answer>>[] = [answerOf(worker, job, settled)];
    const { limitMs, clock } = this.#options;
    if (limitMs !== undefined) ends.push(clock.sleep(limitMs, settled.signal).then(() => ({ kind: "late" })));
    const end = await Promise.race(ends);
    settled.abort();
    return end;
  }
}

/** One job's answer. @param settled is aborted with it, so that nothing waits any more. */
function answerOf<Job, Answer>(worker: Worker, job: Job, settled: AbortController): Promise<JobEnd<Answer>> {
  return new Promise((resolve) => {
    const died = () => resolve({ kind: "lost" });
    const answered = (answer: Answer) => resolve({ kind: "answered", answer });
    worker.once("exit", died).once("message", answered);
    settled.signal.addEventListener("abort", () => worker.off("exit", died).off("message", answered));
    worker.postMessage(job);
  });
}
