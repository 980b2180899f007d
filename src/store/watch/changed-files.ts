/** Turns changes of the tree into changes of files, because followers know only files. */

import { isAtOrBelow, type NodeRecord, type StorePath } from "../core/node.ts";
import type { Change } from "../tree/change.ts";
import { walkBelow } from "../tree/tree-node.ts";

/** A file's new text; undefined if the file is gone. */
export interface FileChange {
  readonly path: string;
  readonly text: string | undefined;
}

/** Paths and texts of the files among some nodes. */
export function* filesAmong(nodes: Iterable<NodeRecord>): Iterable<readonly [StorePath, string]> {
  for (const { path, value } of nodes) if (value !== undefined) yield [path, value];
}

/** The new text of each changed file at or below a prefix. If a file changed several times, the last change counts. */
export function changedFiles(changes: readonly Change[], prefix: StorePath): readonly FileChange[] {
  // Most changes concern other paths, so they are filtered out first.
  const near = changes.filter(({ event }) => touches(event.node.path, prefix));
  if (near.length === 0) return [];
  const texts = new Map<StorePath, string | undefined>();
  for (const change of near) for (const [path, text] of filesOf(change)) texts.set(path, text);
  return [...texts].filter(([path]) => isAtOrBelow(path, prefix)).map(([path, text]) => ({ path, text }));
}

function* filesOf({ event, removed }: Change): Iterable<readonly [StorePath, string | undefined]> {
  const { node, prevNode, isRefresh } = event;
  // A refresh keeps the text of a file.
  if (isRefresh === true && !node.isDirectory) return;
  if (removed !== undefined) {
    for (const [path, { kind }] of walkBelow(node.path, removed)) if (kind === "file") yield [path, undefined];
  }
  // A removed file has its value only in `prevNode`. So has a file that a new directory replaced.
  if (node.value !== undefined || prevNode?.value !== undefined) yield [node.path, node.value];
}

/**
 * True if the change of a node at `path` may concern files at or below `prefix`: one of the two paths contains the
 * other.
 */
function touches(path: StorePath, prefix: StorePath): boolean {
  return isAtOrBelow(path, prefix) || isAtOrBelow(prefix, path);
}
