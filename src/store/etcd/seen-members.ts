/**
 * Which members run, and which one leads, as this member sees it. It reads the keys of the members and of the leader,
 * and follows their changes.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type LogMember, WalError } from "../core/log-port.ts";
import { numberFrom, objectFrom, type StoredFields, textFrom } from "../core/stored-json.ts";
import type { LeaderTime } from "./batch-frame.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import type { EtcdKey } from "./client/messages.ts";
import type { EtcdWatchPart } from "./client/watch.ts";
import { type FormatLevel, formatIn } from "./format-level.ts";
import type { Layout } from "./layout.ts";
import type { LeaderClock } from "./leader-clock.ts";
import { fieldsOf, orUnreadable } from "./member-fields.ts";

/** Proves that the store has everything that its source had at a time. The leader passes it on to other members. */
export interface SourceProof {
  /** This member's proof, for the others while it leads: a monotonic time; undefined without a proof. */
  readonly own: () => number | undefined;
  /** Takes another leader's proof, as a time of this member's monotonic clock. It may be too early, never too late. */
  readonly heard: (provenAtMs: number) => void;
}

/** A member, and the time of its clock when it last wrote its key. */
export interface SeenMember extends LogMember {
  readonly askedAtMs: number;
  /** The latest format of batches that it knows. */
  readonly format: number;
}

export interface Leader {
  readonly id: string;
  /** The revision in which its key was made: the fence. */
  readonly revision: number;
}

export interface SeenMembersOptions {
  readonly log: Log;
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly clock: Clock;
  readonly leaderClock: LeaderClock;
  readonly formats: FormatLevel;
  readonly self: LogMember;
  readonly proof?: SourceProof | undefined;
  /** Resolves once the batch of a place is delivered. @throws {WalError} closed. */
  readonly reached: (place: number) => Promise<void>;
  /**
   * True if etcd certainly has the log that this member knows; see `Tail.isVerified`. Otherwise, what the leader proves
   * may concern another log. @throws {EtcdError}
   */
  readonly isVerified: () => Promise<boolean>;
  /** True if this run wrote the time into its own key. */
  readonly hasAsked: (atMs: number) => boolean;
  /** True for the revision of the leader's key that this member made itself. */
  readonly isOwnTerm: (revision: number) => boolean;
  /** Called when another member asks for the leader's time. */
  readonly asked: () => void;
  /** Called after each change. */
  readonly changed: () => void;
  /** Called when members write a format that this davit does not know. */
  readonly unreadable: (error: WalError) => void;
}

const retryMs = 250;

export class SeenMembers {
  readonly #options: SeenMembersOptions;
  /** By their ids, this member included. */
  readonly #all = new Map<string, SeenMember>();
  #leader: Leader | undefined;
  #leaderSinceMs: number;
  readonly #reports = new Map<string, number>();
  readonly #strangeKeys = new Set<string>();

  constructor(options: SeenMembersOptions) {
    this.#options = options;
    this.#leaderSinceMs = options.clock.monotonicMs();
  }

  get all(): ReadonlyMap<string, SeenMember> {
    return this.#all;
  }

  get leader(): Leader | undefined {
    return this.#leader;
  }

  /** See `LogMembership`. */
  get leaderSinceMs(): number {
    return this.#leaderSinceMs;
  }

  /** See `LogCounts`. */
  get reports(): ReadonlyMap<string, number> {
    return this.#reports;
  }

  /** See `LogMembership`. */
  get strangeKeys(): ReadonlySet<string> {
    return this.#strangeKeys;
  }

  /** Reads the leader's time, by which nodes expire from now on. @throws {EtcdError} */
  async hearLeader(): Promise<void> {
    const { client, layout } = this.#options;
    for (const key of (await client.range({ key: layout.leader })).keys) this.#put(key);
  }

  /** Follows until `signal` aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#followOnce(signal);
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
      }
      await clock.sleep(retryMs, signal);
    }
  }

  /** Until the watch ends. @throws {EtcdError} */
  async #followOnce(signal: AbortSignal): Promise<void> {
    const { client, layout, changed, isVerified } = this.#options;
    const { keys, header } = await client.range(layout.membership, { signal });
    if (!(await isVerified())) return;
    this.#all.clear();
    this.#strangeKeys.clear();
    if (!keys.some(({ key }) => key === layout.leader)) this.#leaderGone(header.revision);
    for (const key of keys) this.#put(key);
    changed();
    const startRevision = header.revision + 1;
    for await (const part of client.watch({ ...layout.membership, startRevision }, { signal })) {
      // The first part has no events.
      if (part.events.length > 0) this.#take(part);
      else if (!(await isVerified())) return;
    }
  }

  /** Sets the leader, which this member may know before etcd reports it. */
  setLeader(leader: Leader | undefined): void {
    if (leader?.revision !== this.#leader?.revision) this.#leaderSinceMs = this.#options.clock.monotonicMs();
    this.#leader = leader;
  }

  /** There was no leader at this revision. */
  #leaderGone(revision: number): void {
    if (!this.#isBeforeOwnTerm(revision)) this.setLeader(undefined);
  }

  /** True for what was read or sent before this member became the leader, and arrives after that. */
  #isBeforeOwnTerm(revision: number): boolean {
    return (
      this.#leader !== undefined && revision < this.#leader.revision && this.#options.isOwnTerm(this.#leader.revision)
    );
  }

  #take({ events }: EtcdWatchPart): void {
    for (const { kind, key } of events) {
      if (kind !== "put") this.#strangeKeys.delete(key.key);
      if (kind === "put") this.#put(key);
      else if (key.key === this.#options.layout.leader) this.#leaderGone(key.modRevision);
      else this.#all.delete(this.#memberIdOf(key));
    }
    this.#options.changed();
  }

  #put(found: EtcdKey): void {
    const { layout, formats, unreadable, log } = this.#options;
    if (found.key === layout.level) {
      formats.hear(found, unreadable);
      return;
    }
    const isLeader = found.key === layout.leader;
    const { key } = found;
    if ((isLeader ? this.#putLeader(found) : this.#putMember(found)) !== undefined) {
      this.#strangeKeys.delete(key);
      return;
    }
    if (!this.#strangeKeys.has(key)) log.warn({ key }, "etcd has a key that no davit wrote, and davit ignores it");
    this.#strangeKeys.add(key);
    if (!isLeader) this.#all.delete(this.#memberIdOf(found));
    // The leader's next heartbeat corrects a key that somebody has overwritten.
    else if (found.createRevision !== this.#leader?.revision) this.#leaderGone(found.modRevision);
  }

  /** @returns undefined if the key is not what davit writes. */
  #putMember(found: EtcdKey): SeenMember | undefined {
    const { self, asked } = this.#options;
    const id = this.#memberIdOf(found);
    const member = orUnreadable(() => memberFrom(fieldsOf(found) ?? {}));
    if (member?.id !== id) return undefined;
    this.#all.set(id, member);
    if (id === self.id) return member;
    this.#reports.set(id, (this.#reports.get(id) ?? 0) + 1);
    asked();
    return member;
  }

  /** @returns undefined if the key is not what davit writes. */
  #putLeader(found: EtcdKey): StoredFields | undefined {
    const { isOwnTerm, leaderClock } = this.#options;
    const { createRevision } = found;
    const fields = fieldsOf(found);
    const beat = orUnreadable(() => beatFrom(fields ?? {}));
    if (fields === undefined || beat === undefined) return undefined;
    if (this.#isBeforeOwnTerm(createRevision)) return fields;
    this.setLeader({ id: beat.id, revision: createRevision });
    if (beat.time === undefined || isOwnTerm(createRevision)) return fields;
    const askedAtMs = this.#askedAtMs(beat.asked);
    leaderClock.heard(beat.time, askedAtMs);
    if (beat.proof !== undefined && askedAtMs !== undefined) {
      void this.#hearProof(beat.time.atMs, askedAtMs, beat.proof);
    }
    return fields;
  }

  #memberIdOf({ key }: EtcdKey): string {
    return key.slice(this.#options.layout.member("").length);
  }

  /**
   * The time that the leader last read in this member's key, by this member's clock; undefined if it read none that
   * this run wrote.
   */
  #askedAtMs(asked: StoredFields): number | undefined {
    const { self, hasAsked } = this.#options;
    const askedAtMs = asked[self.id];
    return typeof askedAtMs === "number" && hasAsked(askedAtMs) ? askedAtMs : undefined;
  }

  /**
   * Takes the leader's proof, once this member has delivered what the leader had then. The leader's time is later than
   * the question that it repeats, so the proof never looks too new.
   */
  async #hearProof(atMs: number, askedAtMs: number, proof: LeaderProof): Promise<void> {
    const { reached, clock, leaderClock, proof: listener } = this.#options;
    if (listener === undefined) return;
    const provenAtMs = proof.atMs + askedAtMs - atMs;
    const toMonotonic = clock.monotonicMs() - leaderClock.ownMs;
    try {
      await reached(proof.place);
      listener.heard(provenAtMs + toMonotonic);
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
    }
  }
}

interface LeaderProof {
  readonly atMs: number;
  readonly place: number;
}

interface Beat {
  readonly id: string;
  /** Absent until the leader's term has begun. */
  readonly time?: LeaderTime;
  readonly asked: StoredFields;
  readonly proof?: LeaderProof;
}

/** Reads the leader's key. @throws {WalError} damaged. */
function beatFrom({ id, atMs, term, asked, proof }: StoredFields): Beat {
  const leader = textFrom(id);
  if (term === undefined) return { id: leader, asked: {} };
  const time = { atMs: numberFrom(atMs), term: numberFrom(term) };
  const beat = { id: leader, time, asked: objectFrom(asked) };
  if (proof === undefined) return beat;
  const proven = objectFrom(proof);
  return { ...beat, proof: { atMs: numberFrom(proven.atMs), place: numberFrom(proven.place) } };
}

/** Reads a member's key. @throws {WalError} damaged. */
function memberFrom(fields: StoredFields): SeenMember {
  const urls = Array.isArray(fields.clientUrls) ? fields.clientUrls : [];
  const askedAtMs = numberFrom(fields.askedAtMs);
  return {
    id: textFrom(fields.id),
    name: textFrom(fields.name),
    clientUrls: urls.map(textFrom),
    askedAtMs,
    format: formatIn(fields.format),
  };
}
