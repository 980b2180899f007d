/**
 * Finds machines that do not finish booting: they boot repeatedly, or wait for long. Each request updates a few numbers
 * of its machine, so that counting such machines is quick.
 */

import { isScriptGiven } from "./boot-rule.ts";
import type { SeenRequest } from "./request.ts";

/** Times are by the monotonic clock. */
export interface BootProgress {
  /** A score of recent boots at `lastBootMs`. Each boot adds one, and each half hour since then takes one away. */
  boots: number;
  lastBootMs: number;
  /** Since when the machine gets only 5xx; undefined if its last answer was another one. */
  refusedSinceMs: number | undefined;
  /** Of the newest request. */
  lastStepMs: number;
}

/** The part of a request that matters for progress. */
type ProgressStep = Pick<SeenRequest, "startedMs" | "endpoint" | "isHead" | "status">;

/** Requests for scripts within this time count as one boot, because firmware may ask several times. */
const bootMs = 60_000;
/** After this time one boot is forgotten. */
const forgottenMs = 30 * 60_000;
/** A score above this means a loop. An installation takes only two or three boots. */
const tooManyBoots = 4;
/** A longer pause ends the wait: a waiting machine asks every few seconds, or restarts and asks again. */
const gapMs = 10 * 60_000;
/** A machine that gets only 5xx for this long does not finish booting by itself. */
const longMs = 30 * 60_000;

/** Returns the progress of a machine that was not seen before. */
export function newProgress(): BootProgress {
  return { boots: 0, lastBootMs: Number.NEGATIVE_INFINITY, refusedSinceMs: undefined, lastStepMs: 0 };
}

/** Updates a machine's progress with a request. Those that followers answered may come late. */
export function noteStep(progress: BootProgress, step: ProgressStep): void {
  const { startedMs, status } = step;
  const { refusedSinceMs, lastStepMs } = progress;
  const isLate = startedMs < lastStepMs;
  if (!isLate) progress.lastStepMs = startedMs;
  if (status >= 500) {
    if (isLate) return;
    if (refusedSinceMs === undefined || startedMs - lastStepMs > gapMs) progress.refusedSinceMs = startedMs;
    return;
  }
  // After a late answer, only the newest refusal is known to be one.
  if (!isLate) progress.refusedSinceMs = undefined;
  else if (refusedSinceMs !== undefined && refusedSinceMs < startedMs) progress.refusedSinceMs = lastStepMs;
  if (!isScriptGiven(step) || startedMs - progress.lastBootMs < bootMs) return;
  progress.boots = bootsLeft(progress, startedMs) + 1;
  progress.lastBootMs = startedMs;
}

/** True for a machine that boots too often, such as five times in half an hour or six times in an hour. */
export function isLooping(progress: BootProgress, nowMs: number): boolean {
  return bootsLeft(progress, nowMs) > tooManyBoots;
}

/** True for a machine that got only 5xx for half an hour, and still asks. */
export function isWaiting({ refusedSinceMs, lastStepMs }: BootProgress, nowMs: number): boolean {
  return refusedSinceMs !== undefined && lastStepMs - refusedSinceMs >= longMs && nowMs - lastStepMs <= gapMs;
}

function bootsLeft({ boots, lastBootMs }: BootProgress, nowMs: number): number {
  return boots === 0 ? 0 : Math.max(0, boots - (nowMs - lastBootMs) / forgottenMs);
}
