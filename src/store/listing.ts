/** What an answer lists below a directory: visible names, one level or all, in any order or in that of their bytes. */

import { compareBytes } from "../lib/order.ts";
import { childPath, isHiddenName, type NodeView, type StorePath } from "./node.ts";
import { type DirectoryNode, isDue, shownOf, type TreeNode } from "./tree-node.ts";

export interface ListOptions {
  /** List directories below, too. */
  readonly recursive?: boolean;
  /** Order by the bytes of the path; otherwise the order means nothing. */
  readonly sorted?: boolean;
}

/** What a listing is made by. */
export interface ListQuery extends ListOptions {
  /** By the clock of this run: what is due then is not there. */
  readonly nowMs: number;
}

/** A node as an answer shows it: a directory with its visible children. */
export function viewOf(path: StorePath, node: TreeNode, query: ListQuery): NodeView {
  const record = shownOf(path, node, query.nowMs);
  if (node.kind === "file") return record;
  const nodes = listing(path, node, query);
  return nodes.length === 0 ? record : { ...record, nodes };
}

/** A directory whose children are yet to be listed. */
interface Pending {
  readonly path: StorePath;
  readonly children: readonly Child[];
  readonly into: NodeView[];
}

// Directories wait in a list of their own instead of on the call stack: a path may be thousands of names deep.
function listing(path: StorePath, directory: DirectoryNode, query: ListQuery): readonly NodeView[] {
  const top: NodeView[] = [];
  const pending: Pending[] = [{ path, children: visibleChildren(directory, query), into: top }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) listOne(next, pending, query);
  return top;
}

function listOne({ path, children, into }: Pending, pending: Pending[], query: ListQuery): void {
  for (const [name, node] of children) {
    const at = childPath(path, name);
    const below = node.kind === "directory" && query.recursive ? visibleChildren(node, query) : [];
    if (below.length === 0) {
      into.push(shownOf(at, node, query.nowMs));
      continue;
    }
    const nodes: NodeView[] = [];
    into.push({ ...shownOf(at, node, query.nowMs), nodes });
    pending.push({ path: at, children: below, into: nodes });
  }
}

type Child = readonly [name: string, node: TreeNode];

function visibleChildren(directory: DirectoryNode, { sorted = false, nowMs }: ListQuery): readonly Child[] {
  const visible = [...directory.children].filter(([name, node]) => !isHiddenName(name) && !isDue(node, nowMs));
  return sorted ? visible.sort(([a], [b]) => compareBytes(a, b)) : visible;
}
