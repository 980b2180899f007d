/** Finds a short sequence that shows what a long one showed. */

import { systemClock } from "../../src/lib/clock.ts";

export interface ShrinkOptions<Each> {
  /** True when these show it. */
  readonly shows: (some: readonly Each[]) => Promise<boolean>;
  /** No further attempt begins after this time. */
  readonly limitMs: number;
}

/** Leaves out what is not needed: halves first, then ever smaller parts, down to single ones. */
export async function shrink<Each>(
  all: readonly Each[],
  { shows, limitMs }: ShrinkOptions<Each>,
): Promise<readonly Each[]> {
  const endsAtMs = systemClock.monotonicMs() + limitMs;
  let kept = all;
  for (let size = Math.ceil(all.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = kept.length - size; from > -size; from -= size) {
      if (systemClock.monotonicMs() > endsAtMs) return kept;
      const fewer = [...kept.slice(0, Math.max(0, from)), ...kept.slice(Math.max(0, from + size))];
      if (fewer.length > 0 && fewer.length < kept.length && (await shows(fewer))) kept = fewer;
    }
  }
  return kept;
}
