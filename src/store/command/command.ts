/**
 * The log's commands. A command says what a client asked, never the result. `apply` is a pure function of the tree and
 * the record, so every replay ends in the same state. Refusals are results of `apply`, too.
 */

import { unreachable } from "../../lib/errors.ts";
import type { StorePath } from "../core/node.ts";
import { StoreError } from "../core/refusal.ts";
import type { Change } from "../tree/change.ts";
import type { Tree } from "../tree/tree.ts";
import type { FileNode } from "../tree/tree-node.ts";

interface WrittenValue {
  readonly path: StorePath;
  readonly value: string;
  /** Lifetime from the record's time on; without it the node is permanent; 0: due at once. */
  readonly ttlSeconds?: number;
}

interface Created extends WrittenValue {
  /** Makes an empty directory instead of a file; the value is dropped. */
  readonly dir?: boolean;
}

interface Refreshing {
  /** Keeps the present value, instead of the given one, and notifies no watcher. */
  readonly refresh?: boolean;
}

/** What must hold for a compare command. At least one of them is given. */
export interface Expected {
  readonly value?: string;
  /** Of the last change; any unsigned 64-bit number, since clients may send one. */
  readonly index?: bigint;
}

/** One change of one node. */
export type SingleCommand =
  | ({ readonly kind: "set" } & Created & Refreshing)
  | ({ readonly kind: "create" } & Created)
  /** Makes a child of the directory `path`, named by the index of this change. */
  | ({ readonly kind: "createInOrder" } & Created)
  /** On a directory, only with an empty value. */
  | ({ readonly kind: "update" } & WrittenValue & Refreshing)
  | ({ readonly kind: "compareAndSwap"; readonly expected: Expected } & WrittenValue & Refreshing)
  /** `dir` allows an empty directory, `recursive` any. */
  | { readonly kind: "delete"; readonly path: StorePath; readonly dir?: boolean; readonly recursive?: boolean }
  | { readonly kind: "compareAndDelete"; readonly path: StorePath; readonly expected: Expected };

/** Ends the node at `path` if it still has the end `expiresAtMs`; otherwise it is void. */
export interface ExpireCommand {
  readonly kind: "expire";
  readonly path: StorePath;
  readonly expiresAtMs: number;
}

/** Applies all commands or, if one is refused, none. Each gets an index, unless it is void. At least one. */
interface Batch<Each> {
  readonly kind: "batch";
  readonly commands: readonly Each[];
}

/** What a caller may submit to the store. */
export type Submission = SingleCommand | Batch<SingleCommand>;

/** What the log may hold. */
export type Command = SingleCommand | ExpireCommand | Batch<SingleCommand | ExpireCommand>;

/** A command as it is logged. */
export interface CommandRecord {
  /** When it was proposed, by the clock of that run, Unix milliseconds: the only time that `apply` may use. */
  readonly atMs: number;
  /** The start that proposed it, see `Lineage`; absent after a record with it is in the log. */
  readonly run?: string | undefined;
  /** When that start began, by its clock; present with `run`, but absent in records of earlier versions. */
  readonly beganAtMs?: number | undefined;
  readonly command: Command;
}

/**
 * Applies a record. The tree's index grows by exactly one for each change.
 * @returns the changes; none only if all nodes that it should end are gone.
 * @throws {StoreError} when the command is refused; then the tree is unchanged.
 */
export function apply(tree: Tree, { command, atMs }: CommandRecord): readonly Change[] {
  if (command.kind === "batch") {
    return tree.atomically(() => command.commands.flatMap((single) => applyOne(tree, single, atMs) ?? []));
  }
  const change = applyOne(tree, command, atMs);
  return change === undefined ? [] : [change];
}

function applyOne(tree: Tree, command: SingleCommand | ExpireCommand, atMs: number): Change | undefined {
  const { path } = command;
  switch (command.kind) {
    case "set":
      return tree.create({ ...command, ...refreshed(tree, command), atMs, action: "set", replaces: true });
    case "create":
      return tree.create({ ...command, atMs, action: "create", replaces: false });
    case "createInOrder":
      return tree.create({ ...command, path: tree.nextInOrder(path), atMs, action: "create", replaces: false });
    case "update":
      return tree.overwrite({ ...overwriting(command), atMs, action: "update" });
    case "compareAndSwap":
      // The reference refuses the root before it compares. A compare-and-delete treats the root like any directory.
      tree.refuseRoot(path);
      compare(tree.fileAt(path), command.expected, tree.index);
      return tree.overwrite({ ...overwriting(command), atMs, action: "compareAndSwap" });
    case "delete":
      return tree.remove({ ...command, atMs, action: "delete" });
    case "compareAndDelete":
      compare(tree.fileAt(path), command.expected, tree.index);
      return tree.remove({ path, atMs, action: "compareAndDelete" });
    case "expire":
      return tree.expire(path, command.expiresAtMs, atMs);
    default:
      return unreachable(command);
  }
}

/** A set that refreshes needs an existing file, and keeps its value. */
function refreshed(tree: Tree, { path, value, refresh = false }: WrittenValue & Refreshing) {
  if (!refresh) return { value, isRefresh: false };
  tree.refuseRoot(path);
  return { value: tree.fileAt(path).value, isRefresh: true };
}

function overwriting({ path, value, ttlSeconds, refresh = false }: WrittenValue & Refreshing) {
  return { path, ttlSeconds, value: refresh ? undefined : value, isRefresh: refresh };
}

// The cause has the form of etcd v3.4.23 v2store/store.go, getCompareFailCause. Values come first, raw.
function compare(file: FileNode, expected: Expected, index: number): void {
  const failures: string[] = [];
  if (expected.value !== undefined && expected.value !== file.value) {
    failures.push(`[${expected.value} != ${file.value}]`);
  }
  // An index of 0 always passes.
  const isOtherIndex = expected.index !== BigInt(file.modifiedIndex);
  if (expected.index !== undefined && expected.index !== 0n && isOtherIndex) {
    failures.push(`[${expected.index} != ${file.modifiedIndex}]`);
  }
  if (failures.length > 0) throw new StoreError("compareFailed", failures.join(" "), index);
}
