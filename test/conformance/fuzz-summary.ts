/** What a run of the fuzzer did, in numbers. */

import type { DeviationName } from "./fuzz-deviations.ts";

export class FuzzSummary {
  readonly #verbs = new Map<string, number>();
  readonly #statuses = new Map<string, number>();
  readonly #excuses = new Map<string, number>();
  /** Events of watches that were the same in both. */
  events = 0;
  sequences = 0;
  /** Sequences that were given up, because the machine was too slow for their times. */
  late = 0;

  operation(verb: string): void {
    increase(this.#verbs, verb);
  }

  answer(status: number): void {
    increase(this.#statuses, String(status));
  }

  excuse(name: DeviationName): void {
    increase(this.#excuses, name);
  }

  get operations(): number {
    return [...this.#verbs.values()].reduce((sum, count) => sum + count, 0);
  }

  lines(): readonly string[] {
    return [
      `operations: ${shown(this.#verbs)}`,
      `statuses: ${shown(this.#statuses)}`,
      `events compared: ${this.events}`,
      `excused: ${shown(this.#excuses)}`,
      `sequences: ${this.sequences}, given up as too slow: ${this.late}`,
    ];
  }
}

function increase(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function shown(counts: ReadonlyMap<string, number>): string {
  const byCount = [...counts].toSorted(([, one], [, other]) => other - one);
  return byCount.map(([name, count]) => `${name} ${count}`).join(", ") || "none";
}
