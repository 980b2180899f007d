/**
 * Shows the installs that a Group's grant has opened as events of the Group: most machines have no Machine object that
 * could have an event. Events are few, however many machines install: beyond the rate, one event says how many more.
 */

import type { Clock } from "../lib/clock.ts";
import { TokenBucket } from "../lib/token-bucket.ts";
import type { InstallState, LedgerEntry } from "../model/permit.ts";
import type { EventSink, NotedEvent } from "../model/source.ts";

export interface InstallEventsOptions {
  /** Undefined while there is nowhere to show events: objects are in files. */
  readonly sink: () => EventSink | undefined;
  /** Returns the uid of the object of a grant; undefined if it is gone. */
  readonly uidOf: (key: string) => string | undefined;
  readonly clock: Clock;
}

/** What an event says of one machine, and of several. `Installing` follows `Claimed` within seconds: no event. */
const texts = {
  Claimed: { one: "has claimed its install", many: "have claimed their installs" },
  Installed: { one: "is installed", many: "are installed" },
  Failed: { one: "has failed to install", many: "have failed to install" },
  Unconfirmed: { one: "has not confirmed its install", many: "have not confirmed their installs" },
} as const satisfies Partial<Record<InstallState, object>>;
type ShownState = keyof typeof texts;

/** Less than a tenth of what the API server gets in events otherwise (`event-recorder.ts`). */
const pace = { perSecond: 0.2, burst: 20 } as const;
/** After this time, one event has what exceeded the pace. */
const gatherMs = 30_000;
/** More Groups are not counted: their events are dropped. */
const maxGathered = 1_024;

export class InstallEvents {
  readonly #options: InstallEventsOptions;
  readonly #bucket: TokenBucket;
  /** How many machines of a grant have reached a state without an event, by `NAMESPACE/NAME STATE`. */
  readonly #gathered = new Map<string, number>();
  readonly #stopping = new AbortController();
  #gathering: Promise<void> | undefined;

  constructor(options: InstallEventsOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket({ clock: options.clock, ...pace });
  }

  /** Takes an entry whose state has just changed. */
  changed({ grant, state, identities }: LedgerEntry): void {
    const group = grant?.key.startsWith(groupPrefix) === true ? grant.key.slice(groupPrefix.length) : undefined;
    if (group === undefined || !isShown(state) || this.#options.sink() === undefined) return;
    const [machine = ""] = identities.toReversed();
    if (this.#bucket.tryTake()) {
      this.#note(group, state, `${machine} ${texts[state].one} (generation ${grant?.generation})`);
      return;
    }
    const key = `${group} ${state}`;
    if (!this.#gathered.has(key) && this.#gathered.size >= maxGathered) return;
    this.#gathered.set(key, (this.#gathered.get(key) ?? 0) + 1);
    this.#gathering ??= this.#gather();
  }

  /** Takes an entry for whose text another address has just asked. */
  closed({ grant, identities, claimedFrom, otherAddress }: LedgerEntry): void {
    if (grant === undefined || !this.#bucket.tryTake()) return;
    const [machine = ""] = identities.toReversed();
    const why = `only ${claimedFrom} may have the text of a Secret for ${machine}, and ${otherAddress} asked for it`;
    this.#noteAt(grant.key, {
      reason: "SecretClosed",
      isTrouble: true,
      message: `${why}: closed until the next install`,
    });
  }

  /** Drops what is gathered. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#gathering;
  }

  async #gather(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#gathered.size > 0) {
      await this.#options.clock.sleep(gatherMs, signal);
      if (signal.aborted) return;
      this.#noteGathered();
    }
    this.#gathering = undefined;
  }

  #noteGathered(): void {
    for (const [key, count] of this.#gathered) {
      if (!this.#bucket.tryTake()) return;
      this.#gathered.delete(key);
      const [group = "", state = ""] = key.split(" ");
      if (isShown(state)) this.#note(group, state, moreText(state, count));
    }
  }

  #note(group: string, state: ShownState, message: string): void {
    const isTrouble = state === "Failed" || state === "Unconfirmed";
    this.#noteAt(`${groupPrefix}${group}`, { reason: state, isTrouble, message });
  }

  /** @param key of a grant. The event is one of the object that has the grant. */
  #noteAt(key: string, event: Pick<NotedEvent, "reason" | "isTrouble" | "message">): void {
    const { sink, uidOf } = this.#options;
    const uid = uidOf(key);
    if (uid === undefined) return;
    const [kind, namespace = "", name = ""] = key.split("/");
    const object = { kind: kind === "machine" ? "Machine" : "Group", namespace, name } as const;
    sink()?.note({ object, uid, ...event });
  }
}

const groupPrefix = "group/";

function isShown(state: string): state is ShownState {
  return Object.hasOwn(texts, state);
}

function moreText(state: ShownState, count: number): string {
  return `${count} more ${count === 1 ? `machine ${texts[state].one}` : `machines ${texts[state].many}`}`;
}
