/** How often each part gives a sign of life, so that no healthy part ever looks stale. */

export interface SignsOfLife {
  /** The longest time between two looks at a directory. */
  readonly rescanMs: number;
  /** How long the watches of a cluster may be silent before the API server is asked. */
  readonly proveMs: number;
  /** How often followers get a heartbeat. */
  readonly beatMs: number;
}

/** By themselves: a look costs the status of every file, the others next to nothing. */
const preset: SignsOfLife = { rescanMs: 30_000, proveMs: 15_000, beatMs: 10_000 };

/** @param maxStalenessMs what `--max-staleness` says, 0 for no limit. Their sum stays well below it. */
export function signsOfLife(maxStalenessMs: number): SignsOfLife {
  if (maxStalenessMs === 0) return preset;
  return {
    rescanMs: Math.min(preset.rescanMs, maxStalenessMs / 2),
    proveMs: Math.min(preset.proveMs, maxStalenessMs / 4),
    beatMs: Math.min(preset.beatMs, maxStalenessMs / 6),
  };
}
