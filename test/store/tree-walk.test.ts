import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply, type Command } from "../../src/store/command/command.ts";
import { rootPath, storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { type FileNode, newDirectory } from "../../src/store/tree/tree-node.ts";
import { FrozenWalks, type StoredNode } from "../../src/store/tree/tree-walk.ts";
import { anyCommand } from "../helpers/any-command.ts";

function run(tree: Tree, command: Command): void {
  try {
    apply(tree, { atMs: 0, command });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
  }
}

function dump(tree: Tree): readonly string[] {
  return [...tree.walk(storePath("/"))].map((node) => JSON.stringify(node)).toSorted();
}

/** A tree of what a walk found, as another process would build it. */
function rebuilt(index: number, nodes: readonly StoredNode[]): Tree {
  const tree = new Tree();
  for (const node of nodes) {
    tree.restore({ ...node, timer: node.timer && { ...node.timer, dueAtMs: node.timer.expiresAtMs, position: -1 } });
  }
  tree.restoreIndex(index);
  return tree;
}

/** What a walk finds of a tree, to which each command comes after some steps. */
function walked(tree: Tree, later: readonly (readonly [number, Command])[]): readonly StoredNode[] {
  const walk = tree.walkFrozen();
  const found: StoredNode[] = [];
  const waiting = later.flatMap(([steps, command]) => [...new Array<undefined>(steps).fill(undefined), command]);
  for (const node of walk.steps()) {
    if (node !== undefined) found.push(node);
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) run(tree, next);
  }
  walk.end();
  return found;
}

it("a walk finds the tree as it was when it began, whatever changes between its steps", () => {
  const anyCommands = fc.array(anyCommand, { maxLength: 40 });
  // After how many steps each later command comes.
  const anyLater = fc.array(fc.tuple(fc.nat(3), anyCommand), { maxLength: 40 });
  fc.assert(
    fc.property(anyCommands, anyLater, (before, later) => {
      const tree = new Tree();
      for (const command of before) run(tree, command);
      const { index, bytes, timers } = tree;
      const [expected, timerCount] = [dump(tree), timers.size];
      const found = walked(tree, later);
      expect(new Set(found.map(({ path }) => path)).size).toBe(found.length);
      const other = rebuilt(index, found);
      expect(dump(other)).toEqual(expected);
      expect([other.index, other.bytes, other.timers.size]).toEqual([index, bytes, timerCount]);
      // It goes on as the first one would have.
      const [first, second] = [rebuilt(index, found), rebuilt(index, found.toReversed())];
      for (const [, command] of later) for (const each of [first, second]) run(each, command);
      expect(dump(second)).toEqual(dump(first));
    }),
    { numRuns: 400 },
  );
});

it("every node is found once, and what was removed with all that was in it", () => {
  const tree = new Tree();
  for (const path of ["/a/1", "/a/2", "/b/c/1"]) run(tree, { kind: "set", path: storePath(path), value: path });
  const walk = tree.walkFrozen();
  run(tree, { kind: "delete", path: storePath("/b"), recursive: true });
  run(tree, { kind: "set", path: storePath("/b"), value: "now a file" });
  const paths = [...walk.steps()].flatMap((node) => (node === undefined ? [] : [node.path]));
  expect(paths.toSorted()).toEqual(["/a", "/a/1", "/a/2", "/b", "/b/c", "/b/c/1"]);
  walk.end();
});

it("a file that is changed again and again while a walk waits is kept once, and not at all if it is new", () => {
  const tree = new Tree();
  run(tree, { kind: "set", path: storePath("/old"), value: "before" });
  const walk = tree.walkFrozen();
  run(tree, { kind: "set", path: storePath("/new"), value: "x" });
  for (let change = 0; change < 100; change++) {
    for (const name of ["/old", "/new"]) run(tree, { kind: "update", path: storePath(name), value: `${change}` });
  }
  const steps = [...walk.steps()];
  expect(steps.flatMap((node) => (node === undefined ? [] : [`${node.path} ${node.value}`]))).toEqual(["/old before"]);
  expect(steps.length).toBeLessThan(5);
  walk.end();
});

describe("what is kept for walks that may be overtaken", () => {
  const top = newDirectory(0, undefined);
  const file = (length: number): FileNode => ({
    kind: "file",
    value: "x".repeat(length),
    createdIndex: 1,
    modifiedIndex: 1,
    timer: undefined,
  });
  const start = { path: rootPath, top, index: 1 };
  const change = (walks: FrozenWalks, name: string) =>
    walks.keep({ directory: top, name, path: storePath(`/${name}`) }, file(300));

  it("is bounded in sum: the oldest of them is ended, and others keep what they have", () => {
    // Each file is 800 bytes for each of two walks.
    const walks = new FrozenWalks(3_500);
    const snapshot = walks.begin(start);
    const [older, newer] = [1, 2].map(() => walks.begin({ ...start, mayBeOvertaken: true }));
    for (const name of ["a", "b"]) change(walks, name);
    expect([older?.isOvertaken, newer?.isOvertaken, walks.count]).toEqual([false, false, 3]);
    change(walks, "c");
    expect([older?.isOvertaken, newer?.isOvertaken, snapshot.isOvertaken, walks.count]).toEqual([
      true,
      false,
      false,
      2,
    ]);
    older?.end();
    for (const name of ["d"]) change(walks, name);
    expect(newer?.isOvertaken).toBe(false);
    expect([...(newer?.steps() ?? [])].map((node) => node?.path).toSorted()).toEqual(["/a", "/b", "/c", "/d"]);
  });

  it("begins with what has not been collected, and ends with the walk", () => {
    const walks = new FrozenWalks(1_000);
    const walk = walks.begin({ ...start, mayBeOvertaken: true });
    expect([...walk.steps()]).toEqual([]);
    for (const name of ["a", "b", "c"]) change(walks, name);
    expect(walk.isOvertaken).toBe(false);
    walk.end();
    const next = walks.begin({ ...start, mayBeOvertaken: true });
    change(walks, "a");
    expect(next.isOvertaken).toBe(false);
    next.end();
    expect(walks.count).toBe(0);
  });
});
