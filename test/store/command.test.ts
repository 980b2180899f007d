import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply, type Command, type SingleCommand } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { anyCommand, singlesOf } from "../helpers/any-command.ts";
import { pathsOf } from "../helpers/listed.ts";

const path = storePath;
const set = (at: string, value: string, ttlSeconds?: number): SingleCommand => ({
  kind: "set",
  path: path(at),
  value,
  ...(ttlSeconds !== undefined && { ttlSeconds }),
});

function run(tree: Tree, command: Command) {
  return apply(tree, { atMs: 0, command });
}

/** None when it is refused. */
function changesOf(tree: Tree, command: Command) {
  try {
    return run(tree, command);
  } catch (error) {
    if (error instanceof StoreError) return [];
    throw error;
  }
}

function refusalOf(tree: Tree, command: Command) {
  try {
    run(tree, command);
  } catch (error) {
    if (error instanceof StoreError) return [error.refusal, error.causeText, error.index];
    throw error;
  }
  return undefined;
}

function dump(tree: Tree) {
  return [...tree.walk(path("/"))].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

describe("refusals", () => {
  const before: readonly SingleCommand[] = [set("/file", "x"), set("/dir/child", "y")];
  const refused: readonly (readonly [string, Command, string, string])[] = [
    ["set over a directory", set("/dir", "x"), "notFile", "/dir"],
    ["set below a file", set("/file/a/b", "x"), "notDirectory", "/file"],
    ["set of the root", set("/", "x"), "rootReadOnly", "/"],
    ["create of a file", { kind: "create", path: path("/file"), value: "" }, "keyExists", "/file"],
    ["create of a directory", { kind: "create", path: path("/dir"), value: "", dir: true }, "keyExists", "/dir"],
    ["create in a file", { kind: "createInOrder", path: path("/file"), value: "" }, "notDirectory", "/file"],
    ["update of nothing", { kind: "update", path: path("/no/where"), value: "" }, "keyNotFound", "/no"],
    ["update of a directory", { kind: "update", path: path("/dir"), value: "x" }, "notFile", "/dir"],
    [
      "swap of another value",
      { kind: "compareAndSwap", path: path("/file"), value: "", expected: { value: "z" } },
      "compareFailed",
      "[z != x]",
    ],
    [
      "swap of another index",
      { kind: "compareAndSwap", path: path("/file"), value: "", expected: { value: "x", index: 2n ** 64n - 1n } },
      "compareFailed",
      "[18446744073709551615 != 1]",
    ],
    [
      "swap of another value and index",
      { kind: "compareAndSwap", path: path("/file"), value: "", expected: { value: "z", index: 2n } },
      "compareFailed",
      "[z != x] [2 != 1]",
    ],
    [
      "swap of a directory",
      { kind: "compareAndSwap", path: path("/dir"), value: "", expected: { index: 2n } },
      "notFile",
      "/dir",
    ],
    [
      "swap of the root",
      { kind: "compareAndSwap", path: path("/"), value: "", expected: { index: 2n } },
      "rootReadOnly",
      "/",
    ],
    [
      "compared delete of the root",
      { kind: "compareAndDelete", path: path("/"), expected: { index: 2n } },
      "notFile",
      "",
    ],
    ["delete of nothing", { kind: "delete", path: path("/file2") }, "keyNotFound", "/file2"],
    ["delete of a directory", { kind: "delete", path: path("/dir") }, "notFile", "/dir"],
    ["delete of a full directory", { kind: "delete", path: path("/dir"), dir: true }, "directoryNotEmpty", "/dir"],
    ["delete of the root", { kind: "delete", path: path("/"), recursive: true }, "rootReadOnly", "/"],
  ];

  it.each(refused)("%s is refused and changes nothing", (_, command, refusal, cause) => {
    const tree = new Tree();
    for (const command of before) run(tree, command);
    const dumped = dump(tree);
    expect(refusalOf(tree, command)).toEqual([refusal, cause, 2]);
    expect(dump(tree)).toEqual(dumped);
    expect(tree.index).toBe(2);
  });
});

it("an event keeps the node as it was", () => {
  const tree = new Tree();
  const [first] = run(tree, set("/a", "1"));
  run(tree, set("/a", "2"));
  expect(first?.event.node.value).toBe("1");
});

it("a batch gives each change an index of its own", () => {
  const tree = new Tree();
  const changes = run(tree, { kind: "batch", commands: [set("/a", "1"), set("/b", "2"), set("/a", "3")] });
  expect(changes.map(({ event }) => event.node.modifiedIndex)).toEqual([1, 2, 3]);
  expect(changes[2]?.event.prevNode?.value).toBe("1");
});

it("a batch of which one command is refused leaves no trace, whatever came before", () => {
  fc.assert(
    fc.property(fc.array(anyCommand), fc.array(anyCommand), (before, inside) => {
      const tree = new Tree();
      for (const command of before) refusalOf(tree, command);
      const dumped = dump(tree);
      const { index } = tree;
      const refused: SingleCommand = { kind: "delete", path: path("/") };
      const singles = inside.flatMap(singlesOf);
      expect(refusalOf(tree, { kind: "batch", commands: [...singles, refused] })?.[2]).toBe(index);
      expect(dump(tree)).toEqual(dumped);
      expect(tree.index).toBe(index);
    }),
  );
});

it("the index grows by one for each change and not at all for a refusal", () => {
  fc.assert(
    fc.property(fc.array(anyCommand, { maxLength: 40 }), (commands) => {
      const tree = new Tree();
      for (const command of commands) {
        const { index } = tree;
        const changes = changesOf(tree, command);
        expect(changes.map(({ event }) => event.node.modifiedIndex)).toEqual(changes.map((_, at) => index + at + 1));
        expect(tree.index).toBe(index + changes.length);
      }
    }),
  );
});

it("the sums over the tree are what its nodes add up to", () => {
  fc.assert(
    fc.property(fc.array(anyCommand, { maxLength: 40 }), (commands) => {
      const tree = new Tree();
      for (const command of commands) {
        changesOf(tree, command);
        const nodes = dump(tree).filter(({ path: at }) => at !== "/");
        const bytes = nodes.map(({ path: at, value = "" }) => Buffer.byteLength(`/${at.split("/").at(-1)}${value}`));
        expect(tree.bytes).toBe(bytes.reduce((sum, each) => sum + each, 0));
        expect(tree.timers.size).toBe(nodes.filter(({ expiresAtMs }) => expiresAtMs !== undefined).length);
      }
    }),
  );
});

it("an expire is void when the node is gone or has another end", () => {
  const tree = new Tree();
  run(tree, set("/a", "1", 5));
  const expire = (at: string, expiresAtMs: number) => run(tree, { kind: "expire", path: path(at), expiresAtMs });
  expect([expire("/a", 4_000), expire("/b", 5_000), expire("/", 0), expire("/a/b", 5_000)]).toEqual([[], [], [], []]);
  expect(tree.index).toBe(1);
  expect(expire("/a", 5_000)).toMatchObject([{ event: { action: "expire", node: { modifiedIndex: 2 } } }]);
});

describe("a refresh", () => {
  const before = set("/a", "1", 5);
  const end = { ttlSeconds: 9, refresh: true };
  const refreshes: readonly SingleCommand[] = [
    { kind: "set", path: path("/a"), value: "", ...end },
    { kind: "update", path: path("/a"), value: "", ...end },
    { kind: "compareAndSwap", path: path("/a"), value: "", expected: { value: "1" }, ...end },
  ];
  it.each(refreshes)("of $kind keeps the value and sets a new end", (command) => {
    const tree = new Tree();
    run(tree, before);
    const [change] = run(tree, command);
    expect(change?.event).toMatchObject({
      isRefresh: true,
      node: { value: "1", expiresAtMs: 9_000, ttlSeconds: 9, modifiedIndex: 2 },
      prevNode: { value: "1", expiresAtMs: 5_000, ttlSeconds: 5, modifiedIndex: 1 },
    });
  });

  it.each([
    { at: "/none", refusal: ["keyNotFound", "/none", 2] },
    { at: "/dir", refusal: ["notFile", "/dir", 2] },
    { at: "/a/b", refusal: ["notDirectory", "/a", 2] },
    { at: "/", refusal: ["rootReadOnly", "/", 2] },
  ])("by a set of $at is refused", ({ at, refusal }) => {
    const tree = new Tree();
    run(tree, before);
    run(tree, set("/dir/x", ""));
    expect(refusalOf(tree, { kind: "set", path: path(at), value: "", ...end })).toEqual(refusal);
  });
});

it("a ttl that no time can tell ends with the year 9999", () => {
  const tree = new Tree();
  const [change] = run(tree, set("/a", "", 2 ** 64));
  expect(change?.event.node.expiresAtMs).toBe(Date.UTC(9999, 11, 31, 23, 59, 59));
});

it("a listing works at any depth", () => {
  const tree = new Tree();
  const depth = 16_000;
  run(tree, set(`${"/d".repeat(depth)}/f`, "x"));
  expect(pathsOf(tree.list(path("/"), { recursive: true, nowMs: 0 }))).toHaveLength(depth + 2);
  expect([...tree.walk(path("/"))]).toHaveLength(depth + 2);
});
