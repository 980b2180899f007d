/**
 * Which members run, and which of them leads. Each member has a lease and a key under it; the leader has one more. The
 * key of the leader is made only where there is none, and every fenced transaction asks for that very key. So a leader
 * whose lease has ended changes nothing, whatever it believes.
 *
 * Every two seconds the leader puts the time of its clock into its key.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type LogMember, WalError } from "../core/log-port.ts";
import { numberFrom, objectFrom, parseJson, type StoredFields, textFrom } from "../core/stored-json.ts";
import type { EtcdClient } from "./client/etcd-client.ts";
import { EtcdError } from "./client/etcd-error.ts";
import { bytesOf, type EtcdKey, type EtcdOperation } from "./client/messages.ts";
import type { EtcdWatchPart } from "./client/watch.ts";
import type { Layout } from "./layout.ts";
import type { LeaderClock } from "./leader-clock.ts";

/** That the store has everything that its source had at a time. It is passed on from the leader to other members. */
export interface SourceProof {
  /** Of this member, for the others while it leads: a time of the monotonic clock; undefined without a proof. */
  readonly own: () => number | undefined;
  /** Takes another leader's proof, as a time of this member's monotonic clock: rather too early than too late. */
  readonly heard: (provenAtMs: number) => void;
}

export interface ElectionOptions {
  readonly client: EtcdClient;
  readonly layout: Layout;
  readonly clock: Clock;
  readonly log: Log;
  readonly leaderClock: LeaderClock;
  readonly self: LogMember;
  readonly leaseSeconds: number;
  readonly proof?: SourceProof | undefined;
  /** The place of the last delivered batch. */
  readonly place: () => number;
  /** Resolves once the batch of a place is delivered. @throws {WalError} closed. */
  readonly reached: (place: number) => Promise<void>;
  /** Resolves once everything in the log is delivered. @throws {WalError} */
  readonly caughtUp: () => Promise<void>;
  readonly elected: () => void;
  readonly deposed: () => void;
  /** Called after each write that etcd took, or that failed. */
  readonly observe: (error: EtcdError | undefined) => void;
}

/** A member, and the time of its clock when it last wrote its key. */
interface SeenMember extends LogMember {
  readonly askedAtMs: number;
}

interface Leader {
  readonly id: string;
  /** The revision in which its key was made: the fence. */
  readonly revision: number;
}

const heartbeatMs = 2_000;
const keptQuestions = 16;
const retryMs = 250;
// A leader counts its lease as ended this long before etcd may give it away.
const marginMs = 500;

export class Election {
  readonly #options: ElectionOptions;
  readonly #stopping = new AbortController();
  readonly #members = new Map<string, SeenMember>();
  /** The times that this run last wrote into its own key. */
  #asked: readonly number[] = [];
  #leader: Leader | undefined;
  #leaderSinceMs: number;
  readonly #reports = new Map<string, number>();
  /** The revision of the own key, while this member leads. */
  #ownRevision: number | undefined;
  /** The term that this member began; undefined until its first record is delivered. */
  #term: number | undefined;
  #leaseId: bigint | undefined;
  /** Until when the lease certainly lasts, by the monotonic clock. */
  #leaseEndsMs = 0;
  #campaigning: Promise<void> | undefined;
  #running: readonly Promise<void>[] = [];

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#leaderSinceMs = options.clock.monotonicMs();
  }

  /** See `LogMembership`. */
  get members(): readonly LogMember[] {
    const { self } = this.#options;
    return [self, ...[...this.#members.values()].filter(({ id }) => id !== self.id)];
  }

  get leaderId(): string | undefined {
    return this.#leader?.id;
  }

  /** See `LogMembership`. */
  get leaderSinceMs(): number {
    return this.#leaderSinceMs;
  }

  /** See `LogCounts`. */
  get reports(): ReadonlyMap<string, number> {
    return this.#reports;
  }

  /** The fence of this member's writes; undefined while it does not lead. */
  get fence(): number | undefined {
    return this.#options.clock.monotonicMs() < this.#leaseEndsMs ? this.#ownRevision : undefined;
  }

  /** Reads the leader's time, by which the keys end that are read from now on. @throws {EtcdError} */
  async hearLeader(): Promise<void> {
    const { client, layout } = this.#options;
    for (const key of (await client.range({ key: layout.leader })).keys) this.#put(key);
  }

  start(): void {
    this.#running = [this.#keepLease(), this.#watch(), this.#beat()];
  }

  /** Gives up the lease, so that another member may lead at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#depose();
    await Promise.all(this.#running);
    await this.#campaigning;
    const leaseId = this.#leaseId;
    if (leaseId !== undefined) await calmly(this.#options.client.leaseRevoke(leaseId, { withinMs: 1_000 }));
  }

  /** Call it when the record that begins this member's term is delivered. */
  termBegan(term: number): void {
    this.#term = term;
    this.#options.leaderClock.lead(term);
    void calmly(this.#putTime());
  }

  async #keepLease(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#holdOne();
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        if (error.reason === "leaseNotFound") this.#depose();
      }
      if (!signal.aborted) await clock.sleep(retryMs, signal);
    }
  }

  /** Takes a lease and renews it until it ends. */
  async #holdOne(): Promise<void> {
    const { client, clock, leaseSeconds } = this.#options;
    const { signal } = this.#stopping;
    const askedAtMs = clock.monotonicMs();
    const lease = await client.leaseGrant(leaseSeconds, { signal });
    this.#leaseId = lease.id;
    this.#leaseHeld(askedAtMs, lease.ttlSeconds);
    await this.#register(lease.id);
    const renewals = client.keepAlive(lease.id, { everyMs: (leaseSeconds * 1_000) / 3, signal });
    for await (const { sentAtMs, ttlSeconds } of renewals) this.#leaseHeld(sentAtMs, ttlSeconds);
  }

  #leaseHeld(fromMs: number, ttlSeconds: number): void {
    this.#leaseEndsMs = fromMs + ttlSeconds * 1_000 - marginMs;
  }

  async #register(lease: bigint): Promise<void> {
    const { client, layout, self, observe } = this.#options;
    await client.txn(
      { success: [{ put: { key: layout.member(self.id), value: this.#ownValue(), lease } }] },
      { repeat: true },
    );
    observe(undefined);
    this.#campaign();
  }

  /** Reads who runs and who leads, then follows every change. */
  async #watch(): Promise<void> {
    const { client, layout, clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const { keys, header } = await client.range(layout.membership, { signal });
        this.#members.clear();
        if (!keys.some(({ key }) => key === layout.leader)) this.#setLeader(undefined);
        for (const key of keys) this.#put(key);
        this.#changed();
        const startRevision = header.revision + 1;
        for await (const part of client.watch({ ...layout.membership, startRevision }, { signal })) this.#take(part);
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        await clock.sleep(retryMs, signal);
      }
    }
  }

  #take({ events }: EtcdWatchPart): void {
    for (const { kind, key } of events) {
      if (kind === "put") this.#put(key);
      else if (key.key === this.#options.layout.leader) this.#setLeader(undefined);
      else this.#members.delete(key.key.slice(this.#options.layout.member("").length));
    }
    this.#changed();
  }

  #put({ key, value, createRevision }: EtcdKey): void {
    const fields = objectFrom(parseJson(value));
    const id = textFrom(fields.id);
    if (key !== this.#options.layout.leader) {
      this.#members.set(id, memberFrom(id, fields));
      if (id !== this.#options.self.id) this.#reports.set(id, (this.#reports.get(id) ?? 0) + 1);
      return;
    }
    this.#setLeader({ id, revision: createRevision });
    if (fields.term === undefined || createRevision === this.#ownRevision) return;
    this.#options.leaderClock.heard({ atMs: numberFrom(fields.atMs), term: numberFrom(fields.term) });
    if (fields.proof !== undefined) void this.#hearProof(fields, objectFrom(fields.proof));
  }

  /**
   * Takes the leader's proof, once this member has delivered what the leader had then. The leader repeats the time that
   * it last read in this member's key: its own time is later than that, so the proof is not counted as too new.
   */
  async #hearProof({ atMs, asked }: StoredFields, proof: StoredFields): Promise<void> {
    const { self, reached, clock, leaderClock, proof: listener } = this.#options;
    const askedAtMs = objectFrom(asked)[self.id];
    // An earlier run of this member had another clock.
    if (typeof askedAtMs !== "number" || !this.#asked.includes(askedAtMs) || listener === undefined) return;
    const provenAtMs = numberFrom(proof.atMs) + askedAtMs - numberFrom(atMs);
    const toMonotonic = clock.monotonicMs() - leaderClock.ownMs;
    try {
      await reached(numberFrom(proof.place));
      listener.heard(provenAtMs + toMonotonic);
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
    }
  }

  #setLeader(leader: Leader | undefined): void {
    if (leader?.revision !== this.#leader?.revision) this.#leaderSinceMs = this.#options.clock.monotonicMs();
    this.#leader = leader;
  }

  #changed(): void {
    if (this.#ownRevision !== undefined && this.#leader?.revision !== this.#ownRevision) this.#depose();
    if (this.#leader === undefined) this.#campaign();
  }

  #campaign(): void {
    if (this.#stopping.signal.aborted || this.#ownRevision !== undefined || this.#leaseId === undefined) return;
    this.#campaigning ??= this.#run().finally(() => {
      this.#campaigning = undefined;
    });
  }

  /** Becomes the leader if there is none. */
  async #run(): Promise<void> {
    const { client, layout, self, caughtUp, elected, log, clock } = this.#options;
    const lease = this.#leaseId;
    if (lease === undefined) return;
    try {
      // A member that lags behind would make the others wait.
      await caughtUp();
      const value = bytesOf(JSON.stringify({ id: self.id }));
      const answer = await client.txn(
        {
          when: [{ key: layout.leader, is: "equal", createRevision: 0 }],
          success: [{ put: { key: layout.leader, value, lease } }],
          failure: [{ range: { key: layout.leader } }],
        },
        { repeat: true },
      );
      const found = answer.answers[0]?.keys[0];
      // A first try without an answer may have made the key.
      const isOwn = answer.succeeded || found?.lease === lease;
      if (!isOwn || this.#stopping.signal.aborted) return;
      const revision = answer.succeeded ? answer.header.revision : (found?.createRevision ?? 0);
      this.#setLeader({ id: self.id, revision });
      this.#ownRevision = revision;
      // Everything that an earlier leader wrote is before this: it can write no more.
      await caughtUp();
      if (this.fence !== revision) return this.#depose();
      log.info({ member: self.id }, "elected leader");
      elected();
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      log.warn({ err: error }, "election failed");
      this.#depose();
      await clock.sleep(retryMs, this.#stopping.signal);
    }
  }

  #depose(): void {
    const wasLeading = this.#ownRevision !== undefined;
    this.#ownRevision = undefined;
    this.#term = undefined;
    if (!wasLeading) return;
    this.#options.log.info({ member: this.#options.self.id }, "leads no more");
    this.#options.deposed();
  }

  /** Every two seconds: the leader's time, or a campaign where nobody leads. */
  async #beat(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    for (let isTaken = true; ; ) {
      // A failed write is repeated soon: while it fails, this member refuses records.
      await clock.sleep(isTaken ? heartbeatMs : retryMs, signal);
      if (signal.aborted) return;
      if (this.#ownRevision !== undefined && this.fence === undefined) this.#depose();
      isTaken = await calmly(this.#putTime());
      if (this.#leader === undefined) this.#campaign();
    }
  }

  #ownValue(): Uint8Array {
    const { self, leaderClock } = this.#options;
    const askedAtMs = leaderClock.ownMs;
    this.#asked = [...this.#asked.slice(1 - keptQuestions), askedAtMs];
    return bytesOf(JSON.stringify({ ...self, askedAtMs }));
  }

  #leaderValue(term: number | undefined): Uint8Array {
    const { self, leaderClock, clock, proof, place } = this.#options;
    const asked = Object.fromEntries([...this.#members.values()].map(({ id, askedAtMs }) => [id, askedAtMs]));
    const provenAtMs = proof?.own();
    const atMs = leaderClock.ownMs;
    const provenBefore = provenAtMs === undefined ? undefined : clock.monotonicMs() - provenAtMs;
    const proven = provenBefore === undefined ? undefined : { atMs: Math.floor(atMs - provenBefore), place: place() };
    return bytesOf(JSON.stringify({ id: self.id, term, atMs, asked, proof: proven }));
  }

  /** The time of the leader; of another member its own key, to learn whether etcd takes writes. */
  async #putTime(): Promise<void> {
    const { client, layout, self, observe } = this.#options;
    const [lease, revision, term] = [this.#leaseId, this.#ownRevision, this.#term];
    if (lease === undefined) return;
    const member: EtcdOperation = { put: { key: layout.member(self.id), value: this.#ownValue(), lease } };
    const leader: EtcdOperation = { put: { key: layout.leader, value: this.#leaderValue(term), lease } };
    const isLeader = revision !== undefined && term !== undefined;
    const when = isLeader ? [{ key: layout.leader, is: "equal", createRevision: revision } as const] : [];
    try {
      const answer = await client.txn({ when, success: [isLeader ? leader : member] }, { repeat: true });
      if (!answer.succeeded && this.#ownRevision === revision) this.#depose();
      observe(undefined);
    } catch (error) {
      if (error instanceof EtcdError && error.reason !== "leaseNotFound") observe(error);
      throw error;
    }
  }
}

function memberFrom(id: string, fields: StoredFields): SeenMember {
  const urls = Array.isArray(fields.clientUrls) ? fields.clientUrls : [];
  const askedAtMs = numberFrom(fields.askedAtMs);
  return { id, name: textFrom(fields.name), clientUrls: urls.map(textFrom), askedAtMs };
}

/** Work whose failure shows elsewhere. @returns whether it succeeded. */
async function calmly(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (!(error instanceof EtcdError)) throw error;
    return false;
  }
}
