/** The main thread's side of trials. A job has no answer if its thread died or it took too long. */

import type { Clock } from "../../lib/clock.ts";
import { JobThread } from "../../lib/job-thread.ts";
import type { Trial, TrialJob } from "./trial.ts";

export interface TrialRunner {
  /** Tries the Groups of a job, one job at a time; undefined when that was not possible. */
  run(job: TrialJob): Promise<readonly Trial[] | undefined>;
  /** Gives up the running job; idempotent. */
  stop(): Promise<void>;
}

export interface TrialThreadOptions {
  /** Where machines reach davit, such as `http://192.0.2.1:8080`. */
  readonly davitUrl: string;
  readonly clock: Clock;
  /** What the thread runs. */
  readonly worker?: URL;
}

// Many times what the largest Profile and result take. Beyond it, V8 ends the thread, not the process. A small young
// generation takes a little more time and much less memory.
const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8 };

// Limits bound what may be rendered, so this guards against the unforeseen. One Group delays others no longer than
// this.
const limitMs = 60_000;

// Changes come in bursts.
const idleMs = 10_000;

// Node's type stripping runs the sources as they are; a build has the same file compiled.
const workerUrl = new URL(`./trial-worker${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

export class TrialThread implements TrialRunner {
  readonly #thread: JobThread<TrialJob, readonly Trial[]>;

  constructor({ davitUrl, clock, worker = workerUrl }: TrialThreadOptions) {
    this.#thread = new JobThread({ worker, workerData: davitUrl, resourceLimits, limitMs, idleMs, clock });
  }

  async run(job: TrialJob): Promise<readonly Trial[] | undefined> {
    const end = await this.#thread.run(job);
    return end.kind === "answered" ? end.answer : undefined;
  }

  stop(): Promise<void> {
    return this.#thread.stop();
  }
}
