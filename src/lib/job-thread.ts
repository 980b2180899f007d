/**
 * Runs jobs in a worker thread, one at a time. The thread starts with the first job and ends after some time without a
 * job. If it dies or a job takes too long, the job gets no answer, and the next job gets a new thread.
 */

import { parentPort, Worker } from "node:worker_threads";
import type { Clock } from "./clock.ts";
import { assert } from "./errors.ts";
import { Places } from "./fair-queue.ts";
import { type ThreadLimits, threadLimits } from "./memory-limit.ts";
import type { Soon } from "./soon.ts";

interface JobThreadOptions {
  /** The thread's program. It answers each message with one message. */
  readonly worker: URL;
  /** Passed to the thread at its start. */
  readonly workerData?: unknown;
  /** At this limit, V8 ends the thread, not the process. */
  readonly resourceLimits: ThreadLimits;
  /** The longest time for one job; undefined for no limit. */
  readonly limitMs?: number;
  /** The thread ends after this time without a job, because it needs about 30 MiB. */
  readonly idleMs: number;
  readonly clock: Clock;
}

/** The result of a job: `late` if it took too long, `lost` if the thread died during the job or `stop` was called. */
type JobEnd<Answer> = { readonly kind: "answered"; readonly answer: Answer } | { readonly kind: "late" | "lost" };

export class JobThread<Job, Answer> {
  readonly #options: JobThreadOptions;
  readonly #stopping = new AbortController();
  readonly #turns = new Places(1);
  #worker: Worker | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  /** Changes with each job that begins or ends. */
  #activity = 0;
  #isBusy = false;
  #isWatched = false;

  constructor(options: JobThreadOptions) {
    this.#options = options;
  }

  /** Runs a job when its turn has come. @param names whose job it is, as of `FairQueue.push`. */
  async run(job: Job, names: readonly string[] = []): Promise<JobEnd<Answer>> {
    return await this.#turns.run(names, () => this.#run(job));
  }

  async #run(job: Job): Promise<JobEnd<Answer>> {
    if (this.#stopping.signal.aborted) return { kind: "lost" };
    this.#setBusy(true);
    this.#worker ??= this.#startWorker();
    const end = await this.#ask(this.#worker, job);
    if (end.kind === "late") this.#end();
    this.#setBusy(false);
    if (!this.#isWatched) void this.#endWhenIdle();
    return end;
  }

  /** Ends the thread. A running job is `lost`, and so is each that waits. Idempotent. */
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
    const worker = new Worker(url, { workerData, resourceLimits: threadLimits(resourceLimits) });
    // Without a listener an error would end the process. The event `exit` follows and ends the wait for an answer. The
    // error is not logged, because its text may quote a template.
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

/**
 * Returns the place of a thread's program beside a module. Node runs the sources as they are, by type stripping. A
 * build has the same file compiled.
 * @param module its `import.meta.url`.
 */
export function workerBeside(module: string, name: string): URL {
  return new URL(`./${name}${module.endsWith(".ts") ? ".ts" : ".js"}`, module);
}

/** The program of a thread for jobs: it answers each job. */
export function answerJobs<Job, Answer>(answer: (job: Job) => Soon<Answer>): void {
  const port = parentPort;
  assert(port !== null, "Jobs are done in a worker thread");
  port.on("message", async (job: Job) => port.postMessage(await answer(job)));
}

/** Sends a job and returns its end. @param settled when it aborts, the listeners of this job are removed. */
function answerOf<Job, Answer>(worker: Worker, job: Job, settled: AbortController): Promise<JobEnd<Answer>> {
  return new Promise((resolve) => {
    const died = () => resolve({ kind: "lost" });
    const answered = (answer: Answer) => resolve({ kind: "answered", answer });
    worker.once("exit", died).once("message", answered);
    settled.signal.addEventListener("abort", () => worker.off("exit", died).off("message", answered));
    worker.postMessage(job);
  });
}
