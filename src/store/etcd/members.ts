/**
 * Which members run, and which one leads, as this member sees it. It reads the keys of the members and of the leader,
 * and follows their changes.
 *
 * Anybody with access to etcd may write anything there. So davit ignores and reports a key that no davit wrote: it
 * stands for no member, and no member ends because of it.
 */

import { EtcdError, type EtcdKey, type EtcdWatchPart } from "../../../packages/etcd-client/src/etcd-client.ts";
import type { Log } from "../../lib/log.ts";
import { type Decoder, list, number, object, optional, parsed, record, text } from "../../lib/shape.ts";
import { type LogMember, WalError } from "../core/log-port.ts";
import { type LogPlace, strangeKeyText } from "./layout.ts";
import type { LeaderClock } from "./leader-clock.ts";

/** Proves that the store has everything that its source had at a time. The leader passes it on to other members. */
export interface SourceProof {
  /** This member's proof, for the others while it leads: a monotonic time; undefined without a proof. */
  readonly own: () => number | undefined;
  /** Takes another leader's proof, as a time of this member's monotonic clock. It may be too early, never too late. */
  readonly heard: (provenAtMs: number) => void;
}

/** A member, and the time of its clock when it last wrote its key. */
interface SeenMember extends LogMember {
  readonly askedAtMs: number;
}

const memberShape: Decoder<SeenMember> = object({ id: text, name: text, clientUrls: list(text), askedAtMs: number });

/** The value of the leader's key. Until the leader's term has begun, it has only the id. */
const beatShape = object({
  id: text,
  term: optional(number),
  atMs: optional(number),
  /** The last time that the leader has read in each member's key. */
  asked: optional(record(number)),
  proof: optional(object({ atMs: number, place: number })),
});

/** What a key holds; undefined unless it is JSON of a shape under a lease, as davit writes it. */
export function valueIn<Value>(shape: Decoder<Value>, { value, lease }: EtcdKey): Value | undefined {
  return lease === 0n ? undefined : parsed(shape, Buffer.from(value).toString());
}

interface Leader {
  readonly id: string;
  /** The revision in which its key was made: the fence. */
  readonly revision: number;
}

export interface SeenMembersOptions extends LogPlace {
  readonly log: Log;
  readonly leaderClock: LeaderClock;
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
    const { layout } = this.#options;
    for (const { kind, key } of events) {
      if (kind !== "put") this.#strangeKeys.delete(key.key);
      if (kind === "put") this.#put(key);
      else if (key.key === layout.leader) this.#leaderGone(key.modRevision);
      else this.#all.delete(layout.memberId(key.key) ?? "");
    }
    this.#options.changed();
  }

  #put(found: EtcdKey): void {
    const { layout, log } = this.#options;
    const { key } = found;
    const isLeader = key === layout.leader;
    const id = layout.memberId(key);
    if (!isLeader && id === undefined) return;
    if (isLeader ? this.#putLeader(found) : this.#putMember(found)) {
      this.#strangeKeys.delete(key);
      return;
    }
    if (!this.#strangeKeys.has(key)) log.warn({ key }, strangeKeyText);
    this.#strangeKeys.add(key);
    if (id !== undefined) this.#all.delete(id);
    // The leader's next heartbeat corrects a key that somebody has overwritten.
    else if (found.createRevision !== this.#leader?.revision) this.#leaderGone(found.modRevision);
  }

  /** @returns false if the key is not what davit writes. */
  #putMember(found: EtcdKey): boolean {
    const { self, asked, layout } = this.#options;
    const member = valueIn(memberShape, found);
    if (member === undefined || member.id !== layout.memberId(found.key)) return false;
    const { id } = member;
    this.#all.set(id, member);
    if (id === self.id) return true;
    this.#reports.set(id, (this.#reports.get(id) ?? 0) + 1);
    asked();
    return true;
  }

  /** @returns false if the key is not what davit writes. */
  #putLeader(found: EtcdKey): boolean {
    const { self, hasAsked, isOwnTerm, leaderClock } = this.#options;
    const { createRevision } = found;
    const beat = valueIn(beatShape, found);
    if (beat === undefined) return false;
    if (this.#isBeforeOwnTerm(createRevision)) return true;
    const { id, term, atMs, asked = {}, proof } = beat;
    this.setLeader({ id, revision: createRevision });
    if (term === undefined || atMs === undefined || isOwnTerm(createRevision)) return true;
    // The leader may have read what an earlier run of this member wrote, by another clock.
    const lastAskedAtMs = asked[self.id];
    const askedAtMs = lastAskedAtMs !== undefined && hasAsked(lastAskedAtMs) ? lastAskedAtMs : undefined;
    leaderClock.heard({ atMs, term }, askedAtMs);
    if (proof !== undefined && askedAtMs !== undefined) void this.#hearProof(atMs, askedAtMs, proof);
    return true;
  }

  /**
   * Takes the leader's proof, once this member has delivered what the leader had then. The leader's time is later than
   * the question that it repeats, so the proof never looks too new.
   */
  async #hearProof(
    atMs: number,
    askedAtMs: number,
    proof: { readonly atMs: number; readonly place: number },
  ): Promise<void> {
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
