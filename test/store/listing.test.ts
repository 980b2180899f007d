/** Listings of a tree that goes on changing. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { apply, type Command, type SingleCommand } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { anyCommand } from "../helpers/any-command.ts";
import { bodyOf, pathsOf } from "../helpers/listed.ts";

const root = storePath("/");

function run(tree: Tree, command: Command, atMs = 0): void {
  try {
    apply(tree, { atMs, command });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
  }
}

const set = (path: string, ttlSeconds?: number): SingleCommand => ({
  kind: "set",
  path: storePath(path),
  value: path,
  ...(ttlSeconds !== undefined && { ttlSeconds }),
});
const remove = (path: string): SingleCommand => ({ kind: "delete", path: storePath(path), recursive: true });

/** A batch that makes changes and is then refused. */
const refused = (...commands: readonly SingleCommand[]): Command => ({
  kind: "batch",
  commands: [...commands, { kind: "update", path: storePath("/missing"), value: "" }],
});

function treeOf(...commands: readonly Command[]): Tree {
  const tree = new Tree();
  for (const command of commands) run(tree, command);
  return tree;
}

const childrenOf = (count: number) => Array.from({ length: count }, (_, number) => set(`/d/k${number}`));

/** What is listed, in an order that does not depend on the tree's. */
const linesOf = (body: string) => (body.match(/\{"key":"[^"]*","value"[^}]*\}/g) ?? []).toSorted();

const anyChange = fc.record({
  /** Before which step. */
  at: fc.nat(60),
  path: fc.nat(1_400).map((number) => `/d/k${number}`),
  kind: fc.constantFrom("set", "delete", "directory", "undone"),
});

function commandsOf({ path, kind }: { readonly path: string; readonly kind: string }): readonly Command[] {
  if (kind === "set") return [set(path)];
  if (kind === "undone") return [refused(remove(path))];
  return kind === "delete" ? [remove(path)] : [remove(path), set(`${path}/below`)];
}

describe("a listing", () => {
  it("is of the moment at which it began, whatever changes between its steps", () => {
    const anyLater = fc.array(fc.tuple(fc.nat(3), anyCommand), { maxLength: 40 });
    const options = fc.record({ recursive: fc.boolean(), sorted: fc.constant(true), nowMs: fc.constantFrom(0, 2_000) });
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 40 }), anyLater, options, (before, later, query) => {
        const tree = treeOf(...before);
        const expected = bodyOf(tree.list(root, query));
        const waiting = later.flatMap(([steps, command]) => [...new Array<undefined>(steps).fill(undefined), command]);
        const body = bodyOf(tree.list(root, query), () => {
          const next = waiting.shift();
          if (next !== undefined) run(tree, next);
        });
        expect(body).toBe(expected);
        expect(tree.walkCount).toBe(0);
      }),
      { numRuns: 300 },
    );
  });

  it("is so, too, while the names of a large directory are collected", () => {
    const anyChanges = fc.array(anyChange, { maxLength: 60 });
    fc.assert(
      fc.property(fc.constantFrom(31, 32, 33, 1_200), fc.boolean(), anyChanges, (count, sorted, changes) => {
        const tree = treeOf(...childrenOf(count));
        const expected = linesOf(bodyOf(tree.list(storePath("/d"), { sorted, nowMs: 0 })));
        let step = 0;
        const body = bodyOf(tree.list(storePath("/d"), { sorted, nowMs: 0 }), () => {
          for (const command of changes.filter(({ at }) => at === step).flatMap(commandsOf)) run(tree, command);
          step += 1;
        });
        expect(linesOf(body)).toEqual(expected);
        expect(expected).toHaveLength(count);
      }),
    );
  });

  it("has each name once when a refused batch had removed names, collected or not, and its undo brought them back", () => {
    for (const gone of ["/d/k0", "/d/k39"]) {
      const tree = treeOf(...childrenOf(40));
      const query = { sorted: true, nowMs: 0 };
      const expected = bodyOf(tree.list(storePath("/d"), query));
      const waiting = [refused(remove(gone)), refused(set(gone), remove(gone))];
      const body = bodyOf(tree.list(storePath("/d"), query), () => {
        const next = waiting.shift();
        if (next !== undefined) run(tree, next);
      });
      expect(body).toBe(expected);
    }
  });

  it.each([0, 1, 2_047, 2_048, 2_049, 4_096, 5_000])("of %i names is in the order of their bytes", (count) => {
    const tree = treeOf(...childrenOf(count));
    const names = Array.from({ length: count }, (_, number) => `/d/k${number}`).toSorted();
    expect(pathsOf(tree.list(root, { recursive: true, sorted: true, nowMs: 0 })).slice(2)).toEqual(names);
  });

  it("that is not sorted is in the order of the tree", () => {
    const tree = treeOf(set("/d/b"), set("/d/a/2"), set("/d/a/1"), set("/d/c"));
    expect(pathsOf(tree.list(storePath("/d"), { recursive: true, nowMs: 0 }))).toEqual([
      ...["/d", "/d/b", "/d/a", "/d/a/2", "/d/a/1", "/d/c"],
    ]);
  });

  it("goes on when its directory, or one above it, is deleted and made anew", () => {
    for (const gone of ["/p", "/p/d"]) {
      const tree = treeOf(set("/p/d/a"), set("/p/d/e/b"), set("/p/d/e/c"));
      const query = { recursive: true, sorted: true, nowMs: 0 };
      const expected = bodyOf(tree.list(storePath("/p/d"), query));
      const waiting = [remove(gone), set("/p/d/e/new"), remove("/p/d/e")];
      const body = bodyOf(tree.list(storePath("/p/d"), query), () => {
        const next = waiting.shift();
        if (next !== undefined) run(tree, next);
      });
      expect(body).toBe(expected);
    }
  });

  it("judges by the time of its beginning what has ended, and tells the ttl of then", () => {
    const tree = treeOf(set("/due", 1), set("/later", 3), set("/d/x", 1));
    const began = bodyOf(tree.list(root, { recursive: true, nowMs: 999 }), () => {
      run(tree, { kind: "expire", path: storePath("/due"), expiresAtMs: 1_000 }, 5_000);
    });
    expect(began.match(/"key":"[^"]*"|"ttl":\d+/g)).toEqual([
      ...['"key":"/due"', '"ttl":1', '"key":"/later"', '"ttl":3', '"key":"/d"', '"key":"/d/x"', '"ttl":1'],
    ]);
    const later = bodyOf(tree.list(root, { recursive: true, nowMs: 1_000 }));
    expect(later.match(/"key":"[^"]*"|"ttl":\d+/g)).toEqual(['"key":"/later"', '"ttl":2', '"key":"/d"']);
  });

  it("leaves out what is hidden below it, and a directory that has nothing else is empty", () => {
    const tree = treeOf(set("/_h/a/_b"), set("/_h/a/_c/d"), set("/_h/e"));
    expect(pathsOf(tree.list(root, { recursive: true, nowMs: 0 }))).toEqual(["/"]);
    expect(bodyOf(tree.list(storePath("/_h/a"), { recursive: true, nowMs: 0 }))).toBe(
      '{"action":"get","node":{"key":"/_h/a","dir":true,"modifiedIndex":1,"createdIndex":1}}\n',
    );
    expect(pathsOf(tree.list(storePath("/_h"), { recursive: true, nowMs: 0 }))).toEqual(["/_h", "/_h/a", "/_h/e"]);
  });

  it("of a key is the key alone", () => {
    expect(pathsOf(treeOf(set("/a")).list(storePath("/a"), { recursive: true, nowMs: 0 }))).toEqual(["/a"]);
  });
});
