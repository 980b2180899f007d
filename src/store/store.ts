/**
 * Keeps keys and values on disk. Every change has an index. A watch skips no change: it ends instead.
 *
 * The store encodes a command, logs it, and applies it when the log delivers it. Later starts apply it again. Only
 * delivered commands change the tree. So readers see only what is on disk, and a replay ends in the same state.
 *
 * Reads skip a node whose ttl is over. Before a write that would find a due node, the store logs its end. Times are
 * by a clock that never steps during a run. A start keeps the remaining ttl of each node, even if the computer's clock
 * was changed (`StateMachine`). Only nodes below `agelessRoot` get their whole ttl again. These are davit's tombstones:
 * they must not end before davit has read its sources again.
 *
 * The store knows no documents and no HTTP. Its callers decide which client may write or read a key.
 */

import type { Clock } from "../lib/clock.ts";
import { assert } from "../lib/errors.ts";
import { nextTurn } from "../lib/slices.ts";
import { type BesideTree, backupOf } from "./backup/backup.ts";
import { type Command, proposeOptions, type Submission, type SubmitOptions } from "./command/command.ts";
import { Expiry } from "./command/expiry.ts";
import { type CountName, OperationCounts } from "./command/operation-counts.ts";
import { Quota } from "./command/quota.ts";
import {
  type LogIdentity,
  type LogMembership,
  type LogPort,
  type LogStatus,
  type LogTime,
  WalError,
  type WalFailure,
} from "./core/log-port.ts";
import { type NodeRecord, type StoreEvent, type StorePath, storePath } from "./core/node.ts";
import { StoreError } from "./core/refusal.ts";
import { Leadership, type LeadershipListener } from "./leadership.ts";
import { type Applied, Replica, type StoreIndexes } from "./replica.ts";
import { type SnapshotInterval, Snapshotter } from "./snapshot/snapshotter.ts";
import type { Change } from "./tree/change.ts";
import type { Listing, ListOptions } from "./tree/listing.ts";
import type { Tree } from "./tree/tree.ts";
import { changedFiles, type FileChange, filesAmong } from "./watch/changed-files.ts";
import { type WatchHandle, WatchHub, type WatchListener, type WatchOptions } from "./watch/watch-hub.ts";
import { WholeTtl } from "./whole-ttl.ts";

export interface StoreOptions {
  /** A log that was not replayed yet. The store replays it and stops it. */
  readonly log: LogPort;
  readonly clock: Clock;
  /**
   * The quota of names and values, in bytes; none unless given. It does not apply to batches: only davit writes them.
   */
  readonly quotaBytes?: number | undefined;
  /** The most watches at a time; no limit unless given. */
  readonly maxWatchers?: number | undefined;
  /** How much is logged between two snapshots; 100,000 records or 64 MiB unless given. */
  readonly snapshotInterval?: SnapshotInterval | undefined;
  /** Nodes below this directory get their whole ttl again at each start. If it is absent, no node does. */
  readonly agelessRoot?: string | undefined;
  /** Called for each record that the log refuses, with the reason. */
  readonly observeFailure?: ((reason: WalFailure) => void) | undefined;
}

/** Gets files and their changes. It has the form of the model's `FeedListener`, which the store does not import. */
interface FollowListener {
  replaced(files: Iterable<readonly [path: string, text: string]>): void;
  /** Gets the changes of one command, at most one for each path, and the index of the last of them. */
  changed(changes: readonly FileChange[], index: number): void;
}

export class Store {
  readonly #log: LogPort;
  readonly #nowMs: () => number;
  readonly #replica: Replica;
  readonly #tree: Tree;
  readonly #hub: WatchHub;
  readonly #quota: Quota;
  readonly #expiry: Expiry;
  readonly #wholeTtl: WholeTtl;
  readonly #leadership: Leadership;
  readonly #snapshotter: Snapshotter;
  readonly #counts = new OperationCounts();
  readonly #followers = new Set<{ readonly prefix: StorePath; readonly listener: FollowListener }>();

  private constructor({ log, clock, quotaBytes, maxWatchers, snapshotInterval, ...more }: StoreOptions) {
    this.#log = log;
    this.#nowMs = log.membership.nowMs;
    this.#replica = new Replica(log, more.agelessRoot, more.observeFailure);
    const { state } = this.#replica;
    this.#tree = state.tree;
    this.#hub = new WatchHub(state.history, maxWatchers, (work) => void nextTurn().then(work));
    this.#quota = new Quota(this.#tree, quotaBytes);
    this.#expiry = new Expiry({
      tree: this.#tree,
      clock,
      nowMs: this.#nowMs,
      leaderWaitMs: log.membership.electionMs,
      submit: (commands) => this.#replica.propose({ kind: "batch", commands }, { frees: true, fenced: true }),
    });
    this.#wholeTtl = new WholeTtl({
      tree: this.#tree,
      clock,
      membership: log.membership,
      extend: (command) => this.#replica.propose(command, { frees: true }),
    });
    this.#leadership = new Leadership({
      membership: log.membership,
      clock,
      beginTerm: () => this.#replica.beginTerm(),
    });
    this.#leadership.onChange((isLeading) => {
      this.#expiry.lead(isLeading);
      if (isLeading) this.#snapshotter.takeIfDue();
    });
    this.#snapshotter = new Snapshotter({
      log,
      machine: state,
      interval: snapshotInterval,
      sequence: () => this.#replica.indexes.raftIndex,
      mark: () => this.#replica.mark(),
    });
  }

  /**
   * Builds the state from the newest snapshot and the later log.
   * @throws {WalError} when the snapshot or the log cannot be read. It stops the log first.
   */
  static async open(options: StoreOptions): Promise<Store> {
    const store = new Store(options);
    try {
      await store.#replica.open({
        applied: (command, result, recordBytes) => store.#applied(command, result, recordBytes),
        replaced: (sequence) => store.#replaced(sequence),
        elected: () => store.#leadership.elected(),
        deposed: () => store.#leadership.deposed(),
      });
    } catch (error) {
      await options.log.stop();
      throw error;
    }
    if (options.log.membership.isLeader) store.#lead();
    return store;
  }

  get indexes(): StoreIndexes {
    return this.#replica.indexes;
  }

  get identity(): LogIdentity {
    return this.#log.identity;
  }

  /** The id of the run that made the last change (`StateMachine`); undefined if an older davit made it. */
  get run(): string | undefined {
    return this.#replica.state.origin.run;
  }

  /** Whether the store can be written. Reads work in every status. */
  get status(): LogStatus {
    return this.#log.status;
  }

  /** See `LogPort`. */
  get trouble(): string | undefined {
    return this.#log.trouble;
  }

  /** What this davit knows about the members of the store's log. */
  get membership(): LogMembership {
    return this.#log.membership;
  }

  /** Calls `listener` now if this davit leads the store, and whenever it begins or stops leading. */
  onLeadership(listener: LeadershipListener): void {
    this.#leadership.onChange(listener);
  }

  /** How often each operation was requested since the start. */
  get counts(): ReadonlyMap<CountName, number> {
    return this.#counts.all;
  }

  /** The bytes that the quota counts: all names and values in UTF-8, and a slash for each name. */
  get bytes(): number {
    return this.#tree.bytes;
  }

  /** How many watches are open. */
  get watcherCount(): number {
    return this.#hub.count;
  }

  /** How many listings, snapshots and backups are running. */
  get walkCount(): number {
    return this.#tree.walkCount;
  }

  /**
   * Executes a command. It resolves when the command is on disk and applied, and followers are notified. A node with a
   * ttl then has its whole ttl left, less at most 100 ms.
   * @param options only for a batch.
   * @throws {StoreError} for a refused command; logFailed when the log fails; quotaExceeded before anything is logged.
   */
  async submit(command: Submission, options: SubmitOptions = {}): Promise<Applied> {
    assert(command.kind !== "batch" || command.commands.length > 0, "A batch is not empty");
    const ttlSeconds = "ttlSeconds" in command ? command.ttlSeconds : undefined;
    return await this.#wholeTtl.keep(ttlSeconds, () => this.#submit(command, options));
  }

  async #submit(command: Submission, options: SubmitOptions): Promise<Applied> {
    let time = this.#log.membership.now();
    if (this.#expiry.isBehind(time.atMs)) time = await this.#timeAfterEnds(command);
    const reservedBytes = command.kind === "batch" ? 0 : this.#quota.reserve(command);
    try {
      const applied = await this.#replica.propose(command, proposeOptions(command, options), time);
      assert(applied !== undefined, "A command changes something or is refused");
      return applied;
    } finally {
      this.#quota.release(reservedBytes);
    }
  }

  /**
   * Resolves with the time for a command, once the command cannot find a node that is due at that time.
   * @throws {StoreError} logFailed.
   */
  async #timeAfterEnds(command: Submission): Promise<LogTime> {
    if (!this.#leadership.isLeading) await this.#expiry.leaderEnds(command);
    // Not the time of the call: meanwhile another member may lead, and its clock differs.
    const time = this.#log.membership.now();
    if (this.#leadership.isLeading) await this.#expiry.catchUp(time.atMs);
    return time;
  }

  /**
   * Resolves when the store has every change that any member made before the call. Then reads are linearizable.
   * @throws {StoreError} logFailed when davit cannot find out which changes were made.
   */
  async catchUp(): Promise<void> {
    try {
      await this.#log.membership.barrier();
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
      throw new StoreError("logFailed", error.message, 0, { cause: error });
    }
  }

  /**
   * Reads a key or a directory, without its content.
   * @throws {StoreError} keyNotFound, notDirectory.
   */
  get(path: StorePath): { readonly node: NodeRecord; readonly index: number } {
    const node = this.#read(() => this.#tree.view(path, this.#nowMs()));
    return { node, index: this.#tree.index };
  }

  /**
   * Lists a directory in its present state, in steps. The list of a key holds only this key. The caller must call
   * `end`.
   * @throws {StoreError} keyNotFound, notDirectory.
   */
  list(path: StorePath, options: ListOptions = {}): Listing {
    return this.#read(() => this.#tree.list(path, { ...options, nowMs: this.#nowMs() }));
  }

  /** True if there is a directory at this path. It counts as no request. */
  hasDirectory(path: StorePath): boolean {
    return this.#tree.directoryAt(path) !== undefined;
  }

  /** A file as `get` returns it; undefined where `get` would refuse, and for a directory. */
  getFile(path: StorePath): NodeRecord | undefined {
    const file = this.#tree.file(path, this.#nowMs());
    if (file !== undefined) this.#counts.succeeded("get");
    return file;
  }

  /**
   * Watches a path; the watch begins paused, see `WatchHub`.
   * @throws {StoreError} historyCleared, tooManyWatchers.
   */
  watch(options: WatchOptions, listener: WatchListener): WatchHandle {
    return this.#hub.watch(options, listener);
  }

  /**
   * Hands every file at or below `prefix`, even hidden ones, to `listener.replaced`. Later changes go to `changed`.
   * @returns a function that ends the notifications.
   */
  follow(prefix: string, listener: FollowListener): () => void {
    const follower = { prefix: storePath(prefix), listener };
    listener.replaced(filesAmong(this.#tree.walk(follower.prefix, this.#nowMs())));
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  /** Every node of the tree, in arbitrary order. It includes hidden nodes, and due nodes that are not removed yet. */
  dump(): Iterable<NodeRecord> {
    return this.#tree.walk(storePath("/"));
  }

  /** The events of the history, oldest first. */
  get events(): readonly StoreEvent[] {
    return this.#replica.state.history.all;
  }

  /**
   * Removes deleted and overwritten values: from the history, and, if this member leads, from the log. A watch of an
   * earlier index gets error 401 afterwards.
   * @returns false if the log may still have them: this member does not lead, or the log has logged its failure.
   */
  async purge(): Promise<boolean> {
    this.#hub.forgetHistory();
    return await this.#snapshotter.purge();
  }

  /** The bytes of a backup (`backupOf`), in the state of the moment when the first bytes are requested. */
  backup(beside?: BesideTree): AsyncGenerator<Uint8Array, void, undefined> {
    const origin = () => {
      const { clusterId, term: raftTerm } = this.identity;
      return { clusterId, raftIndex: this.indexes.raftIndex, raftTerm, atMs: this.#nowMs() };
    };
    return backupOf(this.#tree, origin, beside);
  }

  /** A part of this store for the backup of another one. */
  partAt(root: StorePath): BesideTree {
    return { tree: this.#tree, root };
  }

  /** Ends every watch, logs what was submitted, and closes the log; idempotent. */
  async stop(): Promise<void> {
    this.#hub.endAll("stopped");
    await this.#leadership.stop();
    await this.#expiry.stop();
    await this.#snapshotter.stop();
    // The next start needs the time of this stop, to know how long nodes with a ttl have lived.
    const isMarked = this.#log.membership.isLeader && this.status === "writable";
    if (this.#tree.timers.size > 0 && isMarked) await this.#replica.mark().catch(() => undefined);
    await this.#log.stop();
    this.#followers.clear();
  }

  /** Begins to lead a log that no other davit may write. */
  #lead(): void {
    this.#replica.beginRun();
    this.#leadership.lead();
  }

  /** Notifies everybody that the state was replaced by that of a snapshot. */
  #replaced(sequence: number): void {
    this.#snapshotter.loaded(sequence);
    // A watcher may have missed events that the history no longer has. Its client can watch again from the index that
    // it needs.
    this.#hub.endAll("overtaken");
    this.#expiry.noticeTimers();
    for (const { prefix, listener } of this.#followers) {
      listener.replaced(filesAmong(this.#tree.walk(prefix, this.#nowMs())));
    }
  }

  #read<Result>(read: () => Result): Result {
    try {
      const result = read();
      this.#counts.succeeded("get");
      return result;
    } catch (error) {
      this.#counts.failed("get");
      throw error;
    }
  }

  #applied(command: Command, result: readonly Change[] | StoreError, recordBytes: number): void {
    this.#snapshotter.count(recordBytes, this.#replica.isReplaying);
    const changes = result instanceof StoreError ? undefined : result;
    if (this.#replica.isReplaying) {
      this.#hub.record(changes ?? []);
      return;
    }
    this.#counts.applied(command, changes?.length);
    if (changes !== undefined && changes.length > 0) {
      this.#expiry.noticeTimers();
      this.#notify(changes);
    }
    this.#snapshotter.takeIfDue();
  }

  #notify(changes: readonly Change[]): void {
    for (const change of changes) this.#hub.publish(change);
    for (const { prefix, listener } of this.#followers) {
      const files = changedFiles(changes, prefix);
      if (files.length > 0) listener.changed(files, this.#tree.index);
    }
  }
}
