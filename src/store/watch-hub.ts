/**
 * Brings changes to those who watch. Pure: it knows no time and no sockets.
 *
 * A watcher has a cursor into the history. It begins paused; `resume` replays what it missed, and from then on it gets
 * each event as it happens, until its listener pauses it or, without `stream`, after its first event. The history is
 * bounded, so a watcher that pauses for too long is overtaken: it is closed at once, never served with a gap.
 *
 * Who gets an event (etcd v3.4.23 v2store/watcher_hub.go):
 * - those who watch its path;
 * - those who watch recursively from above, unless a name below their path is hidden;
 * - for a directory that was deleted or has ended, those who watch what was in it. A replay knows no longer what that
 *   was, and tells everyone below.
 * Nobody gets a refresh, which has its place in the history all the same.
 */

import { assert } from "../lib/errors.ts";
import type { Change } from "./change.ts";
import { EventRing } from "./event-ring.ts";
import { childPath, isBelow, isHiddenBelow, rootPath, type StoreEvent, type StorePath, segmentsOf } from "./node.ts";
import { StoreError } from "./refusal.ts";
import { type DirectoryNode, descend } from "./tree-node.ts";

export interface WatchOptions {
  /** It need not exist. */
  readonly path: StorePath;
  /** Watch everything below, too. */
  readonly recursive?: boolean;
  /** First index of interest; absent or 0 for changes from now on. */
  readonly waitIndex?: number;
  /** Go on after the first event. */
  readonly stream?: boolean;
  /** Events for which it answers false are passed over. */
  readonly accepts?: (event: StoreEvent) => boolean;
}

/** `overtaken`: it paused while the history moved on. `stopped`: the store ends. */
export type WatchEnd = "overtaken" | "stopped";

export interface WatchListener {
  /** Takes an event; false pauses the watcher until `resume`. Without `stream` the watch ends before the call. */
  event(event: StoreEvent): boolean;
  /** The watcher was closed, and not by its holder. */
  closed(end: WatchEnd): void;
}

export interface WatchHandle {
  /** Lets events flow, beginning with those that were missed. */
  resume(): void;
  /** Ends the watch without a further call; idempotent. */
  close(): void;
}

interface Watcher {
  readonly options: WatchOptions;
  readonly listener: WatchListener;
  /** While it is paused, the first index that was not looked at. */
  cursor: number;
  isFlowing: boolean;
}

// Each costs some 10 KiB, most of it for its connection.
const presetMaxWatchers = 10_000;

export class WatchHub {
  readonly #ring: EventRing;
  readonly #watchers = new Map<StorePath, Set<Watcher>>();
  /** Those who do not flow: few, since a watcher is resumed as soon as its answer has begun. */
  readonly #paused = new Set<Watcher>();
  readonly #maxWatchers: number;
  #count = 0;

  /** @param maxWatchers how many may watch at a time; more are refused. */
  constructor(ring: EventRing = new EventRing(), maxWatchers = presetMaxWatchers) {
    this.#ring = ring;
    this.#maxWatchers = maxWatchers;
  }

  /** How many watch now. */
  get count(): number {
    return this.#count;
  }

  /**
   * Registers a watcher, paused.
   * @throws {StoreError} historyCleared when events from `waitIndex` on are no longer kept; tooManyWatchers.
   */
  watch(options: WatchOptions, listener: WatchListener): WatchHandle {
    const { oldestIndex, nextIndex } = this.#ring;
    const cursor = options.waitIndex || nextIndex;
    if (cursor < oldestIndex) {
      const cause = `the requested history has been cleared [${oldestIndex}/${cursor}]`;
      throw new StoreError("historyCleared", cause, nextIndex - 1);
    }
    if (this.#count >= this.#maxWatchers) {
      throw new StoreError("tooManyWatchers", `${this.#maxWatchers} watch already; try again later`, 0);
    }
    const watcher: Watcher = { options, listener, cursor, isFlowing: false };
    this.#add(watcher);
    this.#paused.add(watcher);
    return { resume: () => this.#resume(watcher), close: () => this.#remove(watcher) };
  }

  /** Adds changes to the history, without telling anyone: a replay. */
  record(changes: readonly Change[]): void {
    for (const { event } of changes) this.#ring.add(event);
  }

  /** Adds a change to the history and brings it to its watchers. */
  publish({ event, removed }: Change): void {
    this.#ring.add(event);
    if (this.#count === 0) return;
    this.#closeOvertaken();
    if (event.isRefresh === true) return;
    for (const path of pathsTo(event.node.path)) {
      for (const watcher of this.#watchers.get(path) ?? []) {
        if (reaches(event, watcher.options)) this.#deliver(watcher, event);
      }
    }
    if (removed !== undefined) this.#publishBelow(event, removed);
  }

  /** Closes every watcher. */
  stop(): void {
    for (const watcher of [...this.#watchers.values()].flatMap((set) => [...set])) this.#end(watcher, "stopped");
  }

  #closeOvertaken(): void {
    for (const watcher of this.#paused) if (watcher.cursor < this.#ring.oldestIndex) this.#end(watcher, "overtaken");
  }

  // All watched paths are looked at, which only happens when a directory goes.
  #publishBelow(event: StoreEvent, removed: DirectoryNode): void {
    const depth = segmentsOf(event.node.path).length;
    for (const [path, watchers] of this.#watchers) {
      if (!isBelow(path, event.node.path)) continue;
      if (descend(removed, segmentsOf(path).slice(depth)) === undefined) continue;
      for (const watcher of watchers) this.#deliver(watcher, event);
    }
  }

  #deliver(watcher: Watcher, event: StoreEvent): void {
    const { cursor, isFlowing, options } = watcher;
    if (!isFlowing || event.node.modifiedIndex < cursor || options.accepts?.(event) === false) return;
    // Everything up to now was looked at: should it pause, it must not seem to have missed what it passed over.
    watcher.cursor = this.#ring.nextIndex;
    this.#hand(watcher, event);
  }

  #hand(watcher: Watcher, event: StoreEvent): void {
    if (watcher.options.stream !== true) this.#remove(watcher);
    if (watcher.listener.event(event) || !this.#isRegistered(watcher)) return;
    watcher.isFlowing = false;
    this.#paused.add(watcher);
  }

  #resume(watcher: Watcher): void {
    watcher.isFlowing = true;
    this.#paused.delete(watcher);
    while (watcher.isFlowing && this.#isRegistered(watcher) && watcher.cursor < this.#ring.nextIndex) {
      const event = this.#ring.at(watcher.cursor);
      assert(event !== undefined, "An overtaken watcher was closed");
      watcher.cursor += 1;
      const isWanted = reaches(event, watcher.options) || takesAway(event, watcher.options.path);
      if (isWanted && watcher.options.accepts?.(event) !== false) this.#hand(watcher, event);
    }
  }

  #end(watcher: Watcher, end: WatchEnd): void {
    this.#remove(watcher);
    watcher.listener.closed(end);
  }

  #isRegistered(watcher: Watcher): boolean {
    return this.#watchers.get(watcher.options.path)?.has(watcher) ?? false;
  }

  #add(watcher: Watcher): void {
    const { path } = watcher.options;
    const watchers = this.#watchers.get(path) ?? new Set();
    this.#watchers.set(path, watchers.add(watcher));
    this.#count += 1;
  }

  #remove(watcher: Watcher): void {
    const { path } = watcher.options;
    const watchers = this.#watchers.get(path);
    if (watchers?.delete(watcher) !== true) return;
    this.#paused.delete(watcher);
    if (watchers.size === 0) this.#watchers.delete(path);
    this.#count -= 1;
  }
}

/** The root, every directory on the way, and the path itself. */
function pathsTo(path: StorePath): readonly StorePath[] {
  const paths: StorePath[] = [rootPath];
  for (const name of segmentsOf(path)) paths.push(childPath(paths.at(-1) ?? rootPath, name));
  return paths;
}

function reaches({ node, isRefresh }: StoreEvent, { path, recursive }: WatchOptions): boolean {
  if (isRefresh === true) return false;
  if (node.path === path) return true;
  return recursive === true && isBelow(node.path, path) && !isHiddenBelow(node.path, path);
}

/** True for an event that took away a directory above a path. */
function takesAway({ action, node }: StoreEvent, path: StorePath): boolean {
  return (action === "delete" || action === "expire") && node.isDirectory && isBelow(path, node.path);
}
