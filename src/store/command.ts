/**
 * What the log holds. A command says what a client asked, never what came of it: `apply` is a pure function of the tree
 * and the record, so that every replay ends in the same state. Refusals are results of it, too.
 */

import { unreachable } from "../lib/errors.ts";
import type { StorePath } from "./node.ts";
import { StoreError } from "./refusal.ts";
import type { Change, Tree } from "./tree.ts";
import type { FileNode } from "./tree-node.ts";

interface Written {
  readonly path: StorePath;
  readonly value: string;
}

interface Created extends Written {
  /** Makes an empty directory instead of a file; the value is dropped. */
  readonly dir?: boolean;
}

/** What must hold for a compare command. At least one of them is given. */
export interface Expected {
  readonly value?: string;
  /** Of the last change; any unsigned 64-bit number, since clients may send one. */
  readonly index?: bigint;
}

/** One change of one node. */
export type SingleCommand =
  | ({ readonly kind: "set" } & Created)
  | ({ readonly kind: "create" } & Created)
  /** Makes a child of the directory `path`, named by the index of this change. */
  | ({ readonly kind: "createInOrder" } & Created)
  /** On a directory, only with an empty value. */
  | ({ readonly kind: "update" } & Written)
  | ({ readonly kind: "compareAndSwap"; readonly expected: Expected } & Written)
  /** `dir` allows an empty directory, `recursive` any. */
  | { readonly kind: "delete"; readonly path: StorePath; readonly dir?: boolean; readonly recursive?: boolean }
  | { readonly kind: "compareAndDelete"; readonly path: StorePath; readonly expected: Expected };

/** `batch`: all of them or, if one is refused, none. Each takes an index of its own. It is not empty. */
export type Command = SingleCommand | { readonly kind: "batch"; readonly commands: readonly SingleCommand[] };

/** A command as it is logged. */
export interface CommandRecord {
  /** Wall clock when it was proposed, Unix milliseconds: the only time that `apply` may know. */
  readonly atMs: number;
  readonly command: Command;
}

/**
 * Applies a record. The tree's index grows by exactly one for each change.
 * @throws {StoreError} when the command is refused; then the tree is as it was.
 */
export function apply(tree: Tree, { command }: CommandRecord): readonly Change[] {
  if (command.kind !== "batch") return [applyOne(tree, command)];
  return tree.atomically(() => command.commands.map((single) => applyOne(tree, single)));
}

function applyOne(tree: Tree, command: SingleCommand): Change {
  switch (command.kind) {
    case "set":
      return tree.create({ ...command, action: "set", replaces: true });
    case "create":
      return tree.create({ ...command, action: "create", replaces: false });
    case "createInOrder":
      return tree.create({ ...command, path: tree.nextInOrder(command.path), action: "create", replaces: false });
    case "update":
      return tree.overwrite(command.path, command.value, "update");
    case "compareAndSwap":
      // Before the comparison, while a compare on delete answers for the root as for any directory.
      tree.refuseRoot(command.path);
      compare(tree.fileAt(command.path), command.expected, tree.index);
      return tree.overwrite(command.path, command.value, "compareAndSwap");
    case "delete":
      return tree.remove(command.path, "delete", command);
    case "compareAndDelete":
      compare(tree.fileAt(command.path), command.expected, tree.index);
      return tree.remove(command.path, "compareAndDelete", {});
    default:
      return unreachable(command);
  }
}

// The form of the cause: etcd v3.4.23 v2store/store.go, getCompareFailCause. Values come first, raw.
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
