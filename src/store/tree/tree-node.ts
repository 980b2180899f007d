/** The parts of the tree: nodes are immutable records, and a directory has its children in a mutable map. */

import { assert } from "../../lib/errors.ts";
import { childPath, type NodeRecord, type StorePath } from "../core/node.ts";
import type { Timer } from "./expiring-set.ts";

interface NodeOfAnyKind {
  readonly createdIndex: number;
  readonly modifiedIndex: number;
  /** Undefined for a permanent node. */
  readonly timer: Timer | undefined;
}

export interface FileNode extends NodeOfAnyKind {
  readonly kind: "file";
  readonly value: string;
}

export interface DirectoryNode extends NodeOfAnyKind {
  readonly kind: "directory";
  /** A Map, because `__proto__` is a name like any other. */
  readonly children: Map<string, TreeNode>;
  readonly sums: Sums;
}

/** Sums over everything in a directory, at any depth; the tree keeps them up to date. */
interface Sums {
  /** The sums of the parent directory; undefined for the root. */
  readonly above: Sums | undefined;
  /** The bytes of names and values in UTF-8, and a slash for each name. */
  bytes: number;
  /** How many nodes have a ttl. */
  timers: number;
}

export type TreeNode = FileNode | DirectoryNode;

export function newDirectory(index: number, above: Sums | undefined, timer?: Timer): DirectoryNode {
  const sums = { above, bytes: 0, timers: 0 };
  return { kind: "directory", children: new Map(), sums, createdIndex: index, modifiedIndex: index, timer };
}

/**
 * Makes a node inside new directories. It builds them from the inside out, so that the caller puts all of them into the
 * tree in one change.
 * @param names the name of the child in each new directory, outermost first. Without names it makes only the node.
 * @returns `top`, the outermost new node, and `node`, the innermost.
 */
export function nested(
  names: readonly string[],
  { index, above, make }: { readonly index: number; readonly above: Sums; readonly make: (above: Sums) => TreeNode },
): { readonly top: TreeNode; readonly node: TreeNode } {
  const directories: DirectoryNode[] = [];
  let innermost = above;
  for (const _ of names) {
    const directory = newDirectory(index, innermost);
    directories.push(directory);
    innermost = directory.sums;
  }
  const node = make(innermost);
  let top = node;
  for (let name = names.length - 1; name >= 0; name--) {
    const directory = directories[name];
    const at = names[name];
    assert(directory !== undefined && at !== undefined, "There is a directory for each name");
    directory.children.set(at, top);
    directory.sums.bytes = bytesOf(at, top);
    directory.sums.timers = timerCount(top);
    top = directory;
  }
  return { top, node };
}

/** The bytes that a node adds to its directory. */
function bytesOf(name: string, node: TreeNode): number {
  return bytesOfName(name) + (node.kind === "file" ? Buffer.byteLength(node.value) : node.sums.bytes);
}

/** The bytes of a name with its slash. */
export function bytesOfName(name: string): number {
  return 1 + Buffer.byteLength(name);
}

function timerCount(node: TreeNode): number {
  return (node.timer === undefined ? 0 : 1) + (node.kind === "file" ? 0 : node.sums.timers);
}

/**
 * Updates the sums of a directory and of all directories above it. Call it when a name in the directory gets another
 * node or loses its node.
 */
export function addUp(sums: Sums, name: string, before: TreeNode | undefined, node: TreeNode | undefined): void {
  const bytes = (node === undefined ? 0 : bytesOf(name, node)) - (before === undefined ? 0 : bytesOf(name, before));
  const timers = (node === undefined ? 0 : timerCount(node)) - (before === undefined ? 0 : timerCount(before));
  for (let each: Sums | undefined = sums; each !== undefined; each = each.above) {
    each.bytes += bytes;
    each.timers += timers;
  }
}

/** The timers that leave (`gone`) and enter (`come`) the tree when a name gets another node or loses its node. */
export function timersReplaced(
  before: TreeNode | undefined,
  node: TreeNode | undefined,
): { readonly gone: Iterable<Timer>; readonly goneCount: number; readonly come: Iterable<Timer> } {
  // True if both are records of the same directory. Then the directory keeps its content, with all timers in it.
  const isSame = before?.kind === "directory" && node?.kind === "directory" && before.sums === node.sums;
  const goneCount = before === undefined || isSame ? 0 : timerCount(before);
  return { gone: timersOf(before, isSame), goneCount, come: timersOf(node, isSame) };
}

function timersOf(node: TreeNode | undefined, onlyItsOwn: boolean): Iterable<Timer> {
  if (node === undefined || timerCount(node) === 0) return [];
  if (!onlyItsOwn) return timersIn(node);
  return node.timer === undefined ? [] : [node.timer];
}

/** The timers of a node and of all nodes below it. It visits only directories with timers. */
function* timersIn(top: TreeNode): Iterable<Timer> {
  if (top.timer !== undefined) yield top.timer;
  const open: Iterator<TreeNode>[] = [];
  if (top.kind === "directory") open.push(top.children.values());
  for (let children = open.at(-1); children !== undefined; children = open.at(-1)) {
    const { done, value: node } = children.next();
    if (done === true) {
      open.pop();
      continue;
    }
    if (node.timer !== undefined) yield node.timer;
    if (node.kind === "directory" && node.sums.timers > 0) open.push(node.children.values());
  }
}

/** True when a node has ended by the clock of this run, even if the log does not have its end yet. */
export function isDue({ timer }: TreeNode, nowMs: number): boolean {
  return timer !== undefined && timer.dueAtMs <= nowMs;
}

/**
 * A node as a record for events. The ttl is the remaining time at `atMs`, the record's time, so a replay makes equal
 * events.
 */
export function recordOf(path: StorePath, node: TreeNode, atMs: number): NodeRecord {
  const { timer } = node;
  return recordWith(
    path,
    node,
    timer && { expiresAtMs: timer.expiresAtMs, left: secondsLeft(timer, timer.expiresAtMs - atMs) },
  );
}

/** A node as a record for answers, with its end and remaining ttl by the clock of this run. */
export function shownOf(path: StorePath, node: TreeNode, nowMs: number): NodeRecord {
  const { timer } = node;
  return recordWith(
    path,
    node,
    timer && { expiresAtMs: timer.dueAtMs, left: secondsLeft(timer, timer.dueAtMs - nowMs) },
  );
}

/** A node as a record for followers, dumps and `inspect`, with the requested ttl. */
export function stateOf(path: StorePath, node: TreeNode): NodeRecord {
  const { timer } = node;
  return recordWith(path, node, timer && { expiresAtMs: timer.expiresAtMs, left: timer.ttlSeconds });
}

/** The end of a node in a `NodeRecord`. */
interface Ending {
  readonly expiresAtMs: number;
  /** The ttl in whole seconds; not above 0 after the end. */
  readonly left: number;
}

function recordWith(path: StorePath, node: TreeNode, ending: Ending | undefined): NodeRecord {
  const { createdIndex, modifiedIndex } = node;
  const record: NodeRecord =
    node.kind === "file"
      ? { path, isDirectory: false, value: node.value, createdIndex, modifiedIndex }
      : { path, isDirectory: true, createdIndex, modifiedIndex };
  if (ending === undefined) return record;
  const { expiresAtMs, left } = ending;
  return left > 0 ? { ...record, expiresAtMs, ttlSeconds: left } : { ...record, expiresAtMs };
}

// The end may be by the clock of another run, so `leftMs` may be longer than the requested ttl. The result never is.
function secondsLeft({ ttlSeconds }: Timer, leftMs: number): number {
  return Math.min(ttlSeconds, Math.ceil(leftMs / 1_000));
}

// An earlier time than any other, so nothing is due.
const never = Number.NEGATIVE_INFINITY;

/**
 * The node to which names lead from a directory; undefined if it or a directory on the way is missing, or due at
 * `nowMs`.
 */
export function descend(
  directory: DirectoryNode,
  segments: readonly string[],
  nowMs: number = never,
): TreeNode | undefined {
  let node: TreeNode | undefined = directory;
  for (const name of segments) {
    node = node?.kind === "directory" ? node.children.get(name) : undefined;
    if (node === undefined || isDue(node, nowMs)) return undefined;
  }
  return node;
}

/**
 * Every node below a directory, except nodes that are due at `nowMs` and their content. `path` is the path that the
 * directory has or had. It does not recurse, so any depth works.
 */
export function* walkBelow(
  path: StorePath,
  directory: DirectoryNode,
  nowMs: number = never,
): Iterable<readonly [StorePath, TreeNode]> {
  const open: (readonly [StorePath, DirectoryNode])[] = [[path, directory]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [parentPath, { children }] = next;
    for (const [name, child] of children) {
      if (isDue(child, nowMs)) continue;
      const at = childPath(parentPath, name);
      yield [at, child];
      if (child.kind === "directory") open.push([at, child]);
    }
  }
}
