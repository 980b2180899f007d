/** The davits of a run, and what may happen to them. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import type { Pick } from "../helpers/fault-files.ts";
import { profileNames } from "./first-world.ts";
import type { Operation } from "./operations.ts";
import type { Relay } from "./relay.ts";

/** What a disturbance may use. */
export interface Disturbing {
  /** A number below the one given. */
  readonly pick: Pick;
  /** Begins something at once, and ends it after a while, beside the changes. */
  during(begin: () => void | Promise<void>, end: () => void | Promise<void>): Promise<void>;
}

/** By what happens. Resolves when the next change may be made. */
export type Disturbances = Readonly<Record<string, (how: Disturbing) => Promise<void>>>;

export interface Davits {
  /** Where they answer machines, by their names; undefined while one is down. */
  readonly urls: Readonly<Record<string, () => string | undefined>>;
  /** The id of their ledger. */
  readonly ledger: string;
  readonly disturbances: Disturbances;
  stop(): Promise<void>;
}

/** Makes the kernels of all Profiles. @returns the options by which a davit serves them. */
export async function assetArgs(folder: string): Promise<readonly string[]> {
  const assets = join(folder, "assets");
  await mkdir(assets, { recursive: true });
  for (const name of profileNames) await writeFile(join(assets, name), name);
  return ["--assets-dir", assets];
}

/** How much is done, and how fast. */
export interface Pace {
  /** How many changes. */
  readonly operations: number;
  /** After this time no further change begins. */
  readonly longestMs?: number;
  /** From one change to the next, on average. */
  readonly paceMs: number;
  /** A disturbance comes with every so many changes. */
  readonly disturbEvery: number;
}

interface Changing {
  readonly next: () => Operation;
  readonly change: (operation: Operation) => Promise<void>;
}

/** What may happen to the way between a store and its follower. */
export function storeDisturbances(relay: Relay): Disturbances {
  return {
    "store out of reach": ({ during }) =>
      during(
        () => relay.cut(),
        () => relay.heal(),
      ),
    "store silent": ({ during }) =>
      during(
        () => relay.freeze(),
        () => relay.heal(),
      ),
  };
}

export interface DisturberOptions {
  readonly kinds: Disturbances;
  readonly pick: Pick;
  /** Most disturbances last as long as this at most, milliseconds. Every third one may last six times as long. */
  readonly shortMs: number;
}

/** Disturbs the davits: one disturbance at a time, each kind as often as the others. */
export class Disturber {
  readonly counts = new Map<string, number>();
  readonly #options: DisturberOptions;
  /** The disturbance that is under way beside the changes. */
  #background: Promise<void> = Promise.resolve();

  constructor(options: DisturberOptions) {
    this.#options = options;
  }

  async disturb(): Promise<void> {
    await this.settle();
    const { kinds, pick, shortMs } = this.#options;
    const during: Disturbing["during"] = async (begin, end) => {
      const lastsMs = 500 + pick(pick(3) === 0 ? shortMs * 6 : shortMs);
      await begin();
      this.#background = systemClock.sleep(lastsMs).then(end);
    };
    const countOf = (name: string) => this.counts.get(name) ?? 0;
    const least = Math.min(...Object.keys(kinds).map(countOf));
    // In turn, so that a short run has as many kinds as it can.
    const names = Object.keys(kinds).filter((name) => countOf(name) === least);
    const name = names[pick(names.length)] ?? "";
    this.counts.set(name, least + 1);
    await kinds[name]?.({ pick, during });
  }

  /** Makes changes amid disturbances, and ends when nothing is disturbed any more. @returns how many changes. */
  async amid({ operations, longestMs, paceMs, disturbEvery }: Pace, { next, change }: Changing): Promise<number> {
    const { pick } = this.#options;
    const endMs = systemClock.monotonicMs() + (longestMs ?? Number.POSITIVE_INFINITY);
    let done = 0;
    for (; done < operations && systemClock.monotonicMs() < endMs; done++) {
      const operation = next();
      await systemClock.sleep(operation.pauseMs ?? pick(paceMs * 2));
      await change(operation);
      if (pick(disturbEvery) === 0) await this.disturb();
    }
    await this.settle();
    return done;
  }

  /** Resolves when nothing is disturbed any more. */
  async settle(): Promise<void> {
    await this.#background;
  }
}

/** Counts as text: `davit killed: 2, store silent: 1`. */
export function countsText(counts: ReadonlyMap<string, number>): string {
  const texts = [...counts].toSorted().map(([what, count]) => `${what}: ${count}`);
  return texts.join(", ");
}
