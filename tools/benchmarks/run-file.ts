/** The files of bench/results/. */

import type { Figure } from "./figures.ts";

/** The file of a run. */
export interface Run {
  readonly name: string;
  /** The last commit that changed src/; with `+` behind it, if the working tree has changes of src/. */
  readonly commit: string;
  /** When the run began, ISO 8601. */
  readonly at: string;
  readonly seconds: number;
  readonly node: string;
  readonly machine: string;
  /** Versions of the peers, by name. */
  readonly peers: Readonly<Record<string, string>>;
  /** The load average of a minute. Before the run, it has other work and the runs just before. */
  readonly load: { readonly before: number; readonly after: number };
  /** Rounds, connections and the like. */
  readonly settings: Readonly<Record<string, number>>;
  readonly figures: readonly Figure[];
}

/** In a few words. */
export function settingsOf({ settings, peers }: Pick<Run, "settings" | "peers">): string {
  const numbers = Object.entries(settings).map(([what, value]) => `${what}: ${value.toLocaleString("en")}`);
  return [...numbers, ...Object.entries(peers).map(([peer, version]) => `${peer} ${version}`)].join(", ");
}
