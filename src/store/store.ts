/**
 * Keeps keys and values on disk. Every change has an index. A watch skips no change: it ends instead.
 *
 * The store encodes a command, logs it, and applies it when the log delivers it. Later starts apply it again. Only
 * delivered commands change the tree. So readers see only what is on disk, and a replay ends in the same state.
 *
 * Reads skip a node as soon as its ttl is over. Before a write, the store logs the end of every due node (`Expiry`).
 * Times are by a clock that never steps during a run. A start keeps the remaining ttl of each node, even if the
 * machine's clock was changed (`RunClock`). Only nodes below `agelessRoot` get their whole ttl again. These are davit's
 * tombstones: they must not end before davit has read its sources again.
 *
 * The store knows no documents and no HTTP. Its callers decide which client may write or read a key.
 */

import { type Clock, steadyClock } from "../lib/clock.ts";
import { assert } from "../lib/errors.ts";
import { inSlices, nextTurn } from "../lib/slices.ts";
import { backupOf } from "./backup/backup.ts";
import { encodeBatchRecord } from "./command/batch-codec.ts";
import { apply, type Command, type CommandRecord, type ExpireCommand, type Submission } from "./command/command.ts";
import { decodeRecord, encodeRecord } from "./command/command-codec.ts";
import { Expiry } from "./command/expiry.ts";
import { type CountName, OperationCounts } from "./command/operation-counts.ts";
import { Quota } from "./command/quota.ts";
import { isMark, type NewRun, newRunOf, RunClock } from "./command/run-clock.ts";
import { type LogIdentity, type LogPort, type LogStatus, WalError } from "./core/log-port.ts";
import { type NodeRecord, type StoreEvent, type StorePath, storePath } from "./core/node.ts";
import { StoreError } from "./core/refusal.ts";
import { Lineage } from "./snapshot/lineage.ts";
import { StateReader } from "./snapshot/snapshot.ts";
import { type SnapshotInterval, Snapshotter } from "./snapshot/snapshotter.ts";
import type { Change } from "./tree/change.ts";
import type { Listing, ListOptions } from "./tree/listing.ts";
import { Tree } from "./tree/tree.ts";
import { changedFiles, type FileChange, filesAmong } from "./watch/changed-files.ts";
import { EventRing } from "./watch/event-ring.ts";
import { type WatchHandle, WatchHub, type WatchListener, type WatchOptions } from "./watch/watch-hub.ts";

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
}

export interface StoreIndexes {
  /** The index of the last change. */
  readonly storeIndex: number;
  /** The sequence of the last record that the log delivered. */
  readonly raftIndex: number;
  readonly raftTerm: number;
}

/** The result of a command that was applied. */
export interface Applied {
  /** One for each change, in order. */
  readonly events: readonly StoreEvent[];
  /** The last event, which is the only one unless the command is a batch. */
  readonly event: StoreEvent;
  /** The indexes right after the last event. */
  readonly indexes: StoreIndexes;
}

/** Gets files and their changes. It has the form of the model's `FeedListener`, which the store does not import. */
export interface FollowListener {
  replaced(files: Iterable<readonly [path: string, text: string]>): void;
  /** Gets the changes of one command, at most one for each path, and the index of the last of them. */
  changed(changes: readonly FileChange[], index: number): void;
}

interface Follower {
  readonly prefix: StorePath;
  readonly listener: FollowListener;
}

export class Store {
  readonly #log: LogPort;
  readonly #nowMs: () => number;
  readonly #tree = new Tree();
  readonly #history = new EventRing();
  readonly #lineage = new Lineage();
  readonly #hub: WatchHub;
  readonly #quota: Quota;
  readonly #expiry: Expiry;
  readonly #snapshotter: Snapshotter;
  readonly #counts = new OperationCounts();
  readonly #followers = new Set<Follower>();
  /** The records that this process proposed, by their bytes. They save `#commit` the decoding. */
  readonly #proposed = new Map<Uint8Array, CommandRecord>();
  /** Results of this process's records, by sequence, until `submit` takes them. */
  readonly #outcomes = new Map<number, Applied | StoreError>();
  #submitting = 0;
  /** The fields for the next records of this run; undefined as soon as a record with the run is in the log. */
  #newRun: NewRun | undefined;
  #isReplaying = true;
  #raftIndex = 0;
  readonly #runClock: RunClock;

  private constructor({ log, clock, quotaBytes, maxWatchers, snapshotInterval, agelessRoot }: StoreOptions) {
    this.#runClock = new RunClock(this.#tree.timers, agelessRoot);
    this.#log = log;
    this.#nowMs = steadyClock(clock);
    this.#hub = new WatchHub(this.#history, maxWatchers, (work) => void nextTurn().then(work));
    this.#quota = new Quota(this.#tree, quotaBytes);
    this.#expiry = new Expiry({
      tree: this.#tree,
      clock,
      nowMs: this.#nowMs,
      submit: (commands) => this.#expire(commands),
    });
    this.#snapshotter = new Snapshotter({
      log,
      tree: this.#tree,
      history: this.#history,
      lineage: this.#lineage,
      interval: snapshotInterval,
      sequence: () => this.#raftIndex,
      lastAtMs: () => this.#runClock.lastAtMs,
      mark: () => this.#mark(),
    });
  }

  /**
   * Builds the state from the newest snapshot and the later log.
   * @throws {WalError} when the snapshot or the log cannot be read. It stops the log first.
   */
  static async open(options: StoreOptions): Promise<Store> {
    const store = new Store(options);
    try {
      await store.#load();
      await options.log.onCommitted((sequence, bytes, term) => store.#commit(sequence, bytes, term));
    } catch (error) {
      await options.log.stop();
      throw error;
    }
    store.#isReplaying = false;
    const { run, term } = options.log.identity;
    store.#newRun = { run, beganAtMs: store.#nowMs() };
    store.#runClock.begin(term, store.#newRun.beganAtMs);
    store.#expiry.start();
    store.#snapshotter.takeIfDue();
    return store;
  }

  get indexes(): StoreIndexes {
    return { storeIndex: this.#tree.index, raftIndex: this.#raftIndex, raftTerm: this.#log.identity.term };
  }

  get identity(): LogIdentity {
    return this.#log.identity;
  }

  /** The id of the run that made the last change (`Lineage`); undefined if an older davit made it. */
  get run(): string | undefined {
    return this.#lineage.origin.run;
  }

  /** Whether the store can be written. Reads work in every status. */
  get status(): LogStatus {
    return this.#log.status;
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
   * Executes a command. It resolves when the command is on disk and applied, and followers are notified.
   * @throws {StoreError} for a refused command; logFailed when the log fails; quotaExceeded before anything is logged.
   */
  async submit(command: Submission): Promise<Applied> {
    assert(command.kind !== "batch" || command.commands.length > 0, "A batch is not empty");
    const atMs = this.#nowMs();
    if (this.#expiry.isBehind(atMs)) await this.#expiry.catchUp(atMs);
    const reservedBytes = command.kind === "batch" ? 0 : this.#quota.reserve(command);
    this.#submitting += 1;
    try {
      const sequence = await this.#propose({ atMs, command });
      const outcome = this.#outcomes.get(sequence);
      this.#outcomes.delete(sequence);
      assert(outcome !== undefined, "A record is delivered before its proposer gets its position");
      if (outcome instanceof StoreError) throw outcome;
      return outcome;
    } finally {
      this.#quota.release(reservedBytes);
      this.#submitting -= 1;
      // No caller waits for the remaining results.
      if (this.#submitting === 0) this.#outcomes.clear();
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
   * Lists a directory in its present state, in steps. A key's list holds only the key. The caller must call `end`.
   * @throws {StoreError} keyNotFound, notDirectory.
   */
  list(path: StorePath, options: ListOptions = {}): Listing {
    return this.#read(() => this.#tree.list(path, { ...options, nowMs: this.#nowMs() }));
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
    const follower: Follower = { prefix: storePath(prefix), listener };
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
    return this.#history.all;
  }

  /** The bytes of a backup (`backupOf`), in the state of the moment when the first bytes are requested. */
  backup(): AsyncGenerator<Uint8Array, void, undefined> {
    return backupOf(this.#tree, () => {
      const { clusterId, term: raftTerm } = this.identity;
      return { clusterId, raftIndex: this.#raftIndex, raftTerm, atMs: this.#nowMs() };
    });
  }

  /** Ends every watch, logs what was submitted, and closes the log; idempotent. */
  async stop(): Promise<void> {
    this.#hub.stop();
    await this.#expiry.stop();
    await this.#snapshotter.stop();
    // The next start needs the time of this stop, to know how long nodes with a ttl have lived.
    if (this.#tree.timers.size > 0 && this.status === "writable") await this.#mark().catch(() => undefined);
    await this.#log.stop();
    this.#followers.clear();
  }

  async #load(): Promise<void> {
    const snapshot = await this.#log.loadSnapshot();
    if (snapshot === undefined) return;
    const reader = new StateReader(this.#tree, this.#history);
    for await (const piece of snapshot.pieces) {
      reader.push(piece);
      await nextTurn();
    }
    reader.end();
    if (reader.origin !== undefined) this.#lineage.restore(reader.origin);
    this.#runClock.restore(this.#lineage.origin.term, reader.atMs);
    this.#raftIndex = snapshot.sequence;
    this.#snapshotter.loaded(snapshot.sequence);
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

  async #expire(commands: readonly ExpireCommand[]): Promise<void> {
    const sequence = await this.#propose({ atMs: this.#nowMs(), command: { kind: "batch", commands } });
    this.#outcomes.delete(sequence);
  }

  /** Logs a record that changes nothing. @throws {StoreError} logFailed. */
  async #mark(): Promise<void> {
    await this.#propose({ atMs: this.#nowMs(), command: { kind: "batch", commands: [] } });
  }

  async #propose(proposal: Pick<CommandRecord, "atMs" | "command">): Promise<number> {
    const { command } = proposal;
    const record: CommandRecord =
      this.#newRun === undefined ? proposal : { ...proposal, ...newRunOf(this.#newRun, command) };
    const bytes =
      command.kind === "batch" ? await inSlices(encodeBatchRecord(record, command.commands)) : encodeRecord(record);
    this.#proposed.set(bytes, record);
    try {
      return await this.#log.propose(bytes, mayUseReserve(command) ? { frees: true } : undefined);
    } catch (error) {
      this.#proposed.delete(bytes);
      if (!(error instanceof WalError)) throw error;
      throw new StoreError("logFailed", error.message, 0, { cause: error });
    }
  }

  #commit(sequence: number, bytes: Uint8Array, term: number): void {
    this.#raftIndex = sequence;
    this.#snapshotter.count(bytes.length);
    const record = this.#proposed.get(bytes) ?? decodeRecord(bytes);
    this.#proposed.delete(bytes);
    if (!isMark(record.command)) this.#lineage.add(record.run, term);
    if (record.run === this.#newRun?.run) this.#newRun = undefined;
    this.#runClock.record(term, record);
    const result = this.#apply(record);
    if (this.#isReplaying) {
      if (!(result instanceof StoreError)) this.#hub.record(result);
      return;
    }
    this.#counts.applied(record.command, result instanceof StoreError ? undefined : result.length);
    this.#answer(sequence, result);
    this.#snapshotter.takeIfDue();
  }

  #answer(sequence: number, result: readonly Change[] | StoreError): void {
    if (result instanceof StoreError) {
      if (this.#submitting > 0) this.#outcomes.set(sequence, result);
      return;
    }
    // Nothing changed: the record is a mark, or ends only nodes that were gone already.
    if (result.length === 0) return;
    if (this.#submitting > 0) this.#outcomes.set(sequence, this.#applied(result));
    this.#expiry.noticeTimers();
    this.#notify(result);
  }

  #apply(record: CommandRecord): readonly Change[] | StoreError {
    try {
      return apply(this.#tree, record);
    } catch (error) {
      if (error instanceof StoreError) return error;
      throw error;
    }
  }

  #applied(changes: readonly Change[]): Applied {
    const events = changes.map(({ event }) => event);
    const event = events.at(-1);
    assert(event !== undefined, "A command changes something or is refused");
    return { events, event, indexes: this.indexes };
  }

  #notify(changes: readonly Change[]): void {
    for (const change of changes) this.#hub.publish(change);
    for (const { prefix, listener } of this.#followers) {
      const files = changedFiles(changes, prefix);
      if (files.length > 0) listener.changed(files, this.#tree.index);
    }
  }
}

/** True for commands that may use the log's reserve on a full disk: removals, and batches, which only davit writes. */
function mayUseReserve({ kind }: Command): boolean {
  return kind === "delete" || kind === "compareAndDelete" || kind === "expire" || kind === "batch";
}
