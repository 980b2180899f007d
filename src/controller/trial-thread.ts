/**
 * The main thread's side of trials: starts the worker thread with the first job, ends it when there was none for a while,
 * and starts a new one when it dies. A job over which it died has no answer, and that is all: a trial is advice.
 */

import { Worker } from "node:worker_threads";
import type { Clock } from "../lib/clock.ts";
import type { Trial, TrialJob } from "./trial.ts";

export interface TrialRunner {
  /** Tries the Groups of a job, one job at a time; undefined when that was not possible. */
  run(job: TrialJob): Promise<readonly Trial[] | undefined>;
  /** Gives up what is under way; idempotent. */
  stop(): Promise<void>;
}

export interface TrialThreadOptions {
  /** Where machines reach davit, such as `http://192.0.2.1:8080`. */
  readonly davitUrl: string;
  readonly clock: Clock;
  /** What the thread runs. */
  readonly worker?: URL;
}

// Many times what the largest Profile and result take; V8 ends the thread there, not the process. A small young
// generation takes a little more time and much less memory.
const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8 };

// A thread takes some 30 MiB, and changes come in bursts.
const idleMs = 10_000;

// Type stripping runs the sources as they are; a build has the same file compiled.
const workerUrl = new URL(`./trial-worker${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

export class TrialThread implements TrialRunner {
  readonly #options: TrialThreadOptions;
  readonly #stopping = new AbortController();
  #worker: Worker | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  /** Changes with each job that begins or ends. */
  #activity = 0;
  #isBusy = false;
  #isWatched = false;

  constructor(options: TrialThreadOptions) {
    this.#options = options;
  }

  async run(job: TrialJob): Promise<readonly Trial[] | undefined> {
    if (this.#stopping.signal.aborted) return undefined;
    this.#setBusy(true);
    this.#worker ??= this.#startWorker();
    const trials = await ask(this.#worker, job);
    this.#setBusy(false);
    if (!this.#isWatched) void this.#endWhenIdle();
    return trials;
  }

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
    this.#isWatched = true;
    for (let before = -1; before !== this.#activity || this.#isBusy; ) {
      before = this.#activity;
      await this.#options.clock.sleep(idleMs, this.#stopping.signal);
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
    const { davitUrl, worker: url = workerUrl } = this.#options;
    const worker = new Worker(url, { workerData: davitUrl, resourceLimits });
    // `exit` tells whoever waits; an error that nobody listens to would end the process. Its text may quote a template.
    worker.on("error", () => {});
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }
}

/** One job's answer; undefined when the thread died over it. */
function ask(worker: Worker, job: TrialJob): Promise<readonly Trial[] | undefined> {
  return new Promise((resolve) => {
    const died = () => resolve(undefined);
    worker.once("exit", died);
    worker.once("message", (trials: readonly Trial[]) => {
      worker.off("exit", died);
      resolve(trials);
    });
    worker.postMessage(job);
  });
}
