/**
 * The state of the store: directories and files, when they end, and the index of the last change.
 *
 * A node is an immutable record in its directory's mutable map, and a change puts a new record there. So an event can
 * keep the old record, and undoing a batch puts the old record back.
 *
 * Changes are synchronous, and their cost grows only with the depth of the path. Two kinds of long work run in steps:
 * listings, and removing the timers of a large removed directory.
 *
 * The tree has no clock. A change brings the time of its record, and a read brings the present time of this run. No
 * node ends by itself: `expire` is a change like any other.
 */

import { assert } from "../../lib/errors.ts";
import {
  type Action,
  childPath,
  type NodeRecord,
  pathOf,
  rootPath,
  type StoreEvent,
  type StorePath,
  segmentsOf,
} from "../core/node.ts";
import { type RefusalName, StoreError } from "../core/refusal.ts";
import type { Change, Creation, Extension, Overwriting, Removal } from "./change.ts";
import { DetachedTimers, ExpiringSet, type Timer, timerFor, timerUntil } from "./expiring-set.ts";
import { Listing, type ListQuery } from "./listing.ts";
import {
  addUp,
  bytesOfName,
  type DirectoryNode,
  descend,
  type FileNode,
  isDue,
  nested,
  newDirectory,
  recordOf,
  shownOf,
  stateOf,
  type TreeNode,
  timersReplaced,
  walkBelow,
} from "./tree-node.ts";
import { type FrozenWalk, FrozenWalks, type NodePlace, type StoredNode } from "./tree-walk.ts";

// Removing this many timers takes less than a millisecond.
const maxTimersAtOnce = 5_000;

// A name from `createInOrder` has as many digits as the largest unsigned 64-bit number.
const inOrderDigits = 20;

export class Tree {
  #root = newDirectory(0, undefined);
  /**
   * The timers of nodes with an end, without those that `Expiry` has taken out to log. Timers of removed nodes stay
   * until they are swept.
   */
  readonly timers = new ExpiringSet();
  readonly detached = new DetachedTimers({ timers: this.timers, isArmed: (timer) => this.isArmed(timer) });
  #index = 0;
  readonly #walks = new FrozenWalks();
  /** Functions that undo the changes of the present batch, newest last; undefined outside a batch. */
  #undo: (() => void)[] | undefined;

  /** The index of the last change. */
  get index(): number {
    return this.#index;
  }

  /** UTF-8 bytes of all names, a slash for each, and all values. */
  get bytes(): number {
    return this.#root.sums.bytes;
  }

  get walkCount(): number {
    return this.#walks.count;
  }

  /**
   * The node at a path. Nodes that are due at `nowMs` count as missing; without `nowMs` no node is due.
   * @throws {StoreError} keyNotFound for a missing node, notDirectory for a path below a file.
   */
  at(path: StorePath, nowMs = Number.NEGATIVE_INFINITY): TreeNode {
    let node: TreeNode = this.#root;
    const segments = segmentsOf(path);
    for (const [depth, name] of segments.entries()) {
      if (node.kind === "file") throw this.#refuse("notDirectory", pathOf(segments.slice(0, depth)));
      const child: TreeNode | undefined = node.children.get(name);
      // The cause is the path to the first missing name: etcd v3.4.23 v2store/store.go, internalGet.
      if (child === undefined || isDue(child, nowMs)) {
        throw this.#refuse("keyNotFound", pathOf(segments.slice(0, depth + 1)));
      }
      node = child;
    }
    return node;
  }

  /** The file at a path. @throws {StoreError} like `at`; notFile for a directory. */
  fileAt(path: StorePath): FileNode {
    const node = this.at(path);
    // For the root the cause is empty, as in etcd v3.4.23.
    if (node.kind === "directory") throw this.#refuse("notFile", path === rootPath ? "" : path);
    return node;
  }

  /** The path of the child that `createInOrder` makes next in a directory. */
  nextInOrder(directory: StorePath): StorePath {
    return childPath(directory, String(this.#index + 1).padStart(inOrderDigits, "0"));
  }

  /**
   * Makes a node and its missing parent directories.
   * @throws {StoreError} rootReadOnly; notDirectory for a path below a file; keyExists if a node is at the path and
   * `replaces` is false; notFile if a directory is there.
   */
  create(creation: Creation): Change {
    const { path, replaces, value, dir = false } = creation;
    this.refuseRoot(path);
    const segments = segmentsOf(path);
    const { directory, depth } = this.#nearestDirectory(segments.slice(0, -1));
    const name = segments[depth] ?? "";
    // If directories are missing, so is the node.
    const previous = depth === segments.length - 1 ? directory.children.get(name) : undefined;
    if (previous !== undefined && !replaces) throw this.#refuse("keyExists", path);
    if (previous?.kind === "directory") throw this.#refuse("notFile", path);
    const index = this.#index + 1;
    const timer = timerFor(creation, index);
    const { top, node } = nested(segments.slice(depth + 1), {
      index,
      above: directory.sums,
      make: (above) =>
        dir
          ? newDirectory(index, above, timer)
          : { kind: "file", value, createdIndex: index, modifiedIndex: index, timer },
    });
    this.#put({ directory, name, path }, top);
    return this.#written(creation, node, previous);
  }

  /**
   * Changes an existing node and keeps its createdIndex. A file gets the new value. A directory keeps its content. Both
   * get a new modifiedIndex. Both get the new end; without a ttl they become permanent.
   * @throws {StoreError} rootReadOnly, keyNotFound, notDirectory; notFile for a value on a directory.
   */
  overwrite(overwriting: Overwriting): Change {
    const { path, value } = overwriting;
    this.refuseRoot(path);
    const previous = this.at(path);
    if (previous.kind === "directory" && (value ?? "") !== "") throw this.#refuse("notFile", path);
    const modifiedIndex = this.#index + 1;
    const timer = timerFor(overwriting, previous.createdIndex);
    const node: TreeNode =
      previous.kind === "file"
        ? { ...previous, value: value ?? previous.value, modifiedIndex, timer }
        : { ...previous, modifiedIndex, timer };
    this.#put(this.#placeOf(path), node);
    return this.#written(overwriting, node, previous);
  }

  /**
   * Removes a file, or a directory if `dir` or `recursive` allows it. The removal of a directory with its content is
   * one change.
   * @throws {StoreError} rootReadOnly, keyNotFound, notDirectory, notFile, directoryNotEmpty.
   */
  remove({ path, atMs, action, dir = false, recursive = false }: Removal): Change {
    this.refuseRoot(path);
    const node = this.at(path);
    if (node.kind === "directory") {
      if (!dir && !recursive) throw this.#refuse("notFile", path);
      if (node.children.size > 0 && !recursive) throw this.#refuse("directoryNotEmpty", path);
    }
    return this.#takeAway(path, node, action, atMs);
  }

  /**
   * Removes a node with its content, as one change, if the node still ends at `expiresAtMs`. Otherwise it returns
   * undefined.
   */
  expire(path: StorePath, expiresAtMs: number, atMs: number): Change | undefined {
    const node = descend(this.#root, segmentsOf(path));
    return node?.timer?.expiresAtMs === expiresAtMs ? this.#takeAway(path, node, "expire", atMs) : undefined;
  }

  /** Lets a node end `leftMs` after `atMs`, if it has an end and this `modifiedIndex`. */
  extend({ path, modifiedIndex, leftMs }: Extension, atMs: number): void {
    const node = descend(this.#root, segmentsOf(path));
    if (node?.timer === undefined || node.modifiedIndex !== modifiedIndex) return;
    this.#put(this.#placeOf(path), { ...node, timer: timerUntil(atMs + leftMs, node.timer) });
  }

  /** True if a node at a path, or above it, is due at `nowMs`. */
  isDueAt(path: StorePath, nowMs: number): boolean {
    let node: TreeNode | undefined = this.#root;
    for (const name of segmentsOf(path)) {
      node = node.kind === "directory" ? node.children.get(name) : undefined;
      if (node === undefined) return false;
      if (isDue(node, nowMs)) return true;
    }
    return false;
  }

  /**
   * True while a node in the tree has this timer. The timer of a removed node, or of a node with a new end, is not
   * armed.
   */
  isArmed(timer: Timer): boolean {
    return descend(this.#root, segmentsOf(timer.path))?.timer === timer;
  }

  /**
   * How many `bytes` the tree would gain by a file of `valueBytes` at a path. Negative if the file replaces a larger
   * one, and 0 for an existing directory.
   */
  growthBy(path: StorePath, valueBytes: number): number {
    let node: TreeNode | undefined = this.#root;
    let growth = valueBytes;
    for (const name of segmentsOf(path)) {
      node = node?.kind === "directory" ? node.children.get(name) : undefined;
      if (node === undefined) growth += bytesOfName(name);
    }
    if (node === undefined) return growth;
    return node.kind === "file" ? valueBytes - Buffer.byteLength(node.value) : 0;
  }

  /** Runs several changes as one batch. If one of them throws, the batch undoes all of them and throws the error. */
  atomically<Result>(changes: () => Result): Result {
    assert(this.#undo === undefined, "A batch does not hold a batch");
    const indexBefore = this.#index;
    const undo: (() => void)[] = [];
    this.#undo = undo;
    try {
      return changes();
    } catch (error) {
      for (const takeBack of undo.reverse()) takeBack();
      this.#index = indexBefore;
      throw error instanceof StoreError ? new StoreError(error.refusal, error.causeText, indexBefore) : error;
    } finally {
      this.#undo = undefined;
    }
  }

  /** A node as an answer shows it at `nowMs`, without the children of a directory. @throws {StoreError} like `at`. */
  view(path: StorePath, nowMs: number): NodeRecord {
    return shownOf(path, this.at(path, nowMs), nowMs);
  }

  /**
   * Lists a node in its present state, even if the tree changes meanwhile. The caller must end the listing.
   * @throws {StoreError} like `at`.
   */
  list(path: StorePath, query: ListQuery): Listing {
    const top = this.at(path, query.nowMs);
    const walk = this.#walks.begin({ path, top, index: this.#index, mayBeOvertaken: true });
    return new Listing({ path, top, query, walk });
  }

  /** A file as an answer shows it; undefined for a directory, and for a node that is missing or due at `nowMs`. */
  file(path: StorePath, nowMs: number): NodeRecord | undefined {
    const node = descend(this.#root, segmentsOf(path), nowMs);
    return node?.kind === "file" ? shownOf(path, node, nowMs) : undefined;
  }

  /**
   * Every node at or below a path, even hidden nodes, in arbitrary order. There are none if the path is missing. With
   * `nowMs`, nodes that are due by then are skipped.
   */
  *walk(path: StorePath, nowMs = Number.NEGATIVE_INFINITY): Iterable<NodeRecord> {
    const top = descend(this.#root, segmentsOf(path), nowMs);
    if (top === undefined) return;
    yield stateOf(path, top);
    if (top.kind === "file") return;
    for (const [at, node] of walkBelow(path, top, nowMs)) yield stateOf(at, node);
  }

  /** A walk over the whole tree in its present state, even if the tree changes. The caller must end it. */
  walkFrozen(): FrozenWalk {
    return this.#walks.begin({ path: rootPath, top: this.#root, index: this.#index });
  }

  /**
   * Puts a node of a snapshot into its place. Nodes may come in any order, and more than once. It makes a missing
   * directory provisionally: the directory gets its indexes and its end when the snapshot's entry for it comes.
   */
  restore({ path, kind, value, ...own }: StoredNode): void {
    let directory = this.#root;
    const segments = segmentsOf(path);
    for (const [depth, name] of segments.entries()) {
      const before = directory.children.get(name);
      const above = directory.sums;
      const place = { directory, name, path };
      if (depth === segments.length - 1 && kind === "file") {
        this.#set(place, before, { kind, value, ...own });
        return;
      }
      const there = before?.kind === "directory" ? before : newDirectory(0, above);
      const node = depth === segments.length - 1 ? { ...there, ...own } : there;
      if (node !== before) this.#set(place, before, node);
      directory = node;
    }
  }

  /** The directory at a path; undefined if it is missing, or a file. */
  directoryAt(path: StorePath): DirectoryNode | undefined {
    const node = descend(this.#root, segmentsOf(path));
    return node?.kind === "directory" ? node : undefined;
  }

  /** Sets the snapshot's index. Call it after the last `restore`. */
  restoreIndex(index: number): void {
    this.#index = index;
  }

  /**
   * Replaces the whole state by that of another tree, which nobody may use afterwards. Walks that have begun continue
   * over the former state.
   */
  adopt(other: Tree): void {
    this.#root = other.#root;
    this.#index = other.#index;
    this.timers.adopt(other.timers);
    this.detached.forget();
  }

  /** @throws {StoreError} rootReadOnly for the root, which no command may change. */
  refuseRoot(path: StorePath): void {
    if (path === rootPath) throw this.#refuse("rootReadOnly", path);
  }

  /** The last existing directory on a path, and how many of the names lead to it. @throws {StoreError} notDirectory. */
  #nearestDirectory(segments: readonly string[]): { readonly directory: DirectoryNode; readonly depth: number } {
    let directory = this.#root;
    for (const [depth, name] of segments.entries()) {
      const child = directory.children.get(name);
      if (child?.kind === "file") throw this.#refuse("notDirectory", pathOf(segments.slice(0, depth + 1)));
      if (child === undefined) return { directory, depth };
      directory = child;
    }
    return { directory, depth: segments.length };
  }

  /** The place of an existing node. */
  #placeOf(path: StorePath): NodePlace {
    const segments = segmentsOf(path);
    const name = segments.at(-1);
    const directory = descend(this.#root, segments.slice(0, -1));
    assert(name !== undefined && directory?.kind === "directory", "A node that exists has a parent");
    return { directory, name, path };
  }

  #written(writing: Creation | Overwriting, node: TreeNode, previous: TreeNode | undefined): Change {
    const { path, action, atMs, isRefresh } = writing;
    this.#index += 1;
    const event = {
      action,
      node: recordOf(path, node, atMs),
      ...(previous !== undefined && { prevNode: recordOf(path, previous, atMs) }),
      ...(isRefresh === true && { isRefresh }),
    };
    return { event };
  }

  #takeAway(path: StorePath, node: TreeNode, action: Action, atMs: number): Change {
    this.#put(this.#placeOf(path), undefined);
    this.#index += 1;
    const { createdIndex } = node;
    const gone = { path, isDirectory: node.kind === "directory", createdIndex, modifiedIndex: this.#index };
    const event: StoreEvent = { action, node: gone, prevNode: recordOf(path, node, atMs) };
    return node.kind === "directory" ? { event, removed: node } : { event };
  }

  /** Makes a change that a batch can undo. Only `restore` and `adopt` change the tree in another way. */
  #put(place: NodePlace, node: TreeNode | undefined): void {
    const before = place.directory.children.get(place.name);
    this.#undo?.push(() => this.#set(place, node, before));
    this.#set(place, before, node);
  }

  #set(place: NodePlace, before: TreeNode | undefined, node: TreeNode | undefined): void {
    const { name, directory } = place;
    const { children, sums } = directory;
    if (before !== undefined) this.#walks.keep(place, before);
    if (node === undefined) children.delete(name);
    else children.set(name, node);
    addUp(sums, name, before, node);
    const { gone, goneCount, come } = timersReplaced(before, node);
    if (goneCount > maxTimersAtOnce) this.detached.add(gone);
    else for (const timer of gone) this.timers.remove(timer);
    for (const timer of come) this.timers.add(timer);
  }

  #refuse(refusal: RefusalName, cause: string): StoreError {
    return new StoreError(refusal, cause, this.#index);
  }
}
