/**
 * Keys that end soon, and the wait until they have ended in both stores. davit's are gone when they are due, etcd's up
 * to half a second later: nothing may be asked in between.
 */

import { systemClock } from "../../src/lib/clock.ts";
import { isJsonObject, parseJsonObject } from "../../src/model/json.ts";
import type { Lane, Pair } from "./fuzz-lane.ts";
import { pathOfKey } from "./fuzz-paths.ts";

// Nothing is asked so shortly before a key ends, and no answer may come so shortly before.
const quietMs = 300;
const lateMs = 60;
// What ends later is not waited for: sequences are shorter.
const soonMs = 30_000;
// Two keys that end in the same millisecond end in the order of their making, which need not be that of their writing.
// Where the clocks of servers differ, keys that end shortly after each other may end in another order, too. So the ends
// of keys are this part of the clocks' difference apart.
const partOfClock = 30;
const settleLimitMs = 5_000;

export class Ends {
  readonly #lane: Lane;
  /** By key; Unix milliseconds. */
  readonly #endsAtMs = new Map<string, number>();

  constructor(lane: Lane) {
    this.#lane = lane;
  }

  /**
   * Takes notice of a key that was written, or deletes it in both when it ends too shortly before or after another one.
   * @param expiration as the answer has it; undefined for none.
   */
  async note(key: string, expiration: unknown): Promise<void> {
    const endsAtMs = Date.parse(String(expiration));
    this.#endsAtMs.delete(key);
    if (!(endsAtMs < systemClock.nowMs() + soonMs)) return;
    const apartMs = this.#lane.clockMs / partOfClock;
    if ([...this.#endsAtMs.values()].some((other) => Math.abs(other - endsAtMs) < apartMs)) {
      await this.#lane.ask({ method: "DELETE", target: `/v2/keys${pathOfKey(key)}?recursive=true` });
      return;
    }
    this.#endsAtMs.set(key, endsAtMs);
    await systemClock.sleep(apartMs);
  }

  /** True when one of the keys may have ended meanwhile. */
  isLate(): boolean {
    return this.#firstAtMs() - lateMs < systemClock.nowMs();
  }

  /** True when one of the keys ends so soon that nothing should be asked before. */
  isNear(): boolean {
    return this.#firstAtMs() - quietMs < systemClock.nowMs();
  }

  /**
   * Waits until all have ended in both.
   * @returns the index of both; different ones when one of them did not get there.
   */
  async settled(): Promise<Pair<number>> {
    await systemClock.sleep(Math.max(0, ...this.#endsAtMs.values()) - systemClock.nowMs() + lateMs);
    const limitMs = systemClock.monotonicMs() + settleLimitMs;
    for (;;) {
      const isBehind = await this.#isEtcdBehind();
      const indexes = await this.#lane.indexes();
      const isSettled = !isBehind && indexes.etcd === indexes.davit;
      if (isSettled) this.#endsAtMs.clear();
      if (isSettled || systemClock.monotonicMs() > limitMs) return indexes;
      await systemClock.sleep(20);
    }
  }

  #firstAtMs(): number {
    return Math.min(...this.#endsAtMs.values());
  }

  /** True while etcd shows a key that should have ended. */
  async #isEtcdBehind(): Promise<boolean> {
    for (const key of this.#endsAtMs.keys()) {
      const begun = await this.#lane.begin("etcd", { method: "GET", target: `/v2/keys${pathOfKey(key)}` });
      const node = parseJsonObject((await begun.whole()).body)?.node;
      if (isJsonObject(node) && Date.parse(String(node.expiration)) < systemClock.nowMs()) return true;
    }
    return false;
  }
}
