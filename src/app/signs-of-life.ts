/** Sets how often each part proves that its data is current: often enough that no healthy part looks stale. */

import { heartbeatMs } from "../model/follow-line.ts";

export interface SignsOfLife {
  /** The longest time between two scans of a directory. */
  readonly rescanMs: number;
  /** How long a cluster's watches may be silent before davit asks the API server. */
  readonly proveMs: number;
  /** How often followers get a heartbeat. */
  readonly beatMs: number;
}

/** The defaults. Scans are rare because they read the status of every file. The other two cost almost nothing. */
const preset: SignsOfLife = { rescanMs: 30_000, proveMs: 15_000, beatMs: heartbeatMs };

/**
 * Returns the defaults, or shorter times if the limit needs them. A follower's proof can be as old as a source's
 * interval and a heartbeat together. The source's interval is `rescanMs` for a directory, `proveMs` for a cluster.
 * Either of them and `beatMs` add up to at most two thirds of the limit.
 * @param maxStalenessMs the value of `--max-staleness`; 0 for no limit.
 */
export function signsOfLife(maxStalenessMs: number): SignsOfLife {
  if (maxStalenessMs === 0) return preset;
  return {
    rescanMs: Math.min(preset.rescanMs, maxStalenessMs / 2),
    proveMs: Math.min(preset.proveMs, maxStalenessMs / 4),
    beatMs: Math.min(preset.beatMs, maxStalenessMs / 6),
  };
}
