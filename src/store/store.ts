/**
 * The store: keys and texts that survive, with an index for every change and watches that miss none.
 *
 * A command is encoded, logged, and applied when the log delivers it, on this start and on every later one: nothing but
 * the log changes the tree. So what is read is always on disk, and a replay ends in the same state.
 *
 * The store knows no documents and no HTTP. Who may write or read what is decided at its edges.
 */

import type { Clock } from "../lib/clock.ts";
import { assert } from "../lib/errors.ts";
import { apply, type Command } from "./command.ts";
import { decodeRecord, encodeRecord } from "./command-codec.ts";
import type { ListOptions } from "./listing.ts";
import { type LogIdentity, type LogPort, type LogStatus, WalError } from "./log-port.ts";
import { isAtOrBelow, type NodeRecord, type NodeView, type StoreEvent, type StorePath, storePath } from "./node.ts";
import { StoreError } from "./refusal.ts";
import { type Change, Tree } from "./tree.ts";
import { walkBelow } from "./tree-node.ts";
import { type WatchHandle, WatchHub, type WatchListener, type WatchOptions } from "./watch-hub.ts";

export interface StoreOptions {
  /** Not opened yet; the store stops it. */
  readonly log: LogPort;
  readonly clock: Clock;
}

export interface StoreIndexes {
  /** How many changes were applied. */
  readonly storeIndex: number;
  /** Sequence of the last record that was delivered. */
  readonly raftIndex: number;
  readonly raftTerm: number;
}

/** What came of a command. */
export interface Applied {
  /** One for each change, in order. */
  readonly events: readonly StoreEvent[];
  /** The last of them; the only one unless the command is a batch. */
  readonly event: StoreEvent;
  /** As they stood right after it. */
  readonly indexes: StoreIndexes;
}

/** A file's new text, or undefined when it is gone. */
export interface FileChange {
  readonly path: string;
  readonly text: string | undefined;
}

/** Follows the files below a prefix: `Feed` of the model, without knowing it. */
export interface FollowListener {
  replaced(files: Iterable<readonly [path: string, text: string]>): void;
  /** What one command changed, at most once for each path. */
  changed(changes: readonly FileChange[]): void;
}

interface Follower {
  readonly prefix: StorePath;
  readonly listener: FollowListener;
}

export class Store {
  readonly #log: LogPort;
  readonly #clock: Clock;
  readonly #tree = new Tree();
  readonly #hub = new WatchHub();
  readonly #followers = new Set<Follower>();
  /** What came of records that were proposed here, until their proposers look. */
  readonly #outcomes = new Map<number, Applied | StoreError>();
  #submitting = 0;
  #isReplaying = true;
  #raftIndex = 0;

  private constructor({ log, clock }: StoreOptions) {
    this.#log = log;
    this.#clock = clock;
  }

  /**
   * Replays the log.
   * @throws {WalError} when it cannot be read; then the log is stopped.
   */
  static async open(options: StoreOptions): Promise<Store> {
    const store = new Store(options);
    try {
      await options.log.onCommitted((sequence, bytes) => store.#commit(sequence, bytes));
    } catch (error) {
      await options.log.stop();
      throw error;
    }
    store.#isReplaying = false;
    return store;
  }

  get indexes(): StoreIndexes {
    return { storeIndex: this.#tree.index, raftIndex: this.#raftIndex, raftTerm: this.#log.identity.term };
  }

  get identity(): LogIdentity {
    return this.#log.identity;
  }

  get status(): LogStatus {
    return this.#log.status;
  }

  /** How many watch now. */
  get watcherCount(): number {
    return this.#hub.count;
  }

  /**
   * Carries out a command: resolves once it is on disk, applied, and told to all who follow.
   * @throws {StoreError} when it is refused; logFailed when it could not be logged.
   */
  async submit(command: Command): Promise<Applied> {
    assert(command.kind !== "batch" || command.commands.length > 0, "A batch is not empty");
    this.#submitting += 1;
    try {
      const sequence = await this.#propose(encodeRecord({ atMs: this.#clock.nowMs(), command }));
      const outcome = this.#outcomes.get(sequence);
      this.#outcomes.delete(sequence);
      assert(outcome !== undefined, "A record is delivered before its proposer is told");
      if (outcome instanceof StoreError) throw outcome;
      return outcome;
    } finally {
      this.#submitting -= 1;
      // What is left is of proposals that others made.
      if (this.#submitting === 0) this.#outcomes.clear();
    }
  }

  /**
   * Reads a key or lists a directory.
   * @throws {StoreError} keyNotFound, notDirectory.
   */
  get(path: StorePath, options: ListOptions = {}): { readonly node: NodeView; readonly index: number } {
    return { node: this.#tree.view(path, options), index: this.#tree.index };
  }

  /** Watches a path; the watch begins paused, see `WatchHub`. @throws {StoreError} historyCleared. */
  watch(options: WatchOptions, listener: WatchListener): WatchHandle {
    return this.#hub.watch(options, listener);
  }

  /**
   * Hands every file at or below `prefix`, hidden ones too, to `listener.replaced`, then each later change.
   * @returns the way to stop.
   */
  follow(prefix: string, listener: FollowListener): () => void {
    const follower: Follower = { prefix: storePath(prefix), listener };
    listener.replaced(filesAmong(this.#tree.walk(follower.prefix)));
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  /** Every node, hidden ones too, in an order that means nothing. */
  dump(): Iterable<NodeRecord> {
    return this.#tree.walk(storePath("/"));
  }

  /** Ends every watch, logs what was submitted, and closes the log; idempotent. */
  async stop(): Promise<void> {
    this.#hub.stop();
    await this.#log.stop();
    this.#followers.clear();
  }

  async #propose(bytes: Uint8Array): Promise<number> {
    try {
      return await this.#log.propose(bytes);
    } catch (error) {
      if (!(error instanceof WalError)) throw error;
      throw new StoreError("logFailed", error.message, 0, { cause: error });
    }
  }

  #commit(sequence: number, bytes: Uint8Array): void {
    this.#raftIndex = sequence;
    const result = this.#apply(bytes);
    if (result instanceof StoreError) {
      if (this.#submitting > 0) this.#outcomes.set(sequence, result);
      return;
    }
    if (this.#isReplaying) {
      this.#hub.record(result);
      return;
    }
    if (this.#submitting > 0) this.#outcomes.set(sequence, this.#applied(result));
    this.#tell(result);
  }

  #apply(bytes: Uint8Array): readonly Change[] | StoreError {
    try {
      return apply(this.#tree, decodeRecord(bytes));
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

  #tell(changes: readonly Change[]): void {
    for (const change of changes) this.#hub.publish(change);
    for (const { prefix, listener } of this.#followers) {
      const files = changedFiles(changes, prefix);
      if (files.length > 0) listener.changed(files);
    }
  }
}

function* filesAmong(nodes: Iterable<NodeRecord>): Iterable<readonly [StorePath, string]> {
  for (const { path, value } of nodes) if (value !== undefined) yield [path, value];
}

/** What became of the files at or below a prefix; of several changes of one file the last. */
function changedFiles(changes: readonly Change[], prefix: StorePath): readonly FileChange[] {
  const texts = new Map<StorePath, string | undefined>();
  for (const { event, removed } of changes) {
    const { node, prevNode } = event;
    if (removed !== undefined && touches(node.path, prefix)) {
      for (const [path] of filesAmong(walkBelow(node.path, removed))) texts.set(path, undefined);
    }
    // A directory is no file, but it may stand where one was.
    if (node.value !== undefined || prevNode?.value !== undefined) texts.set(node.path, node.value);
  }
  return [...texts].filter(([path]) => isAtOrBelow(path, prefix)).map(([path, text]) => ({ path, text }));
}

/** True when something below a directory may be below a prefix. */
function touches(directory: StorePath, prefix: StorePath): boolean {
  return isAtOrBelow(directory, prefix) || isAtOrBelow(prefix, directory);
}
