/**
 * The commands in the log. A command says what a client requested, never the result. `apply` depends only on the tree
 * and the record. So every replay ends in the same state, and refuses the same commands.
 */

import { unreachable } from "../../lib/errors.ts";
import type { ProposeOptions } from "../core/log-port.ts";
import type { StorePath } from "../core/node.ts";
import { StoreError } from "../core/refusal.ts";
import type { Change } from "../tree/change.ts";
import type { Tree } from "../tree/tree.ts";
import type { FileNode } from "../tree/tree-node.ts";

interface WrittenValue {
  readonly path: StorePath;
  readonly value: string;
  /** Lifetime from the record's time on. Absent for a permanent node; a node with 0 is due immediately. */
  readonly ttlSeconds?: number;
}

interface Created extends WrittenValue {
  /** If true, the command makes an empty directory instead of a file, and ignores `value`. */
  readonly dir?: boolean;
}

interface Refreshing {
  /** If true, the command keeps the present value, ignores `value`, and notifies no watcher. */
  readonly refresh?: boolean;
}

/** The conditions of a compare command. A command has at least one of them. */
export interface Expected {
  readonly value?: string;
  /**
   * The required index of the file's last change. It is a bigint because clients may send any unsigned 64-bit number.
   */
  readonly index?: bigint;
}

/** One change of one node. */
export type SingleCommand =
  | ({ readonly kind: "set" } & Created & Refreshing)
  | ({ readonly kind: "create" } & Created)
  /** Makes a child of the directory `path`. The child's name is the index of this change. */
  | ({ readonly kind: "createInOrder" } & Created)
  /** For a directory, the value must be empty. */
  | ({ readonly kind: "update" } & WrittenValue & Refreshing)
  | ({ readonly kind: "compareAndSwap"; readonly expected: Expected } & WrittenValue & Refreshing)
  /** `dir` allows the removal of an empty directory, `recursive` of any directory. */
  | { readonly kind: "delete"; readonly path: StorePath; readonly dir?: boolean; readonly recursive?: boolean }
  | { readonly kind: "compareAndDelete"; readonly path: StorePath; readonly expected: Expected };

/**
 * Ends the node at `path` if the node still ends at `expiresAtMs`. Otherwise the command is void: it changes nothing.
 */
export interface ExpireCommand {
  readonly kind: "expire";
  readonly path: StorePath;
  readonly expiresAtMs: number;
}

/**
 * Lets the node at `path` end `leftMs` after the record's time. The command is void if the node has no end, or was
 * changed after `modifiedIndex`. It is no change: the node keeps its indexes, and no watcher is notified. The store
 * logs it after a write that took long, so that the client has the whole ttl (`whole-ttl.ts`).
 */
export interface ExtendCommand {
  readonly kind: "extend";
  readonly path: StorePath;
  readonly modifiedIndex: number;
  readonly leftMs: number;
}

/**
 * Applies all its commands or, if one of them is refused, none. Each command gets an index, unless it is void. Only a
 * mark has none (`isMark`).
 */
interface Batch<Each> {
  readonly kind: "batch";
  readonly commands: readonly Each[];
}

/** The commands that a caller may submit to the store. */
export type Submission = SingleCommand | Batch<SingleCommand>;

/** The commands that the log may hold. */
export type Command = SingleCommand | ExpireCommand | ExtendCommand | Batch<SingleCommand | ExpireCommand>;

/** A command in the form in which it is logged. */
export interface CommandRecord {
  /**
   * When the command was proposed: Unix milliseconds by the clock of its run, or of the leader of `clockTerm`. `apply`
   * uses no other time.
   */
  readonly atMs: number;
  /**
   * The id of the run that proposed the command, see `StateMachine`. Only the first changes of a run carry it, and a
   * record that begins a term.
   */
  readonly run?: string | undefined;
  /**
   * When that run began, by the run's clock. Only the first records of a run carry it. Records of older davits never
   * do.
   */
  readonly beganAtMs?: number | undefined;
  /** The term of the leader whose clock gave `atMs`; absent in a log with one member. */
  readonly clockTerm?: number | undefined;
  /** True for a record of davit 0.2.0 with several members: its time may be before that of the record before it. */
  readonly mayGoBack?: boolean;
  readonly command: Command;
}

/** The fields that the first records of a run carry. */
export interface NewRun {
  readonly run: string;
  readonly beganAtMs: number;
}

/**
 * True for a mark: a command that changes no node. It records its time alone, or another end of a node. The lineage
 * ignores a mark without a `run`.
 */
export function isMark(command: Command): boolean {
  return command.kind === "extend" || (command.kind === "batch" && command.commands.length === 0);
}

/**
 * Returns the fields that the record of a command carries while its run is new. For a mark, `run` is left out: a mark
 * makes no change, so it must not change the lineage.
 */
export function newRunOf({ run, beganAtMs }: NewRun, command: Command): Partial<NewRun> {
  return isMark(command) ? { beganAtMs } : { run, beganAtMs };
}

/**
 * Applies a record. The tree's index grows by exactly one for each change.
 * @returns the changes; none for a mark, for an `extend`, and if every node that the record ends is gone already.
 * @throws {StoreError} when the command is refused; then the tree is unchanged.
 */
export function apply(tree: Tree, { command, atMs }: CommandRecord): readonly Change[] {
  if (command.kind === "batch") {
    return tree.atomically(() => command.commands.flatMap((single) => applyOne(tree, single, atMs) ?? []));
  }
  if (command.kind === "extend") {
    tree.extend(command, atMs);
    return [];
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
      // etcd refuses the root before it compares. Its compare-and-delete treats the root like any directory.
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

/** The value that a set writes. A refresh needs an existing file, and keeps the file's value. */
function refreshed(tree: Tree, { path, value, refresh = false }: WrittenValue & Refreshing) {
  if (!refresh) return { value, isRefresh: false };
  tree.refuseRoot(path);
  return { value: tree.fileAt(path).value, isRefresh: true };
}

function overwriting({ path, value, ttlSeconds, refresh = false }: WrittenValue & Refreshing) {
  return { path, ttlSeconds, value: refresh ? undefined : value, isRefresh: refresh };
}

// The cause has the form of etcd v3.4.23 v2store/store.go, getCompareFailCause: values first, and not quoted.
function compare(file: FileNode, expected: Expected, index: number): void {
  const failures: string[] = [];
  if (expected.value !== undefined && expected.value !== file.value) {
    failures.push(`[${expected.value} != ${file.value}]`);
  }
  // As in etcd, an expected index of 0 always passes.
  const isOtherIndex = expected.index !== BigInt(file.modifiedIndex);
  if (expected.index !== undefined && expected.index !== 0n && isOtherIndex) {
    failures.push(`[${expected.index} != ${file.modifiedIndex}]`);
  }
  if (failures.length > 0) throw new StoreError("compareFailed", failures.join(" "), index);
}

/** How a batch is logged, where it differs from the batches of davit's controller. */
export interface SubmitOptions {
  /**
   * False for a batch that its own conditions protect (`compareAndSwap`, `create`). Every member may log it, even if
   * another member leads. True unless given.
   */
  readonly fenced?: boolean;
  /** False for a batch that may not use the reserve of a full disk. True unless given. */
  readonly frees?: boolean;
}

/**
 * Removals may use the log's reserve on a full disk. So may the batches of davit's controller. They are fenced: the
 * controller of a former leader may have planned its batch before another member took over, and would bring older
 * documents back.
 */
export function proposeOptions(
  { kind }: Command,
  { fenced = true, frees = true }: SubmitOptions,
): ProposeOptions | undefined {
  if (kind === "batch") return { frees, fenced };
  return kind === "delete" || kind === "compareAndDelete" ? { frees: true } : undefined;
}
