/** Paths of nodes, and `NodeRecord`: a copy of a node for answers, events and the history. */

import { assert } from "../../lib/errors.ts";

declare const storePathBrand: unique symbol;

/**
 * The path of a node: `/`, or segments that each begin with a slash. No segment is empty, `.` or `..`, so each node has
 * exactly one path.
 */
export type StorePath = string & { readonly [storePathBrand]: true };

/** The names of changes, in the protocol's words. */
export type Action = "set" | "create" | "update" | "compareAndSwap" | "delete" | "compareAndDelete" | "expire";

/** A node at one moment. */
export interface NodeRecord {
  readonly path: StorePath;
  readonly isDirectory: boolean;
  /** Absent for a directory, and in the `node` of an event that removes a file. */
  readonly value?: string;
  /** When the node ends, Unix milliseconds; absent for a permanent node. */
  readonly expiresAtMs?: number;
  /**
   * Whole seconds until the end, rounded up; in a record by `stateOf`, the requested ttl. Absent when the end has
   * passed, and for a permanent node.
   */
  readonly ttlSeconds?: number;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
}

/** One change. Its index is `node.modifiedIndex`. */
export interface StoreEvent {
  readonly action: Action;
  readonly node: NodeRecord;
  /** The node before the change; absent when there was none. */
  readonly prevNode?: NodeRecord;
  /**
   * The write was a refresh: it changed the end of the node, and not its value. The event is in the history, but no
   * watcher gets it.
   */
  readonly isRefresh?: true;
}

// Matches a segment that no path may have: an empty one, `.` or `..`. Each request parses a path, and a regular
// expression is the fastest check.
const badSegment = /\/\.{0,2}(?:\/|$)/;

/** Parses a path; undefined unless it has the form of `StorePath`. */
export function parsePath(text: string): StorePath | undefined {
  const isPath = text === "/" || (text.startsWith("/") && !badSegment.test(text));
  return isPath ? (text as StorePath) : undefined;
}

/**
 * Checks a path that our own code wrote or built.
 * @throws {BugError} for a malformed path.
 */
export function storePath(text: string): StorePath {
  const path = parsePath(text);
  assert(path !== undefined, `Bad store path ${JSON.stringify(text)}`);
  return path;
}

export const rootPath = storePath("/");

/** The names on a path, from the root down; none for the root itself. */
export function segmentsOf(path: StorePath): readonly string[] {
  return path === rootPath ? [] : path.slice(1).split("/");
}

/** The path that these names lead to from the root. */
export function pathOf(segments: readonly string[]): StorePath {
  return storePath(`/${segments.join("/")}`);
}

/** The path of a directory's child. `name` was part of a path before, so it is one segment. */
export function childPath(directory: StorePath, name: string): StorePath {
  return (directory === rootPath ? `/${name}` : `${directory}/${name}`) as StorePath;
}

/** True if `path` is strictly below `ancestor`. */
export function isBelow(path: StorePath, ancestor: StorePath): boolean {
  if (ancestor === rootPath) return path !== rootPath;
  return path.length > ancestor.length && path.startsWith(ancestor) && path[ancestor.length] === "/";
}

/** True if `path` is `ancestor` or below it. */
export function isAtOrBelow(path: StorePath, ancestor: StorePath): boolean {
  return path === ancestor || isBelow(path, ancestor);
}

/**
 * True for the name of a hidden node. Listings omit such a node. Recursive watches of a directory above skip its
 * events.
 */
export function isHiddenName(name: string): boolean {
  return name.startsWith("_");
}

/** True when `path`, which is below `ancestor`, has a hidden name after the ancestor's part. */
export function isHiddenBelow(path: StorePath, ancestor: StorePath): boolean {
  return path.slice(ancestor === rootPath ? 0 : ancestor.length).includes("/_");
}
