/** The form of the files in bench/results/. */

import type { Figure } from "./figures.ts";

/** A run of a benchmark. Each has a file. */
export interface Run {
  readonly name: string;
  /** The last commit that changed src/, with `+` if the working tree has further changes there. */
  readonly commit: string;
  /** When the run began, ISO 8601. */
  readonly at: string;
  readonly seconds: number;
  readonly node: string;
  readonly machine: string;
  /** Versions of the peers, by name. */
  readonly peers: Readonly<Record<string, string>>;
  /** The load average of the last minute. `before` includes other work and earlier runs. */
  readonly load: { readonly before: number; readonly after: number };
  /** Such as rounds and connections. */
  readonly settings: Readonly<Record<string, number>>;
  readonly figures: readonly Figure[];
}

/** Describes the settings and the versions of the peers in a few words. */
export function settingsOf({ settings, peers }: Pick<Run, "settings" | "peers">): string {
  const numbers = Object.entries(settings).map(([what, value]) => `${what}: ${value.toLocaleString("en")}`);
  return [...numbers, ...Object.entries(peers).map(([peer, version]) => `${peer} ${version}`)].join(", ");
}
