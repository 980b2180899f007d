/** Random choices that a seed repeats. */

import { type Pick, seededPick } from "../helpers/fault-files.ts";

export class Random {
  readonly #pick: Pick;

  /** @param seed any 32-bit number. */
  constructor(seed: number) {
    this.#pick = seededPick(seed);
  }

  /** From 0 to `count` - 1. */
  below(count: number): number {
    return this.#pick(count);
  }

  /** True this many times in 100. */
  chance(percent: number): boolean {
    return this.#pick(1_000) < percent * 10;
  }

  of<Each>(choices: readonly [Each, ...Each[]]): Each {
    return choices[this.#pick(choices.length)] ?? choices[0];
  }

  /** The choices have weights, of any sum. */
  weighted<Each>(choices: readonly [readonly [number, Each], ...(readonly [number, Each])[]]): Each {
    let left = this.#pick(choices.reduce((sum, [weight]) => sum + weight, 0));
    const found = choices.find(([weight]) => {
      left -= weight;
      return left < 0;
    });
    return (found ?? choices[0])[1];
  }
}
