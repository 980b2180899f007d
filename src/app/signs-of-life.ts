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

/** The defaults: a scan reads the status of every file, the others cost next to nothing. */
const preset: SignsOfLife = { rescanMs: 30_000, proveMs: 15_000, beatMs: heartbeatMs };

/** @param maxStalenessMs the value of `--max-staleness`, 0 for no limit. The sum of all three stays well below it. */
export function signsOfLife(maxStalenessMs: number): SignsOfLife {
  if (maxStalenessMs === 0) return preset;
  return {
    rescanMs: Math.min(preset.rescanMs, maxStalenessMs / 2),
    proveMs: Math.min(preset.proveMs, maxStalenessMs / 4),
    beatMs: Math.min(preset.beatMs, maxStalenessMs / 6),
  };
}
