/** Runs trials in another thread. A job has no answer if the thread dies or takes too long. */

import type { Clock } from "../../lib/clock.ts";
import { JobThread } from "../../lib/job-thread.ts";
import { jobLimits } from "../../lib/memory-limit.ts";
import type { Trial, TrialJob } from "./trial.ts";

export interface TrialRunner {
  /** Tries the Groups of a job. The previous job must have ended. @returns undefined if the job has no answer. */
  run(job: TrialJob): Promise<readonly Trial[] | undefined>;
  /** Cancels the current job; idempotent. */
  stop(): Promise<void>;
}

interface TrialThreadOptions {
  /** Where machines reach davit, such as `http://192.0.2.1:8080`. */
  readonly davitUrl: string;
  readonly clock: Clock;
  /** The thread's program. */
  readonly worker?: URL;
}

// Every render has its own limits. This limit is for unforeseen cases: no job delays others longer than this.
const limitMs = 60_000;

// Changes come in bursts, so the thread waits for more jobs before it ends.
const idleMs = 10_000;

// Node's type stripping runs the sources as they are. A build has the same file, compiled.
const workerUrl = new URL(`./trial-worker${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url);

/** Returns a runner whose thread starts with its first job. */
export function trialThread({ davitUrl, clock, worker = workerUrl }: TrialThreadOptions): TrialRunner {
  const options = { worker, workerData: davitUrl, resourceLimits: jobLimits.trial, limitMs, idleMs, clock };
  const thread = new JobThread<TrialJob, readonly Trial[]>(options);
  return {
    run: async (job) => {
      const end = await thread.run(job);
      return end.kind === "answered" ? end.answer : undefined;
    },
    stop: () => thread.stop(),
  };
}
