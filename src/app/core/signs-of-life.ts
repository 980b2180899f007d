/** Sets how often each part proves that its data is current: often enough that no healthy part looks stale. */

import { heartbeatMs } from "../../model/follow-line.ts";

interface SignsOfLife {
  /** The longest time between two scans of a directory. */
  readonly rescanMs: number;
  /** How often davit asks the API server for a proof. */
  readonly proveMs: number;
  /** How often followers get a heartbeat. */
  readonly beatMs: number;
  /** davit believes an older state than before once the API server has shown it for this long. */
  readonly pastMs: number;
}

/** The defaults. Scans are rare because they read the status of every file. */
const preset: SignsOfLife = { rescanMs: 30_000, proveMs: 15_000, beatMs: heartbeatMs, pastMs: 120_000 };

/**
 * Returns the defaults, or shorter times if the limit needs them. A follower's proof can be as old as a source's
 * interval and a heartbeat together, which is less than the limit. The source's interval is `rescanMs` for a directory.
 * For a cluster it is up to one and a half `proveMs`, or three if each second question needs a list.
 * @param installMaxSourceAgeMs the value of `--install-max-source-age`; 0 for no limit.
 */
export function signsOfLife(installMaxSourceAgeMs: number): SignsOfLife {
  if (installMaxSourceAgeMs === 0) return preset;
  return {
    rescanMs: Math.min(preset.rescanMs, installMaxSourceAgeMs / 2),
    proveMs: Math.min(preset.proveMs, installMaxSourceAgeMs / 4),
    beatMs: Math.min(preset.beatMs, installMaxSourceAgeMs / 6),
    // By then every Install has waited for `installMaxSourceAgeMs`, and somebody may have noticed.
    pastMs: installMaxSourceAgeMs * 2,
  };
}
