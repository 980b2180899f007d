/**
 * The log in etcd v3, which several davits write. etcd decides the order; members send each other nothing and keep
 * nothing on disk. `layout.ts` has the keys.
 *
 * A record is committed when its batch is in etcd. Every member delivers the same records in the same order, with the
 * same sequences. One member leads; only its fenced records are taken (`election.ts`).
 *
 * If etcd is restored from a backup, or emptied, a running member has applied records that are gone. It loses its log:
 * it applies and writes nothing more, and its reads stay as they are, so no answer rolls back. A start is allowed. It
 * has no memory of what is gone, and the operator who restored a backup wants its state. So the cure is to restart
 * every member.
 */

import { EtcdClient, type EtcdClientOptions, EtcdError } from "../../../packages/etcd-client/src/etcd-client.ts";
import { type Clock, steadyClock } from "../../lib/clock.ts";
import { assert } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import {
  type CommittedListener,
  type LogIdentity,
  type LogMember,
  type LogMembership,
  type LogPort,
  type LogStatus,
  type MembershipListener,
  type ProposeOptions,
  randomId,
  type Snapshot,
  WalError,
} from "../core/log-port.ts";
import { Appender } from "./appender.ts";
import { fetchLarge } from "./batches.ts";
import { type ClusterPlace, clusterIdOf, idOf } from "./cluster-id.ts";
import { Delivery, type LogPosition, logStart, noBatches } from "./delivery.ts";
import { Election } from "./election.ts";
import { etcdFailure, LogHealth, wentBack } from "./health.ts";
import { Layout } from "./layout.ts";
import { LeaderClock } from "./leader-clock.ts";
import { refuseMoved } from "./lease.ts";
import type { SourceProof } from "./members.ts";
import { type EtcdSnapshot, EtcdSnapshots } from "./snapshots.ts";
import { Tail } from "./tail.ts";

export interface EtcdLogOptions extends Omit<EtcdClientOptions, "random" | "clock" | "log">, ClusterPlace {
  /** This davit: a name for people, and where clients reach its store. The URLs identify it. */
  readonly member: Omit<LogMember, "id">;
  readonly clock: Clock;
  readonly log: Log;
  /** How long the leader may be unheard before another member leads; 5 unless given. */
  readonly leaseSeconds?: number;
  /** False where others use the same etcd: then it is theirs to compact. True unless given. */
  readonly compact?: boolean;
  readonly proof?: SourceProof;
  /** Called with the time that each transaction of a batch took. */
  readonly observeSyncSeconds?: (seconds: number) => void;
  /** Beyond this, proposals are refused while others wait. */
  readonly maxWaitingBytes?: number;
}

// Short enough that a leader's end delays expiry and the controller by some seconds only.
const presetLeaseSeconds = 5;
// etcd notices the end of a leader's lease within half a second. Then the next leader needs some transactions.
const electionSeconds = 2;
const missingText = "Reading the log in etcd: batches are missing, and no snapshot has them; restore a backup";
const presetWaitingBytes = 256 * 1024 * 1024;

/** What is known once the log was read. */
interface LogParts {
  readonly delivery: Delivery;
  readonly appender: Appender;
  readonly tail: Tail;
  readonly election: Election;
}

export class EtcdLog implements LogPort {
  // A snapshot begins an epoch. The third one deletes the epochs before the first one. The fifth one has etcd drop all
  // revisions before the fourth one, and so the deleted keys.
  readonly snapshotsPerPurge = 5;
  readonly #options: EtcdLogOptions;
  readonly #client: EtcdClient;
  readonly #layout: Layout;
  readonly #snapshots: EtcdSnapshots;
  readonly #leaderClock: LeaderClock;
  readonly #clusterId: string;
  readonly #run: string;
  readonly #self: LogMember;
  readonly membership: LogMembership;
  #loaded: LogPosition = logStart;
  #opened: LogParts | undefined;
  readonly #health: LogHealth;
  #stopping: Promise<void> | undefined;

  private constructor(options: EtcdLogOptions, client: EtcdClient, clusterId: string) {
    this.#options = options;
    this.#client = client;
    this.#layout = new Layout(options.prefix);
    const { clock, compact = true } = options;
    this.#snapshots = new EtcdSnapshots({ client, layout: this.#layout, compact, clock });
    this.#leaderClock = new LeaderClock(steadyClock(options.clock));
    this.#clusterId = clusterId;
    this.#run = randomId(options.random).toString(16);
    const id = idOf([clusterId, ...options.member.clientUrls].join("\n"));
    this.#self = { ...options.member, id };
    const { leaseSeconds = presetLeaseSeconds } = options;
    this.membership = membershipOf(this.#self, { leaseSeconds, leaderClock: this.#leaderClock }, () => this.#opened);
    this.#health = new LogHealth(options.log);
  }

  /**
   * Connects to etcd, and begins a cluster under the prefix if there is none.
   * @throws {WalError} one sentence for the operator.
   */
  static async open(options: EtcdLogOptions): Promise<EtcdLog> {
    const { random, clock, log } = options;
    const client = EtcdClient.open({ ...options, clock, log, random: () => (random(1)[0] ?? 0) / 256 });
    try {
      return new EtcdLog(options, client, await clusterIdOf(client, options));
    } catch (error) {
      client.close();
      throw error instanceof EtcdError ? etcdFailure("Opening the log in etcd", error) : error;
    }
  }

  get identity(): LogIdentity {
    const term = this.#opened?.delivery.position.term ?? 0;
    return { clusterId: this.#clusterId, memberId: this.#self.id, term, run: this.#run };
  }

  get status(): LogStatus {
    return this.#health.status;
  }

  get trouble(): string | undefined {
    return this.#health.trouble;
  }

  async onCommitted(listener: CommittedListener, membership: MembershipListener): Promise<void> {
    assert(this.#opened === undefined && this.#stopping === undefined, "A log is opened once");
    try {
      await this.#open(listener, membership);
    } catch (error) {
      throw error instanceof EtcdError ? etcdFailure("Reading the log in etcd", error) : error;
    }
  }

  propose(bytes: Uint8Array, options?: ProposeOptions): Promise<number> {
    const { status } = this;
    // etcd may be back before the next heartbeat shows it, so davit tries a write even if the last one failed.
    if (this.#opened === undefined || (status !== "writable" && status !== "readOnly")) {
      const reason = status === "full" ? "noSpace" : "readOnly";
      return Promise.reject(new WalError(reason, `Writing the log: ${this.trouble ?? "it is closed"}`));
    }
    const { appender } = this.#opened;
    const { maxWaitingBytes = presetWaitingBytes } = this.#options;
    if (appender.queuedBytes > 0 && appender.queuedBytes + bytes.length > maxWaitingBytes) {
      return Promise.reject(new WalError("overloaded", "Writing the log: too much waits for etcd; try again later"));
    }
    return appender.propose(bytes, options);
  }

  /** Batches are keys of their own: there is no segment to end. */
  endSegment(): void {}

  async loadSnapshot(): Promise<Snapshot | undefined> {
    assert(this.#opened === undefined, "A snapshot is loaded before the log is read");
    try {
      const snapshot = await this.#snapshots.load();
      this.#loaded = snapshot?.position ?? logStart;
      if (snapshot !== undefined) this.#leaderClock.read(snapshot.clock);
      return snapshot;
    } catch (error) {
      throw error instanceof EtcdError ? etcdFailure("Reading a snapshot in etcd", error) : error;
    }
  }

  async saveSnapshot(sequence: number, pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    assert(this.#opened !== undefined, "A snapshot is of a log that was read");
    const { delivery, election } = this.#opened;
    const { position } = delivery;
    assert(position.sequence === sequence, "A snapshot is of the last delivered record");
    const leaderRevision = election.fence;
    if (leaderRevision === undefined) throw new WalError("deposed", "Saving a snapshot: another member leads");
    const { clock, log } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      const clock = { atMs: this.#leaderClock.ownMs, term: position.term };
      await this.#snapshots.save({ position, leaderRevision, clock }, pieces);
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      log.error({ err: error }, "snapshot cannot be kept");
      throw etcdFailure("Saving a snapshot", error);
    }
    log.info({ sequence, seconds: (clock.monotonicMs() - startMs) / 1_000 }, "snapshot saved");
  }

  /** A saved snapshot has deleted what is older than the one before it. */
  releaseBefore(): Promise<void> {
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #open(listener: CommittedListener, membership: MembershipListener): Promise<void> {
    const { clock, log, leaseSeconds = presetLeaseSeconds } = this.#options;
    const shared = { client: this.#client, layout: this.#layout, clock, leaderClock: this.#leaderClock };
    const opened = (): LogParts => {
      assert(this.#opened !== undefined, "The parts of the log call each other only when all are made");
      return this.#opened;
    };
    const delivery = () => opened().delivery;
    const epoch = this.#layout.epochIn((await this.#client.range({ key: this.#layout.epoch })).keys[0]);
    if (epoch === undefined) throw this.#layout.strangeEpoch();
    const appender = new Appender({
      ...shared,
      run: this.#run,
      epoch,
      delivery,
      leaderRevision: () => opened().election.fence,
      look: () => opened().tail.poke(),
      wentBack: () => this.#lose(wentBack()),
      lost: (error) => this.#lose(error),
      observe: (error, seconds) => {
        if (error === undefined) this.#options.observeSyncSeconds?.(seconds);
        this.#health.wrote(error);
      },
    });
    const tail: Tail = new Tail({
      ...shared,
      log,
      delivery,
      leftBehind: () => this.#reload(opened(), membership),
      wentBack: () => this.#lose(wentBack()),
      moved: (error) => this.#lose(error),
    });
    const election = new Election({
      ...shared,
      log,
      self: this.#self,
      run: this.#run,
      leaseSeconds,
      proof: this.#options.proof,
      place: () => delivery().position.place,
      reached: (place) => delivery().reached(place),
      isVerified: () => tail.isVerified(),
      caughtUp: () => tail.barrier(),
      elected: () => membership.elected(),
      deposed: () => membership.deposed(),
      observe: (error) => this.#health.wrote(error),
      replaced: (error) => this.#lose(error),
    });
    const first = new Delivery({
      from: this.#loaded,
      listener,
      own: appender,
      clockRead: (reading) => this.#leaderClock.read(reading),
      termBegan: (term, id) => {
        if (id.startsWith(`${this.#run}/`)) election.termBegan(term);
      },
      fetch: (name, frame) => fetchLarge(shared, name, frame),
      stalled: () => tail.poke(),
      wentBack: () => this.#lose(wentBack()),
      failed: (error) => this.#lose(error),
    });
    this.#opened = { delivery: first, appender, tail, election };
    await this.#join(this.#opened);
  }

  /** Reads the log to its end, becomes a member, and opens the log for proposals. @throws {EtcdError}; {WalError} */
  async #join({ delivery, tail, election }: LogParts): Promise<void> {
    const place = { client: this.#client, layout: this.#layout };
    await tail.catchUp();
    tail.start();
    await tail.settled();
    await election.seen.hearLeader();
    await election.join();
    // A move that begins later finds this member.
    await refuseMoved(place);
    this.#options.log.info({ members: "etcd", records: delivery.position.sequence }, "log opened");
    delivery.countFromHere();
    this.#health.opened();
    // A log that was lost while this member joined delivers nothing any more, and is not lost a second time.
    await delivery.reached(0);
    election.start();
  }

  /** Goes on from a snapshot, because the next batches are deleted. @throws {EtcdError}; {WalError} */
  async #reload({ delivery, appender }: LogParts, membership: MembershipListener): Promise<void> {
    const { position } = delivery;
    // Or the watch, which may still bring those batches, would deliver them while the snapshot is read.
    delivery.hold();
    let from = position;
    try {
      const snapshot = await this.#newerSnapshot(position);
      appender.rejectSent(new WalError("appendFailed", "Writing the log: the outcome is unknown"));
      appender.skipTo(snapshot.position.epoch);
      await membership.leftBehind(snapshot);
      this.#leaderClock.read(snapshot.clock);
      from = snapshot.position;
    } finally {
      delivery.goOn(from);
    }
  }

  /** The snapshot from which delivery goes on, after batches behind `position` were deleted. */
  async #newerSnapshot({ sequence }: LogPosition): Promise<EtcdSnapshot> {
    const snapshot = await this.#snapshots.load();
    if (snapshot !== undefined && snapshot.position.sequence > sequence) return snapshot;
    // Batches are deleted only after a snapshot has them. So after the start, this shows that etcd has another history.
    const error = this.status === "closed" ? new WalError("damaged", missingText) : wentBack();
    this.#lose(error);
    throw error;
  }

  /** Nothing more is delivered: what is in etcd is not the log that this member knows. */
  #lose(error: unknown): void {
    if (!(error instanceof WalError) && !(error instanceof EtcdError)) throw error;
    if (this.status === "lost" || this.#stopping !== undefined) return;
    const failure = error instanceof EtcdError ? etcdFailure("Reading the log in etcd", error) : error;
    // The start waits for the end of the log, and fails with this.
    this.#opened?.delivery.stop(failure);
    if (this.status === "closed") return;
    this.#options.log.error({ err: error }, "log is lost");
    this.#health.lost(failure.message);
    this.#opened?.appender.end(failure);
    void this.#opened?.election.stop();
  }

  async #stop(): Promise<void> {
    const closed = new WalError("closed", "Writing the log: it is closed");
    const opened = this.#opened;
    this.#health.closed();
    if (opened !== undefined) {
      await opened.appender.drain();
      await opened.election.stop();
      opened.appender.end(closed);
      opened.delivery.stop(closed);
      this.#client.close();
      await opened.tail.stop();
    }
    this.#client.close();
  }
}

const noKeys: ReadonlySet<string> = new Set();

/** @param opened undefined until the log is read. */
function membershipOf(
  self: LogMember,
  { leaseSeconds, leaderClock }: { readonly leaseSeconds: number; readonly leaderClock: LeaderClock },
  opened: () => LogParts | undefined,
): LogMembership {
  const election = () => opened()?.election;
  return {
    get isLeader() {
      return election()?.fence !== undefined;
    },
    get leaderId() {
      return election()?.seen.leader?.id;
    },
    get leaderSinceMs() {
      return election()?.seen.leaderSinceMs;
    },
    get counts() {
      const { sentBatches, receivedBatches } = opened()?.delivery.counts ?? noBatches;
      return { sentBatches, receivedBatches, reports: election()?.seen.reports ?? new Map<string, number>() };
    },
    get completeAtMs() {
      return opened()?.tail.completeAtMs;
    },
    electionMs: (leaseSeconds + electionSeconds) * 1_000,
    get members() {
      return election()?.members ?? [self];
    },
    get strangeKeys() {
      return election()?.seen.strangeKeys ?? noKeys;
    },
    now: () => leaderClock.now(),
    nowMs: () => leaderClock.now().atMs,
    get behindMs() {
      return leaderClock.behindMs;
    },
    ownMs: () => leaderClock.ownMs,
    barrier: async () => {
      const tail = opened()?.tail;
      if (tail === undefined) throw new WalError("closed", "Reading the end of the log: it is closed");
      await tail.barrier();
    },
  };
}
