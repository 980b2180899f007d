/**
 * Machines that do not finish booting: they boot repeatedly, or wait for long. A machine's requests update three
 * numbers, so that counting is quick.
 */

/** Times are by the monotonic clock. */
export interface BootProgress {
  /** Recent boots: plus one for each, minus one for each half an hour. */
  boots: number;
  lastBootMs: number;
  /** The time since which it gets only 5xx; undefined while it gets other answers. */
  refusedSinceMs: number | undefined;
  lastRefusedMs: number;
}

/** The part of a request that matters for progress. */
export interface ProgressStep {
  readonly startedMs: number;
  readonly endpoint: string;
  readonly isHead: boolean;
  readonly status: number;
}

/** The scripts that boot a machine. */
const scripts: ReadonlySet<string> = new Set(["ipxe", "grub"]);
/** Firmware may ask for a script several times within a boot. */
const bootMs = 60_000;
const forgottenMs = 30 * 60_000;
/** An installation takes two or three boots. */
const tooManyBoots = 4;
/** A waiting machine asks every few seconds, or is restarted by its firmware or a person. */
const gapMs = 10 * 60_000;
const longMs = 30 * 60_000;

/** For a machine that was not seen before. */
export function newProgress(): BootProgress {
  return { boots: 0, lastBootMs: Number.NEGATIVE_INFINITY, refusedSinceMs: undefined, lastRefusedMs: 0 };
}

/** Counts a request of the machine. */
export function noteStep(progress: BootProgress, { startedMs, endpoint, isHead, status }: ProgressStep): void {
  if (status >= 500) {
    if (progress.refusedSinceMs === undefined || startedMs - progress.lastRefusedMs > gapMs) {
      progress.refusedSinceMs = startedMs;
    }
    progress.lastRefusedMs = startedMs;
    return;
  }
  progress.refusedSinceMs = undefined;
  if (status >= 400 || isHead || !scripts.has(endpoint) || startedMs - progress.lastBootMs < bootMs) return;
  progress.boots = bootsLeft(progress, startedMs) + 1;
  progress.lastBootMs = startedMs;
}

/** True for a machine that got its boot script five times or more within a short time, two hours at most. */
export function isLooping(progress: BootProgress, nowMs: number): boolean {
  return bootsLeft(progress, nowMs) > tooManyBoots;
}

/** True for a machine that has been refused with 5xx for half an hour, and still asks. */
export function isWaiting({ refusedSinceMs, lastRefusedMs }: BootProgress, nowMs: number): boolean {
  return refusedSinceMs !== undefined && lastRefusedMs - refusedSinceMs >= longMs && nowMs - lastRefusedMs <= gapMs;
}

function bootsLeft({ boots, lastBootMs }: BootProgress, nowMs: number): number {
  return boots === 0 ? 0 : Math.max(0, boots - (nowMs - lastBootMs) / forgottenMs);
}
