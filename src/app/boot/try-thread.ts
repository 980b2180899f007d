/** Tries manifests in another thread, one at a time. The present objects are copied for it in slices. */

import type { TriedManifest, TryOutcome } from "../../http/console/pages/context.ts";
import type { Clock } from "../../lib/clock.ts";
import { JobThread, workerBeside } from "../../lib/job-thread.ts";
import { jobLimits } from "../../lib/memory-limit.ts";
import { nextTurn, Slices } from "../../lib/slices.ts";
import type { ObjectKind, SourceView } from "../../model/objects/source.ts";
import type { TryJob } from "./try-manifest.ts";

/** What a manifest is tried over. */
export interface TryGround extends Pick<TryJob, "adminNamespace" | "rendering"> {
  readonly view: SourceView;
}

interface TryThreadOptions {
  readonly clock: Clock;
  readonly limitMs?: number;
  /** Ends the thread. */
  readonly signal: AbortSignal;
}

const resourceLimits = jobLimits.attempt;
/** 20,000 Groups take some seconds. */
const presetLimitMs = 30_000;
const idleMs = 30_000;
/** In characters of all objects. In the thread, objects become ten times as large, and its memory is limited. */
const maxLength = 16 * 1024 * 1024;
/** So many characters take about a millisecond. */
const sliceLength = 200_000;

const kinds: readonly ObjectKind[] = ["Profile", "Group", "Machine", "ConfigMap", "Secret"];

export class TryThread {
  readonly #thread: JobThread<TryJob, TriedManifest>;
  #isBusy = false;

  constructor({ clock, signal, limitMs = presetLimitMs }: TryThreadOptions) {
    const worker = workerBeside(import.meta.url, "try-worker");
    this.#thread = new JobThread({ worker, resourceLimits, limitMs, idleMs, clock });
    signal.addEventListener("abort", () => void this.#thread.stop(), { once: true });
  }

  async try({ view, ...ground }: TryGround, question: Pick<TryJob, "manifest" | "rawQuery">): Promise<TryOutcome> {
    if (this.#isBusy) return { kind: "busy" };
    this.#isBusy = true;
    try {
      const objects = await textsOf(view);
      if (objects === undefined) return { kind: "lost" };
      const end = await this.#thread.run({ ...ground, ...question, objects });
      return end.kind === "answered" ? end.answer : { kind: end.kind };
    } finally {
      this.#isBusy = false;
    }
  }
}

/** @returns undefined if the thread has no room for them. */
async function textsOf(view: SourceView): Promise<readonly string[] | undefined> {
  const slices = new Slices(sliceLength);
  const texts: string[] = [];
  let length = 0;
  for (const kind of kinds) {
    for (const object of [...view.all(kind)]) {
      const text = JSON.stringify(object);
      texts.push(text);
      length += text.length;
      if (length > maxLength) return undefined;
      if (slices.isOver(text.length)) await nextTurn();
    }
  }
  return texts;
}
