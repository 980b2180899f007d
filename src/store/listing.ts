/** What an answer lists below a directory: visible names, one level or all, in any order or in that of their bytes. */

import { compareBytes } from "../lib/order.ts";
import { childPath, isHiddenName, type NodeView, type StorePath } from "./node.ts";
import { type DirectoryNode, recordOf, type TreeNode } from "./tree-node.ts";

export interface ListOptions {
  /** List directories below, too. */
  readonly recursive?: boolean;
  /** Order by the bytes of the path; otherwise the order means nothing. */
  readonly sorted?: boolean;
}

/** A node as an answer shows it: a directory with its visible children. */
export function viewOf(path: StorePath, node: TreeNode, options: ListOptions): NodeView {
  const record = recordOf(path, node);
  if (node.kind === "file") return record;
  const nodes = listing(path, node, options);
  return nodes.length === 0 ? record : { ...record, nodes };
}

/** A directory whose children are yet to be listed. */
interface Pending {
  readonly path: StorePath;
  readonly children: readonly Child[];
  readonly into: NodeView[];
}

// Directories wait in a list of their own instead of on the call stack: a path may be thousands of names deep.
function listing(path: StorePath, directory: DirectoryNode, options: ListOptions): readonly NodeView[] {
  const top: NodeView[] = [];
  const pending: Pending[] = [{ path, children: visibleChildren(directory, options), into: top }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) listOne(next, pending, options);
  return top;
}

function listOne({ path, children, into }: Pending, pending: Pending[], options: ListOptions): void {
  for (const [name, node] of children) {
    const at = childPath(path, name);
    const below = node.kind === "directory" && options.recursive ? visibleChildren(node, options) : [];
    if (below.length === 0) {
      into.push(recordOf(at, node));
      continue;
    }
    const nodes: NodeView[] = [];
    into.push({ ...recordOf(at, node), nodes });
    pending.push({ path: at, children: below, into: nodes });
  }
}

type Child = readonly [name: string, node: TreeNode];

function visibleChildren(directory: DirectoryNode, { sorted = false }: ListOptions): readonly Child[] {
  const visible = [...directory.children].filter(([name]) => !isHiddenName(name));
  return sorted ? visible.sort(([a], [b]) => compareBytes(a, b)) : visible;
}
