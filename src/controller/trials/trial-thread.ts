/** The main thread's side of trials. A job over which its thread died, or that takes too long, has no answer. */

import type { Clock } from "../../lib/clock.ts";
import { JobThread } from "../../lib/job-thread.ts";
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

// What may be rendered is limited, so this is for what nobody thought of. It is the longest that one Group holds up others.
const limitMs = 60_000;

// Changes come in bursts.
const idleMs = 10_000;

// Type stripping runs the sources as they are; a build has the same file compiled.
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
