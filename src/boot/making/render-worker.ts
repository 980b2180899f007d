/**
 * The worker thread for slow configs. It does one job after the other, each with the full budget of a render. The main
 * thread ends it if a job takes too long.
 */

import { hash } from "node:crypto";
import { answerJobs } from "../../lib/job-thread.ts";
import { parseJsonObject } from "../../model/json.ts";
import { RenderError } from "../../render/core/render-error.ts";
import { RenderBudget } from "../../render/template/limits.ts";
import { RequestReads } from "../../render/template/request-reads.ts";
import { type BootJob, BootMaker } from "./boot-maker.ts";
import type { RenderAnswer, SentJob } from "./render-thread.ts";

const maker = new BootMaker({ sha256: (text) => hash("sha256", text, "hex") });
answerJobs(answer);

function answer({ job, metadataText, defaultsText, asked }: SentJob): RenderAnswer {
  const group = { ...job.group, metadata: parseJsonObject(metadataText) ?? {} };
  const whole: BootJob = { ...job, group, defaults: parseJsonObject(defaultsText) };
  try {
    const reads = new RequestReads(() => Atomics.store(asked, 0, 1));
    return { made: maker.make(whole, new RenderBudget(), reads) };
  } catch (error) {
    if (!(error instanceof RenderError)) throw error;
    const { reason, position, variable, field } = error;
    return { refused: { reason, position, variable, field } };
  }
}
