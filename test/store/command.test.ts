import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply, type Command, type SingleCommand } from "../../src/store/command.ts";
import { storePath } from "../../src/store/node.ts";
import { StoreError } from "../../src/store/refusal.ts";
import { Tree } from "../../src/store/tree.ts";
import { anyCommand } from "../helpers/any-command.ts";

const path = storePath;
const set = (at: string, value: string): SingleCommand => ({ kind: "set", path: path(at), value });

function run(tree: Tree, command: Command) {
  return apply(tree, { atMs: 0, command });
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
      const singles = inside.flatMap((command) => (command.kind === "batch" ? command.commands : [command]));
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
        const isRefused = refusalOf(tree, command) !== undefined;
        const changes = command.kind === "batch" ? command.commands.length : 1;
        expect(tree.index).toBe(isRefused ? index : index + changes);
      }
    }),
  );
});

it("a listing works at any depth", () => {
  const tree = new Tree();
  const depth = 16_000;
  run(tree, set(`${"/d".repeat(depth)}/f`, "x"));
  let node = tree.view(path("/"), { recursive: true }).nodes?.[0];
  let seen = 0;
  for (; node !== undefined; node = node.nodes?.[0]) seen += 1;
  expect(seen).toBe(depth + 1);
  expect([...tree.walk(path("/"))]).toHaveLength(depth + 2);
});
