/** Watches that are open on both servers, and their events so far. */

import type { IncomingMessage } from "node:http";
import { systemClock } from "../../src/lib/clock.ts";
import { compareTexts, type Known } from "./fuzz-compare.ts";
import { type DeviationName, type WatchedPath, watchDeviation, withoutTwins } from "./fuzz-deviations.ts";
import type { Pair } from "./fuzz-lane.ts";

/** What was told by one server. */
interface Told {
  readonly events: readonly string[];
  readonly hasEnded: boolean;
}

export type WatchVerdict =
  | { readonly kind: "same" }
  | { readonly kind: "different"; readonly target: string; readonly told: Pair<Told> };

// An event is there within milliseconds of its change: this is for one that never comes.
const eventLimitMs = 5_000;

export class OpenWatch {
  readonly #target: string;
  readonly #watched: WatchedPath;
  readonly #sides: Pair<EventReader>;
  /** Events from the first on that are known to be the same. */
  #agreed = 0;
  readonly #excuses = new Set<DeviationName>();
  #isExcused = false;

  constructor(target: string, watched: WatchedPath, responses: Pair<IncomingMessage>) {
    this.#target = target;
    this.#watched = watched;
    this.#sides = { etcd: new EventReader(responses.etcd), davit: new EventReader(responses.davit) };
  }

  /** How many events were the same in both. */
  get agreedCount(): number {
    return this.#agreed;
  }

  get excuses(): ReadonlySet<DeviationName> {
    return this.#excuses;
  }

  /** Waits until both have told the same, or are excused, or it is clear that they will not. */
  async verdict(known: Known): Promise<WatchVerdict> {
    const endsAtMs = systemClock.monotonicMs() + eventLimitMs;
    for (;;) {
      const told = { etcd: this.#sides.etcd.told, davit: this.#sides.davit.told };
      if (this.#isExcused || this.#isSame(told, known)) return { kind: "same" };
      if (systemClock.monotonicMs() > endsAtMs) return { kind: "different", target: this.#target, told };
      await systemClock.sleep(5);
    }
  }

  close(): void {
    this.#sides.etcd.close();
    this.#sides.davit.close();
  }

  #isSame(told: Pair<Told>, known: Known): boolean {
    const davit = told.davit.events;
    const etcd = withoutTwins(told.etcd.events, this.#watched);
    if (etcd.length < told.etcd.events.length) this.#excuses.add("stream-twin");
    const isSame = (theirs: string, ours: string) => {
      const compared = compareTexts({ etcd: theirs, davit: ours }, known);
      if (compared.kind === "excused") this.#excuses.add(compared.by);
      return compared.kind !== "different";
    };
    while (isSame(etcd[this.#agreed] ?? "none", davit[this.#agreed] ?? "neither")) this.#agreed += 1;
    const isWhole = etcd.length === this.#agreed && davit.length === this.#agreed;
    if (isWhole && told.etcd.hasEnded === told.davit.hasEnded) return true;
    const excuse = watchDeviation(this.#watched, etcd, davit, isSame);
    if (excuse === undefined) return false;
    this.#isExcused = true;
    this.#excuses.add(excuse);
    return true;
  }
}

class EventReader {
  readonly #response: IncomingMessage;
  readonly #events: string[] = [];
  #rest = "";
  #hasEnded = false;

  constructor(response: IncomingMessage) {
    this.#response = response;
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      const lines = `${this.#rest}${chunk}`.split("\n");
      this.#rest = lines.pop() ?? "";
      this.#events.push(...lines);
    });
    response.on("end", () => {
      this.#hasEnded = true;
    });
    // A watch that is closed while it waits.
    response.on("error", () => {});
  }

  get told(): Told {
    return { events: this.#events, hasEnded: this.#hasEnded };
  }

  close(): void {
    this.#response.destroy();
  }
}
