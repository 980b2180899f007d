/**
 * Decides which member leads. Each member has a lease and a key under it; the leader has one more key. A member makes
 * the leader's key only if there is none, and every fenced transaction requires this very key. So a leader whose lease
 * has ended changes nothing, whatever it believes.
 *
 * Every two seconds the leader puts the time of its clock into its key, and whenever another member asks for it. Each
 * member asks every two seconds, by its own key, and as soon as another member leads.
 */

import { EtcdError, type EtcdKey, type EtcdTxn } from "../../../packages/etcd-client/src/etcd-client.ts";
import type { Log } from "../../lib/log.ts";
import { type LogMember, WalError } from "../core/log-port.ts";
import { OwnMember, type OwnMemberOptions } from "./lease.ts";
import { SeenMembers, type SeenMembersOptions } from "./members.ts";

interface ElectionOptions extends OwnMemberOptions, Pick<SeenMembersOptions, "proof" | "reached" | "isVerified"> {
  readonly log: Log;
  /** The place of the last delivered batch. */
  readonly place: () => number;
  /** Resolves once everything in the log is delivered. @throws {WalError} */
  readonly caughtUp: () => Promise<void>;
  readonly elected: () => void;
  readonly deposed: () => void;
  /** Called after each write that etcd took, or that failed. */
  readonly observe: (error: EtcdError | undefined) => void;
  /** Called when another run has this member's key. */
  readonly replaced: (error: WalError) => void;
}

const heartbeatMs = 2_000;
const retryMs = 250;

export class Election {
  readonly #options: ElectionOptions;
  readonly #stopping = new AbortController();
  readonly #own: OwnMember;
  readonly #seen: SeenMembers;
  /** The revision of the own key, while this member leads. */
  #ownRevision: number | undefined;
  /** The term that this member began; undefined until its first record is delivered. */
  #term: number | undefined;
  /** A leader's key without a lease, and since when this member knows it. */
  #stranger: { readonly modRevision: number; readonly sinceMs: number } | undefined;
  /** The revision of the leader that this member saw last. */
  #knownLeader: number | undefined;
  #campaigning: Promise<void> | undefined;
  /** Ends the present wait for the next heartbeat. */
  #poked = new AbortController();
  #running: readonly Promise<void>[] = [];

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#own = new OwnMember(options);
    this.#seen = new SeenMembers({
      ...options,
      hasAsked: (atMs) => this.#own.hasAsked(atMs),
      isOwnTerm: (revision) => revision === this.#ownRevision,
      asked: () => {
        if (this.#term !== undefined) this.#poked.abort();
      },
      changed: () => this.#changed(),
    });
  }

  /** See `LogMembership`. */
  get members(): readonly LogMember[] {
    const { self } = this.#options;
    return [self, ...[...this.#seen.all.values()].filter(({ id }) => id !== self.id)];
  }

  get seen(): Pick<SeenMembers, "leader" | "leaderSinceMs" | "reports" | "strangeKeys" | "hearLeader"> {
    return this.#seen;
  }

  /** The fence of this member's writes; undefined while it does not lead. */
  get fence(): number | undefined {
    return this.#own.isAlive ? this.#ownRevision : undefined;
  }

  /**
   * Becomes a member, once no other davit has this member's URL. If etcd takes no writes now, `start` tries again.
   * @throws {WalError} locked, when another davit runs. {EtcdError}
   */
  async join(): Promise<void> {
    await this.#own.free(this.#stopping.signal);
    await this.#join().catch((error: unknown) => {
      if (!(error instanceof EtcdError)) throw error;
    });
  }

  /** Follows the other members, and leads if there is no leader. */
  start(): void {
    this.#running = [this.#keepLease(), this.#seen.follow(this.#stopping.signal), this.#beat()];
  }

  /** Gives up the lease, so that another member may lead at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#depose();
    await Promise.all(this.#running);
    await this.#campaigning;
    await this.#own.leave();
  }

  /** Call it when the record that begins this member's term is delivered. */
  termBegan(term: number): void {
    this.#term = term;
    this.#options.leaderClock.lead(term);
    void this.#putTime();
  }

  async #keepLease(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#campaign();
        await this.#own.keepLease(signal);
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        if (error.reason === "leaseNotFound") this.#depose();
      }
      await clock.sleep(retryMs, signal);
      if (!signal.aborted) await this.#join().catch((error: unknown) => this.#writeFailed(error));
    }
  }

  async #join(): Promise<void> {
    await this.#own.join(this.#stopping.signal);
    this.#options.observe(undefined);
  }

  #changed(): void {
    const { leader } = this.#seen;
    if (leader !== undefined && leader.revision !== this.#knownLeader) this.#poked.abort();
    this.#knownLeader = leader?.revision;
    if (this.#ownRevision !== undefined && leader?.revision !== this.#ownRevision) this.#depose();
    if (leader === undefined) this.#campaign();
  }

  #campaign(): void {
    if (this.#stopping.signal.aborted || this.#ownRevision !== undefined || this.#own.leaseId === undefined) return;
    this.#campaigning ??= this.#run().finally(() => {
      this.#campaigning = undefined;
    });
  }

  /** Becomes the leader if there is none. */
  async #run(): Promise<void> {
    const { self, caughtUp, elected, log, clock, replaced } = this.#options;
    const lease = this.#own.leaseId;
    if (lease === undefined) return;
    try {
      // A member that lags behind would make the others wait.
      await caughtUp();
      const revision = await this.#claim(lease);
      if (revision === undefined || this.#stopping.signal.aborted) return;
      this.#seen.setLeader({ id: self.id, revision });
      this.#ownRevision = revision;
      // Everything that an earlier leader wrote is before this: it can write no more.
      await caughtUp();
      if (this.fence !== revision) return this.#depose();
      log.info({ member: self.id }, "elected leader");
      elected();
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      if (error instanceof WalError && error.reason === "locked") return replaced(error);
      log.warn({ err: error }, "election failed");
      this.#depose();
      await clock.sleep(retryMs, this.#stopping.signal);
    }
  }

  /**
   * Makes the leader's key, if there is none. The leader also has a member's key, so a davit with its URL finds it.
   * @returns the revision of the key; undefined if another member leads. @throws {WalError} locked. {EtcdError}
   */
  async #claim(lease: bigint): Promise<number | undefined> {
    const { client, layout, self } = this.#options;
    const key = layout.leader;
    const { succeeded, header, answers } = await client.txn(
      {
        when: [{ key, is: "equal", createRevision: 0 }, this.#own.condition],
        success: [{ put: { key, value: JSON.stringify({ id: self.id }), lease } }],
        failure: [{ range: { key } }],
      },
      { repeat: true },
    );
    if (succeeded) return header.revision;
    const found = answers[0]?.keys[0];
    if (found !== undefined && (await this.#removedStranger(found))) return await this.#claim(lease);
    // A first try without an answer may have made the key.
    if (found !== undefined) return found.lease === lease ? found.createRevision : undefined;
    await this.#own.register(lease);
    return await this.#claim(lease);
  }

  /**
   * Removes the leader's key if no leader has it: somebody overwrote it, and so it has no lease. A live
   * leader writes it again, so this waits for the time of a lease. @returns true if it is gone. @throws {EtcdError}
   */
  async #removedStranger({ key, lease, modRevision }: EtcdKey): Promise<boolean> {
    const { client, clock, leaseSeconds, log } = this.#options;
    if (lease !== 0n) return false;
    const nowMs = clock.monotonicMs();
    if (this.#stranger?.modRevision !== modRevision) this.#stranger = { modRevision, sinceMs: nowMs };
    if (nowMs - this.#stranger.sinceMs < leaseSeconds * 1_000) return false;
    const when = [{ key, is: "equal", modRevision } as const];
    const { succeeded } = await client.txn({ when, success: [{ delete: { key } }] }, { repeat: true });
    if (succeeded) log.warn({ key }, "removed a leader's key that no davit wrote");
    return succeeded;
  }

  /**
   * Removes the leader's key where this member has it and does not lead: its lease outlasted an outage of etcd, or it
   * could not catch up. Nobody else could lead. The next key has another revision, so it takes no late record.
   */
  async #giveUpLeading(): Promise<void> {
    const { client, layout, self } = this.#options;
    const { leader } = this.#seen;
    if (leader?.id !== self.id || this.#ownRevision !== undefined || this.#campaigning !== undefined) return;
    const key = layout.leader;
    const when = [{ key, is: "equal", createRevision: leader.revision } as const];
    try {
      await client.txn({ when, success: [{ delete: { key } }] }, { repeat: true });
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
    }
  }

  /** etcd has no key of this term: no member leads, or another one. */
  #deposeFrom(revision: number): void {
    if (this.#ownRevision !== revision) return;
    this.#depose();
    if (this.#seen.leader?.revision === revision) this.#seen.setLeader(undefined);
  }

  #depose(): void {
    const wasLeading = this.#ownRevision !== undefined;
    this.#ownRevision = undefined;
    this.#term = undefined;
    if (!wasLeading) return;
    this.#options.log.info({ member: this.#options.self.id }, "leads no more");
    this.#options.deposed();
  }

  /** Every two seconds, or when poked: the leader's time, or a campaign where nobody leads. */
  async #beat(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    for (let isTaken = true; ; ) {
      // A failed write is repeated soon: while it fails, this member refuses records.
      await clock.sleep(
        isTaken ? heartbeatMs : retryMs,
        isTaken ? AbortSignal.any([this.#poked.signal, signal]) : signal,
      );
      if (signal.aborted) return;
      // The next heartbeat answers the members that ask from now on.
      this.#poked = new AbortController();
      if (this.#ownRevision !== undefined && this.fence === undefined) this.#depose();
      await this.#giveUpLeading();
      isTaken = await this.#putTime();
      if (this.#seen.leader === undefined) this.#campaign();
    }
  }

  #leaderValue(term: number): string {
    const { self, leaderClock, clock, proof, place } = this.#options;
    const asked = Object.fromEntries([...this.#seen.all.values()].map(({ id, askedAtMs }) => [id, askedAtMs]));
    const provenAtMs = proof?.own();
    const atMs = leaderClock.ownMs;
    const provenBefore = provenAtMs === undefined ? undefined : clock.monotonicMs() - provenAtMs;
    const proven = provenBefore === undefined ? undefined : { atMs: Math.floor(atMs - provenBefore), place: place() };
    return JSON.stringify({ id: self.id, term, atMs, asked, proof: proven });
  }

  /**
   * Writes the time of the leader; of another member its own key, to learn whether etcd takes writes.
   * @returns false if the write failed.
   */
  async #putTime(): Promise<boolean> {
    const { client, observe } = this.#options;
    const [lease, revision, term] = [this.#own.leaseId, this.#ownRevision, this.#term];
    if (lease === undefined) return true;
    const isLeader = revision !== undefined && term !== undefined;
    const txn = isLeader ? this.#leaderRenewal(lease, revision, term) : this.#own.renewal(lease);
    try {
      const answer = await client.txn(txn, { repeat: true });
      const isRegistered = isLeader ? this.#seen.all.has(this.#options.self.id) : answer.succeeded;
      if (!isRegistered) await this.#own.register(lease);
      if (!answer.succeeded && isLeader) this.#deposeFrom(revision);
      observe(undefined);
      return true;
    } catch (error) {
      this.#writeFailed(error);
      return false;
    }
  }

  #writeFailed(error: unknown): void {
    const { observe, replaced } = this.#options;
    if (error instanceof WalError && error.reason === "locked") replaced(error);
    else if (!(error instanceof EtcdError)) throw error;
    else if (error.reason !== "leaseNotFound") observe(error);
  }

  #leaderRenewal(lease: bigint, createRevision: number, term: number): EtcdTxn {
    const key = this.#options.layout.leader;
    return {
      when: [{ key, is: "equal", createRevision }],
      success: [{ put: { key, value: this.#leaderValue(term), lease } }],
    };
  }
}
