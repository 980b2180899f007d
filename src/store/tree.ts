/**
 * The state of the store: directories and files, and the index that counts their changes.
 *
 * Files and directories are immutable records in mutable maps: a change puts a new record in its parent's map. So an
 * event may keep what was there before, and a batch is undone by putting back. Everything here is synchronous and
 * costs no more than the path is deep, except listing and deleting, which cost what they list and delete.
 */

import { assert } from "../lib/errors.ts";
import { type ListOptions, viewOf } from "./listing.ts";
import {
  childPath,
  type NodeRecord,
  type NodeView,
  pathOf,
  rootPath,
  type StoreEvent,
  type StorePath,
  segmentsOf,
} from "./node.ts";
import { type RefusalName, StoreError } from "./refusal.ts";
import {
  type DirectoryNode,
  descend,
  type FileNode,
  newDirectory,
  newFile,
  recordOf,
  type TreeNode,
  walkBelow,
} from "./tree-node.ts";

/** What a command did. */
export interface Change {
  readonly event: StoreEvent;
  /** The directory that a delete took away, with all that was in it: to be looked at now, and not kept. */
  readonly removed?: DirectoryNode;
}

export interface Creation {
  readonly path: StorePath;
  readonly value: string;
  readonly dir?: boolean;
  readonly action: "set" | "create";
  /** A file that is there is replaced; otherwise it is refused. */
  readonly replaces: boolean;
}

// A name in order has as many digits as the largest 64-bit number.
const inOrderDigits = 20;

export class Tree {
  readonly #root: DirectoryNode = { kind: "directory", children: new Map(), createdIndex: 0, modifiedIndex: 0 };
  #index = 0;
  /** How to take back what a batch has done so far, newest last; undefined outside a batch. */
  #undo: (() => void)[] | undefined;

  /** How many changes were made: the index of the last one. */
  get index(): number {
    return this.#index;
  }

  /** @throws {StoreError} keyNotFound for a missing node, notDirectory for a path below a file. */
  at(path: StorePath): TreeNode {
    let node: TreeNode = this.#root;
    const segments = segmentsOf(path);
    for (const [depth, name] of segments.entries()) {
      if (node.kind === "file") throw this.#refuse("notDirectory", pathOf(segments.slice(0, depth)));
      const child: TreeNode | undefined = node.children.get(name);
      // The cause is the first missing segment: etcd v3.4.23 v2store/store.go, internalGet.
      if (child === undefined) throw this.#refuse("keyNotFound", pathOf(segments.slice(0, depth + 1)));
      node = child;
    }
    return node;
  }

  /** As `at`. @throws {StoreError} notFile for a directory. */
  fileAt(path: StorePath): FileNode {
    const node = this.at(path);
    // The root has no name to give as a cause: etcd v3.4.23 leaves it empty.
    if (node.kind === "directory") throw this.#refuse("notFile", path === rootPath ? "" : path);
    return node;
  }

  /** The path of the child that `create` would make next below a directory. */
  nextInOrder(directory: StorePath): StorePath {
    return childPath(directory, String(this.#index + 1).padStart(inOrderDigits, "0"));
  }

  /**
   * Makes a node and the directories that lead to it.
   * @throws {StoreError} rootReadOnly, notDirectory below a file, notFile over a directory, keyExists.
   */
  create({ path, value, dir, action, replaces }: Creation): Change {
    this.refuseRoot(path);
    const segments = segmentsOf(path);
    const name = segments.at(-1) ?? "";
    const index = this.#index + 1;
    // Directories that it makes need no undoing: nothing below a new one is refused any more.
    const parent = this.#directoryFor(segments.slice(0, -1), index);
    const previous = parent.children.get(name);
    if (previous !== undefined && !replaces) throw this.#refuse("keyExists", path);
    if (previous?.kind === "directory") throw this.#refuse("notFile", path);
    const node = dir === true ? newDirectory(index) : newFile(value, index, index);
    this.#put(parent, name, node);
    this.#index = index;
    const event = { action, node: recordOf(path, node) };
    return { event: previous === undefined ? event : { ...event, prevNode: recordOf(path, previous) } };
  }

  /**
   * Gives a file a new value and keeps its createdIndex; a directory keeps everything but its modifiedIndex.
   * @throws {StoreError} rootReadOnly, keyNotFound, notDirectory, notFile for a value on a directory.
   */
  overwrite(path: StorePath, value: string, action: "update" | "compareAndSwap"): Change {
    this.refuseRoot(path);
    const previous = this.at(path);
    if (previous.kind === "directory" && value !== "") throw this.#refuse("notFile", path);
    const index = this.#index + 1;
    const node: TreeNode =
      previous.kind === "file" ? newFile(value, previous.createdIndex, index) : { ...previous, modifiedIndex: index };
    const { parent, name } = this.#placeOf(path);
    this.#put(parent, name, node);
    this.#index = index;
    return { event: { action, node: recordOf(path, node), prevNode: recordOf(path, previous) } };
  }

  /**
   * Removes a file or, if allowed, a directory with all that is in it: one change.
   * @throws {StoreError} rootReadOnly, keyNotFound, notDirectory, notFile, directoryNotEmpty.
   */
  remove(
    path: StorePath,
    action: "delete" | "compareAndDelete",
    { dir = false, recursive = false }: { readonly dir?: boolean; readonly recursive?: boolean },
  ): Change {
    this.refuseRoot(path);
    const node = this.at(path);
    if (node.kind === "directory") {
      if (!dir && !recursive) throw this.#refuse("notFile", path);
      if (node.children.size > 0 && !recursive) throw this.#refuse("directoryNotEmpty", path);
    }
    const { parent, name } = this.#placeOf(path);
    this.#put(parent, name, undefined);
    this.#index += 1;
    const { createdIndex } = node;
    const gone = { path, isDirectory: node.kind === "directory", createdIndex, modifiedIndex: this.#index };
    const event: StoreEvent = { action, node: gone, prevNode: recordOf(path, node) };
    return node.kind === "directory" ? { event, removed: node } : { event };
  }

  /** Runs several changes of which, if one throws, none remains. */
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

  /**
   * A node as an answer shows it: a directory with its visible children.
   * @throws {StoreError} as `at`.
   */
  view(path: StorePath, options: ListOptions = {}): NodeView {
    return viewOf(path, this.at(path), options);
  }

  /** Every node at or below a path, hidden ones too, in an order that means nothing; none when the path is missing. */
  *walk(path: StorePath): Iterable<NodeRecord> {
    const node = descend(this.#root, segmentsOf(path));
    if (node === undefined) return;
    yield recordOf(path, node);
    if (node.kind === "directory") yield* walkBelow(path, node);
  }

  /** @throws {StoreError} rootReadOnly for the root, which no command may change. */
  refuseRoot(path: StorePath): void {
    if (path === rootPath) throw this.#refuse("rootReadOnly", path);
  }

  /** The directory at these names; what is missing of it is made. */
  #directoryFor(segments: readonly string[], index: number): DirectoryNode {
    let directory = this.#root;
    for (const [depth, name] of segments.entries()) {
      const child = directory.children.get(name);
      if (child?.kind === "file") throw this.#refuse("notDirectory", pathOf(segments.slice(0, depth + 1)));
      const next = child ?? newDirectory(index);
      if (child === undefined) this.#put(directory, name, next);
      directory = next;
    }
    return directory;
  }

  /** Where a node that exists is kept. */
  #placeOf(path: StorePath): { readonly parent: DirectoryNode; readonly name: string } {
    const segments = segmentsOf(path);
    const name = segments.at(-1);
    const parent = descend(this.#root, segments.slice(0, -1));
    assert(name !== undefined && parent?.kind === "directory", "A node that exists has a parent");
    return { parent, name };
  }

  /** The one place where the tree changes. */
  #put(directory: DirectoryNode, name: string, node: TreeNode | undefined): void {
    const { children } = directory;
    const before = children.get(name);
    this.#undo?.push(() => place(children, name, before));
    place(children, name, node);
  }

  #refuse(refusal: RefusalName, cause: string): StoreError {
    return new StoreError(refusal, cause, this.#index);
  }
}

function place(children: Map<string, TreeNode>, name: string, node: TreeNode | undefined): void {
  if (node === undefined) children.delete(name);
  else children.set(name, node);
}
