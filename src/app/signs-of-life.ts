/** How often each part gives a sign of life, so that no healthy part ever looks stale. */

import { heartbeatMs } from "../model/follow-line.ts";

export interface SignsOfLife {
  /** The longest time between two scans of a directory. */
  readonly rescanMs: number;
  /** How long a cluster's watches may be silent before davit asks the API server. */
  readonly proveMs: number;
  /** How often followers get a heartbeat. */
  readonly beatMs: number;
}

/** The defaults. A scan reads the status of every file; the other two cost almost nothing. */
const preset: SignsOfLife = { rescanMs: 30_000, proveMs: 15_000, beatMs: heartbeatMs };

/**
 * @param maxStalenessMs the value of `--max-staleness`, 0 for no limit. A directory uses `rescanMs`, a cluster
 * `proveMs`: each of the two, together with `beatMs`, takes at most two thirds of the limit.
 */
export function signsOfLife(maxStalenessMs: number): SignsOfLife {
  if (maxStalenessMs === 0) return preset;
  return {
    rescanMs: Math.min(preset.rescanMs, maxStalenessMs / 2),
    proveMs: Math.min(preset.proveMs, maxStalenessMs / 4),
    beatMs: Math.min(preset.beatMs, maxStalenessMs / 6),
  };
}
