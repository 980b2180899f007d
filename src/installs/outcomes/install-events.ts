/**
 * Shows the installs that a Group's grant has opened as events of the Group: most machines have no Machine object that
 * could have an event. Events are few, however many machines install: beyond the rate, one event says how many more.
 */

import type { Clock } from "../../lib/clock.ts";
import { TokenBucket } from "../../lib/token-bucket.ts";
import type { EventSink } from "../../model/objects/source.ts";
import type { LedgerEntry } from "../../model/permits/permit.ts";

interface InstallEventsOptions {
  /** Undefined while there is nowhere to show events: objects are in files. */
  readonly sink: () => EventSink | undefined;
  /** Returns the uid of the object of a grant; undefined if it is gone. */
  readonly uidOf: (key: string) => string | undefined;
  readonly clock: Clock;
}

const closedText = "may not have the text of a Secret until the next install, because another address asked for it";
/** What an event says of one machine, and of several. `Installing` follows `Claimed` within seconds: no event. */
const texts = {
  Claimed: { isTrouble: false, one: "has claimed its install", many: "have claimed their installs" },
  Installed: { isTrouble: false, one: "is installed", many: "are installed" },
  Failed: { isTrouble: true, one: "has failed to install", many: "have failed to install" },
  Unconfirmed: { isTrouble: true, one: "has not confirmed its install", many: "have not confirmed their installs" },
  SecretClosed: { isTrouble: true, one: closedText, many: closedText },
} as const;
type Reason = keyof typeof texts;

export class InstallEvents {
  readonly #options: InstallEventsOptions;
  /** A reason's own share: thousands of claims do not hide a failure. */
  readonly #shares: ReadonlyMap<string, EventShare>;

  constructor(options: InstallEventsOptions) {
    this.#options = options;
    this.#shares = new Map(Object.keys(texts).map((reason) => [reason, new EventShare(options.clock)]));
  }

  /** Takes an entry whose state has just changed. */
  changed(entry: LedgerEntry): void {
    const { grant, state } = entry;
    if (grant?.key.startsWith("group/") === true && isShown(state)) this.#take(state, grant, machineOf(entry));
  }

  /** Takes an entry for whose text another address has just asked. */
  closed(entry: LedgerEntry): void {
    const { grant, claimedFrom, otherAddress } = entry;
    if (grant === undefined) return;
    const machine = machineOf(entry);
    const why = `only ${claimedFrom} may have the text of a Secret for ${machine}, and ${otherAddress} asked for it`;
    this.#take("SecretClosed", grant, machine, `${why}: closed until the next install`);
  }

  /** Drops what is gathered. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all([...this.#shares.values()].map((share) => share.stop()));
  }

  /** @param one the whole text of an event of one machine. */
  #take(
    reason: Reason,
    { key, generation }: NonNullable<LedgerEntry["grant"]>,
    machine: string,
    one = `${machine} ${texts[reason].one} (generation ${generation})`,
  ): void {
    if (this.#options.sink() === undefined) return;
    const sum = (count: number) => `${count} more machines ${texts[reason].many} (generation ${generation})`;
    const write = (more: number) => this.#note(key, reason, more === 1 ? one : sum(more));
    this.#shares.get(reason)?.take({ subject: `${key} ${generation}`, write });
  }

  /** @param key of a grant. The event is one of the object that has the grant. */
  #note(key: string, reason: Reason, message: string): void {
    const { sink, uidOf } = this.#options;
    const uid = uidOf(key);
    if (uid === undefined) return;
    const [kind, namespace = "", name = ""] = key.split("/");
    const object = { kind: kind === "machine" ? "Machine" : "Group", namespace, name } as const;
    sink()?.note({ object, uid, reason, isTrouble: texts[reason].isTrouble, message });
  }
}

function isShown(state: LedgerEntry["state"]): state is LedgerEntry["state"] & Reason {
  return Object.hasOwn(texts, state);
}

/** The name of a machine in an event. */
function machineOf({ identities }: LedgerEntry): string {
  return identities.at(-1) ?? "";
}

/** An Event, and the sum that it can become a part of. */
interface SharedEvent {
  /** One sum is of Events with equal subjects. */
  readonly subject: string;
  /** @param more how many Events this one stands for. With 1, the Event is written as if it had not waited. */
  readonly write: (more: number) => void;
}

/** Each share costs the API server about half an Event a second at most, after its burst. */
const pace = { perSecond: 0.2, burst: 20 } as const;
const turnMs = 30_000;
/** Further sums wait for the next turn, the oldest first. */
const sumsPerTurn = 10;
/** More subjects do not wait: their Events are dropped. */
const maxSubjects = 1_024;

/**
 * A share of the Events: a few at once, and sums of the others. Shares do not slow each other down. A sum waits only
 * for its turn, so a steady stream of Events does not delay it.
 */
class EventShare {
  readonly #clock: Clock;
  readonly #bucket: TokenBucket;
  /** By subject; the oldest is first. */
  readonly #sums = new Map<string, { readonly first: SharedEvent; count: number }>();
  readonly #stopping = new AbortController();
  #summing: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#bucket = new TokenBucket({ clock, ...pace });
  }

  /** Writes an Event now, or with others in a later turn. */
  take(event: SharedEvent): void {
    if (this.#bucket.tryTake()) {
      event.write(1);
      return;
    }
    const sum = this.#sums.get(event.subject);
    if (sum !== undefined) sum.count += 1;
    else if (this.#sums.size < maxSubjects) this.#sums.set(event.subject, { first: event, count: 1 });
    this.#summing ??= this.#sum();
  }

  /** Drops what waits. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#summing;
  }

  async #sum(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#sums.size > 0) {
      await this.#clock.sleep(turnMs, signal);
      if (signal.aborted) return;
      for (const [subject, { first, count }] of [...this.#sums].slice(0, sumsPerTurn)) {
        this.#sums.delete(subject);
        first.write(count);
      }
    }
    this.#summing = undefined;
  }
}
