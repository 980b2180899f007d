/** Paths, and the records in answers, events and history, which are copies of nodes. */

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
  /** Absent for directories and in the `node` of a delete or an expiry. */
  readonly value?: string;
  /** When the node ends, Unix milliseconds; absent for a permanent node. */
  readonly expiresAtMs?: number;
  /** Whole seconds until the end, rounded up; absent when it has passed. */
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
   * Only the time at which the node ends changed, because the write asked for a refresh. The event is in the history,
   * but no watcher gets it.
   */
  readonly isRefresh?: true;
}

// A segment that no path may have: an empty one, `.` or `..`. Every request parses a path, and this check costs least.
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

/** The names from the root down; none for the root. */
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

/** True for a path strictly below another. */
export function isBelow(path: StorePath, ancestor: StorePath): boolean {
  if (ancestor === rootPath) return path !== rootPath;
  return path.length > ancestor.length && path.startsWith(ancestor) && path[ancestor.length] === "/";
}

/** True for a path itself and everything below it. */
export function isAtOrBelow(path: StorePath, ancestor: StorePath): boolean {
  return path === ancestor || isBelow(path, ancestor);
}

/** Hidden names are left out of listings, and of recursive watches from above. */
export function isHiddenName(name: string): boolean {
  return name.startsWith("_");
}

/** True when `path`, which is below `ancestor`, has a hidden name after the ancestor's part. */
export function isHiddenBelow(path: StorePath, ancestor: StorePath): boolean {
  return path.slice(ancestor === rootPath ? 0 : ancestor.length).includes("/_");
}
