/** What the tree is made of: immutable records, in maps that change. */

import { childPath, type NodeRecord, type StorePath } from "./node.ts";

export interface FileNode {
  readonly kind: "file";
  readonly value: string;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
}

export interface DirectoryNode {
  readonly kind: "directory";
  /** A Map, since `__proto__` is a name like any other. */
  readonly children: Map<string, TreeNode>;
  readonly createdIndex: number;
  readonly modifiedIndex: number;
}

export type TreeNode = FileNode | DirectoryNode;

export function newFile(value: string, createdIndex: number, modifiedIndex: number): FileNode {
  return { kind: "file", value, createdIndex, modifiedIndex };
}

export function newDirectory(index: number): DirectoryNode {
  return { kind: "directory", children: new Map(), createdIndex: index, modifiedIndex: index };
}

/** A node as events and answers carry it. */
export function recordOf(path: StorePath, node: TreeNode): NodeRecord {
  const { createdIndex, modifiedIndex } = node;
  if (node.kind === "directory") return { path, isDirectory: true, createdIndex, modifiedIndex };
  return { path, isDirectory: false, value: node.value, createdIndex, modifiedIndex };
}

/** The node at these names below a directory; undefined when there is none. */
export function descend(directory: DirectoryNode, segments: readonly string[]): TreeNode | undefined {
  let node: TreeNode | undefined = directory;
  for (const name of segments) node = node?.kind === "directory" ? node.children.get(name) : undefined;
  return node;
}

/** Every node below a directory that is or was at `path`. It needs no stack, so any depth will do. */
export function* walkBelow(path: StorePath, directory: DirectoryNode): Iterable<NodeRecord> {
  const open: (readonly [StorePath, DirectoryNode])[] = [[path, directory]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [parentPath, { children }] = next;
    for (const [name, child] of children) {
      const at = childPath(parentPath, name);
      yield recordOf(at, child);
      if (child.kind === "directory") open.push([at, child]);
    }
  }
}
