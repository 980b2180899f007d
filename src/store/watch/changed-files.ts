/** Translates changes for followers, which know only files. */

import { isAtOrBelow, type NodeRecord, type StorePath } from "../core/node.ts";
import type { Change } from "../tree/change.ts";
import { walkBelow } from "../tree/tree-node.ts";

/** A file's new text, or undefined when it is gone. */
export interface FileChange {
  readonly path: string;
  readonly text: string | undefined;
}

/** Paths and texts of the files among some nodes. */
export function* filesAmong(nodes: Iterable<NodeRecord>): Iterable<readonly [StorePath, string]> {
  for (const { path, value } of nodes) if (value !== undefined) yield [path, value];
}

/** The result for each file at or below a prefix; of several changes of one file the last. */
export function changedFiles(changes: readonly Change[], prefix: StorePath): readonly FileChange[] {
  // Most changes are elsewhere, and every one is checked.
  const near = changes.filter(({ event }) => touches(event.node.path, prefix));
  if (near.length === 0) return [];
  const texts = new Map<StorePath, string | undefined>();
  for (const change of near) for (const [path, text] of filesOf(change)) texts.set(path, text);
  return [...texts].filter(([path]) => isAtOrBelow(path, prefix)).map(([path, text]) => ({ path, text }));
}

function* filesOf({ event, removed }: Change): Iterable<readonly [StorePath, string | undefined]> {
  const { node, prevNode, isRefresh } = event;
  // The text is unchanged.
  if (isRefresh === true && !node.isDirectory) return;
  if (removed !== undefined) {
    for (const [path, { kind }] of walkBelow(node.path, removed)) if (kind === "file") yield [path, undefined];
  }
  // A directory is no file, but it may have replaced one.
  if (node.value !== undefined || prevNode?.value !== undefined) yield [node.path, node.value];
}

/** True when something at or below a path may be at or below a prefix. */
function touches(path: StorePath, prefix: StorePath): boolean {
  return isAtOrBelow(path, prefix) || isAtOrBelow(prefix, path);
}
