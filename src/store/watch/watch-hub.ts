/**
 * Notifies watchers of changes. Pure: it reads no clock and writes to no socket.
 *
 * A watcher has a cursor, which is an index in the history. A watcher begins paused; `resume` delivers the events from
 * the cursor on. After that, the watcher gets each event as it happens, until its listener pauses it. Without `stream`
 * the watch ends after the first event. The history is bounded: if it drops an event that a paused watcher has not
 * examined, the hub closes the watcher. So no watcher gets events with a gap.
 *
 * These watchers get an event (etcd v3.4.23 v2store/watcher_hub.go):
 * - watchers of its path;
 * - recursive watchers of a directory above, unless the path has a hidden name below that directory;
 * - for a directory that was deleted or has expired, watchers of its former content. `resume` no longer knows that
 *   content. It delivers the event to a watcher of any path below the directory.
 * Refreshes are in the history, but no watcher gets them.
 *
 * If an event has many watchers, the hub notifies 64 of them in one turn, and 64 more in each later turn. Other work
 * runs in between. Each watcher still gets each event once and in order.
 */

import { assert } from "../../lib/errors.ts";
import {
  childPath,
  isBelow,
  isHiddenBelow,
  rootPath,
  type StoreEvent,
  type StorePath,
  segmentsOf,
} from "../core/node.ts";
import { StoreError } from "../core/refusal.ts";
import type { Change } from "../tree/change.ts";
import { type DirectoryNode, descend } from "../tree/tree-node.ts";
import { EventRing } from "./event-ring.ts";

export interface WatchOptions {
  /** The watched path. Its node may be missing. */
  readonly path: StorePath;
  /** If true, the watch includes everything below the path. */
  readonly recursive?: boolean;
  /** The index of the first wanted event; absent or 0 for changes from now on. */
  readonly waitIndex?: number;
  /** If true, the watch continues after its first event. */
  readonly stream?: boolean;
  /** Returns false for events that the watch skips. */
  readonly accepts?: (event: StoreEvent) => boolean;
}

/** `overtaken`: the history dropped an event that the paused watcher has not examined. `stopped`: the store stops. */
export type WatchEnd = "overtaken" | "stopped";

export interface WatchListener {
  /**
   * Takes an event, and returns false to pause the watcher until `resume`. Without `stream`, the hub has already
   * removed the watcher when it makes this call, and ignores the result.
   */
  event(event: StoreEvent): boolean;
  /** Called when the hub, not the holder of the handle, closes the watcher. */
  closed(end: WatchEnd): void;
}

export interface WatchHandle {
  /** Starts the delivery. Missed events come first. */
  resume(): void;
  /** Ends the watch. The listener gets no further call. Idempotent. */
  close(): void;
}

interface Watcher {
  readonly options: WatchOptions;
  readonly listener: WatchListener;
  /** While the watcher is paused: the first index that it has not examined. */
  cursor: number;
  isFlowing: boolean;
  /** Events whose delivery waits for a later turn; undefined if there are none, which is usual. */
  late: StoreEvent[] | undefined;
  /** True after the holder of the handle closed the watcher. */
  isClosed: boolean;
}

/** Runs work in a later turn. */
export type Defer = (work: () => void) => void;

/** How many watchers get events in one turn. Each takes about 15 µs, mostly to write to its connection. */
const sliceSize = 64;

/** The most late events of all watchers together. If there are more, the hub delivers all of them in the same turn. */
const maxLate = 100_000;

export class WatchHub {
  readonly #ring: EventRing;
  readonly #watchers = new Map<StorePath, Set<Watcher>>();
  /** The paused watchers. They are few, because a watcher is resumed as soon as its answer has begun. */
  readonly #paused = new Set<Watcher>();
  readonly #maxWatchers: number;
  readonly #later: Defer | undefined;
  /** Watchers with late events, in the order of delivery. */
  readonly #lateWatchers = new Set<Watcher>();
  #lateCount = 0;
  #isBringing = false;
  /** How many watchers got an event in this turn. */
  #brought = 0;
  #count = 0;

  /**
   * @param maxWatchers how many may watch at a time; more are refused.
   * @param later defers deliveries. If it is undefined, the hub delivers every event in the turn in which it happens.
   */
  constructor(ring: EventRing = new EventRing(), maxWatchers = Number.POSITIVE_INFINITY, later?: Defer) {
    this.#ring = ring;
    this.#maxWatchers = maxWatchers;
    this.#later = later;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Registers a paused watcher.
   * @throws {StoreError} historyCleared when the history lacks an event from `waitIndex` on; tooManyWatchers.
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
    const watcher: Watcher = { options, listener, cursor, isFlowing: false, late: undefined, isClosed: false };
    this.#add(watcher);
    this.#paused.add(watcher);
    return { resume: () => this.#resume(watcher), close: () => this.#close(watcher) };
  }

  /** Adds the changes of a replay to the history. It notifies no watcher, because none exists yet. */
  record(changes: readonly Change[]): void {
    for (const { event } of changes) this.#ring.add(event);
  }

  /** Adds a change to the history and notifies its watchers. */
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

  /** Forgets the history, and ends the watches that still need it. */
  forgetHistory(): void {
    this.#bringAll();
    this.#ring.clear();
    this.#closeOvertaken();
  }

  /** Ends every watch, after it got its late events. */
  endAll(end: WatchEnd): void {
    this.#bringAll();
    for (const watcher of [...this.#watchers.values()].flatMap((set) => [...set])) this.#end(watcher, end);
  }

  #closeOvertaken(): void {
    for (const watcher of this.#paused) if (watcher.cursor < this.#ring.oldestIndex) this.#end(watcher, "overtaken");
  }

  // This loop over all watched paths is slow. Only the removal of a directory needs it.
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
    // Moves the cursor behind this event, because the watcher has examined all events up to here, even skipped ones.
    // With an older cursor, the hub would deliver these again after a pause, or close the watcher as overtaken.
    watcher.cursor = this.#ring.nextIndex;
    if (this.#later !== undefined && (watcher.late !== undefined || this.#brought >= sliceSize)) {
      this.#keepForLater(watcher, event);
      return;
    }
    if (this.#brought === 0) this.#later?.(() => this.#nextTurn());
    this.#brought += 1;
    this.#hand(watcher, event);
  }

  #hand(watcher: Watcher, event: StoreEvent): void {
    if (watcher.options.stream !== true) this.#remove(watcher);
    if (watcher.listener.event(event) || !this.#isRegistered(watcher)) return;
    watcher.isFlowing = false;
    this.#paused.add(watcher);
  }

  #keepForLater(watcher: Watcher, event: StoreEvent): void {
    // A watch without `stream` ends with this event.
    if (watcher.options.stream !== true) this.#remove(watcher);
    watcher.late = [...(watcher.late ?? []), event];
    this.#lateWatchers.add(watcher);
    this.#lateCount += 1;
    if (this.#lateCount > maxLate) this.#bringAll();
  }

  /** Called in a new turn, after other work ran. */
  #nextTurn(): void {
    this.#brought = 0;
    if (this.#isBringing) return;
    this.#isBringing = true;
    for (const watcher of this.#lateWatchers) {
      if (this.#brought >= sliceSize) break;
      this.#brought += 1;
      this.#bring(watcher);
    }
    this.#isBringing = false;
    if (this.#brought > 0) this.#later?.(() => this.#nextTurn());
  }

  #bringAll(): void {
    for (const watcher of this.#lateWatchers) this.#bring(watcher);
  }

  #bring(watcher: Watcher): void {
    const { late = [], options, listener } = watcher;
    this.#lateWatchers.delete(watcher);
    this.#lateCount -= late.length;
    watcher.late = undefined;
    for (const event of late) {
      if (watcher.isClosed) return;
      if (options.stream !== true) {
        listener.event(event);
      } else if (!watcher.isFlowing) {
        // The watcher has paused. Its cursor moves back, so that `resume` reads this event from the history.
        watcher.cursor = Math.min(watcher.cursor, event.node.modifiedIndex);
      } else {
        this.#hand(watcher, event);
      }
    }
    const isBehind = this.#isRegistered(watcher) && watcher.cursor < this.#ring.oldestIndex;
    if (isBehind && !watcher.isFlowing) this.#end(watcher, "overtaken");
  }

  #close(watcher: Watcher): void {
    watcher.isClosed = true;
    this.#remove(watcher);
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

/** The root, every directory on the path, and the path itself. */
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

/** True for an event that removed a directory above `path`. */
function takesAway({ action, node }: StoreEvent, path: StorePath): boolean {
  return (action === "delete" || action === "expire") && node.isDirectory && isBelow(path, node.path);
}
