/**
 * Logs which Group nearly matched a machine that matches no Group: once a minute for each set of labels.
 *
 * The search checks every Group. So it runs after the answer, in slices, for one machine at a time. After each search,
 * davit rests fifty times as long as the search took. Only a few machines may wait for a search. davit ignores any
 * further machine until it asks again. So a storm of machines costs no more than a few machines.
 */

import { hash } from "node:crypto";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { inSlices, nextTurn } from "../../lib/slices.ts";
import { shown } from "../../lib/text/visible.ts";
import { type Labels, reservedLabels, sentLabels } from "../../model/labels/labels.ts";
import { selectorText } from "../../model/objects/group.ts";
import type { BootIndex } from "../selection/boot-index.ts";
import { findContenders } from "./contenders.ts";
import { missesOf } from "./explain.ts";

interface NearMissesOptions {
  readonly index: Pick<BootIndex, "groups">;
  readonly clock: Clock;
  readonly log: Pick<Log, "info">;
}

/** A logged set of labels is not logged again for this time. */
const quietMs = 60_000;
/** The most machines that wait for a search. Each has up to 8 KiB of labels. */
const maxWaiting = 16;
/** The shortest rest. It allows ten lines a second, so davit remembers at most about 600 sets of labels. */
const leastRestMs = 100;
/** The rest is this many times as long as the search. So searches take at most two per cent of the time. */
const restPerWork = 50;
/** The most unmet wants of a Group that a line shows. Of any further ones it shows only the number. */
const maxMisses = 4;

export class NearMisses {
  readonly #options: NearMissesOptions;
  /** When each set of labels may be logged again, by the hash of the set. The oldest is first. */
  readonly #logged = new Map<string, number>();
  readonly #waiting: Labels[] = [];
  readonly #stopping = new AbortController();
  #isRunning = false;

  constructor(options: NearMissesOptions) {
    this.#options = options;
  }

  /** Notes a machine that matches no Group. The call never waits for the search. */
  report(labels: Labels): void {
    // This check comes first, so that a storm costs nothing more.
    if (this.#waiting.length >= maxWaiting || this.#stopping.signal.aborted) return;
    if (!this.#isDue(labels)) return;
    this.#waiting.push(labels);
    if (!this.#isRunning) void this.#work();
  }

  /** Stops searching and logging. Idempotent. */
  stop(): void {
    this.#stopping.abort();
  }

  /** True for a set of labels that was not logged for a minute. The call then starts the set's next minute. */
  #isDue(labels: Labels): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    for (const [key, dueMs] of this.#logged) {
      if (dueMs > nowMs) break;
      this.#logged.delete(key);
    }
    const key = hash("sha256", selectorText(Object.fromEntries(labels)), "base64");
    if (this.#logged.has(key)) return false;
    this.#logged.set(key, nowMs + quietMs);
    return true;
  }

  async #work(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    this.#isRunning = true;
    // The machine gets its answer first.
    await nextTurn();
    for (let labels = this.#waiting.shift(); labels !== undefined; labels = this.#waiting.shift()) {
      const startedAtMs = clock.monotonicMs();
      await this.#look(labels);
      const tookMs = clock.monotonicMs() - startedAtMs;
      await clock.sleep(Math.max(leastRestMs, tookMs * restPerWork), signal);
      if (signal.aborted) break;
    }
    this.#isRunning = false;
  }

  async #look(labels: Labels): Promise<void> {
    const { index, log } = this.#options;
    // A copy: the index may change between two slices.
    const groups = [...index.groups.values()];
    const { nearest } = await inSlices(findContenders({ groups, labels, limit: 1 }));
    const [group] = nearest;
    const text = group === undefined ? "none" : `${group.id}: ${missesText(missesOf(group, labels))}`;
    log.info({ ...reserved(labels), nearest: text }, "no matching group");
  }
}

function missesText(misses: readonly string[]): string {
  const more = misses.length - maxMisses;
  return [...misses.slice(0, maxMisses), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

/** Returns the machine's labels with reserved names, which identify it in the log. Long values are cut. */
function reserved(labels: Labels): Readonly<Record<string, string>> {
  const known = [...sentLabels(labels)].filter(([name, value]) => reservedLabels.has(name) && value !== "");
  return Object.fromEntries(known.map(([name, value]) => [name, shown(value)]));
}
