import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import { encodeState, StateReader } from "../../src/store/snapshot/snapshot.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { EventRing } from "../../src/store/watch/event-ring.ts";
import { collectGarbage } from "../helpers/collect-garbage.ts";

interface Written {
  readonly names: readonly string[];
  readonly value: string;
  readonly ttlSeconds: number | undefined;
}

const name = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom("a", "b", "c", "_hidden", "__proto__", "...", "a name of more than 13 characters"),
  },
  { weight: 1, arbitrary: fc.constantFrom('"', "\\", "é", "☃", "\u2028", "\u0001", "𝄞", '","value":"') },
);
const value = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "x".repeat(100), '{"a":"b"}', "\\"),
);
const written: fc.Arbitrary<Written> = fc.record({
  names: fc.array(name, { minLength: 1, maxLength: 3 }),
  value,
  ttlSeconds: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
});

function treeOf(all: readonly Written[]): Tree {
  const tree = new Tree();
  for (const { names, value: text, ttlSeconds } of all) {
    const path = storePath(`/${names.join("/")}`);
    try {
      tree.create({ path, action: "set", replaces: true, value: text, atMs: 1_000, ttlSeconds });
    } catch {
      // A file is where this needs a directory, or the other way round.
    }
  }
  return tree;
}

function bytesOf(tree: Tree): Buffer {
  const walk = tree.walkFrozen();
  const state = { index: tree.index, oldestIndex: tree.index + 1, events: [], nodes: walk.steps() };
  const bytes = Buffer.concat([...encodeState(state)]);
  walk.end();
  return bytes;
}

function read(pieces: Iterable<Uint8Array>): Tree {
  const tree = new Tree();
  const reader = new StateReader(tree, new EventRing());
  for (const piece of pieces) reader.push(piece);
  reader.end();
  return tree;
}

function* cut(bytes: Buffer, length: number): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

/** All that shows of a tree, in the order in which it keeps nodes. */
function shown(tree: Tree): unknown {
  return { bytes: tree.bytes, timers: tree.timers.size, text: bytesOf(tree).toString() };
}

/** Returns the bytes of the heap that are still in use. */
function heapInUse(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const head = '{"v":1,"index":0,"oldestIndex":1}\n';
const lines = (...more: readonly string[]) => [Buffer.from(head + more.map((line) => `${line}\n`).join(""))];

describe("a snapshot that is read in large pieces", () => {
  it("makes the same tree as one that is read byte by byte", () => {
    fc.assert(
      fc.property(fc.array(written, { maxLength: 30 }), fc.integer({ min: 1, max: 400 }), (all, length) => {
        const tree = treeOf(all);
        const bytes = bytesOf(tree);
        const expected = shown(tree);
        expect(shown(read(cut(bytes, bytes.length)))).toEqual(expected);
        expect(shown(read(cut(bytes, length)))).toEqual(expected);
        expect(shown(read(cut(bytes, 1)))).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it("may have a node twice, also a directory that becomes a file and the other way round", () => {
    const file = (path: string, text: string) =>
      `{"file":"${path}","value":"${text}","createdIndex":1,"modifiedIndex":2}`;
    const directory = '{"dir":"/a","createdIndex":3,"modifiedIndex":3}';
    const all = [
      file("/a/b", "1"),
      file("/a/b", "22"),
      file("/a", "333"),
      directory,
      file("/a/c", "4"),
      file("/a/c", "5"),
    ];
    const whole = read(lines(...all));
    expect([...whole.walk(storePath("/a"))]).toMatchObject([{ path: "/a" }, { path: "/a/c", value: "5" }]);
    expect(whole.bytes).toBe("/a/c5".length);
    expect(shown(whole)).toEqual(shown(read(cut(Buffer.concat(lines(...all)), 1))));
  });

  it.each([
    '{"file":"/a/","value":"secret","createdIndex":1,"modifiedIndex":1}',
    '{"file":"/a/..","value":"secret","createdIndex":1,"modifiedIndex":1}',
    '{"file":"/b//a/c","value":"secret","createdIndex":1,"modifiedIndex":1}',
    '{"file":"//a","value":"secret","createdIndex":1,"modifiedIndex":1}',
    '{"file":"/a","value":"secret","createdIndex":,"modifiedIndex":1}',
    '{"file":"/a","value":"secret","createdIndex":1,"modifiedIndex":1',
    '{"file":"/a","value":"secret","createdIndex":1,"modifiedIndex":1}}',
    '{"file":"/a","value":"sec"ret","createdIndex":1,"modifiedIndex":1}',
    '{"file":"/a","value":"\\secret","createdIndex":1,"modifiedIndex":1}',
    '{"file":"/a","value":"secret","createdIndex":1}',
  ])("refuses the line %s", (line) => {
    const good = '{"file":"/b","value":"x","createdIndex":1,"modifiedIndex":1}';
    expect(() => read(lines(good, line, good))).toThrow(/^Reading the store: its .* is not what davit writes/);
  });

  it("does not keep the piece in memory", () => {
    // Each text is 1 % of its piece. If it were a part of the piece's text, all pieces would stay.
    const filler = "y".repeat(250_000);
    const tree = new Tree();
    const reader = new StateReader(tree, new EventRing());
    reader.push(Buffer.from(head));
    const kept = "x".repeat(2_000);
    const before = heapInUse();
    for (let at = 0; at < 400; at++) {
      const fillerLine = `{"file":"/filler","value":"${filler}","createdIndex":1,"modifiedIndex":1}`;
      const line = `{"file":"/kept-under-a-long-name-${at}","value":"${kept}","createdIndex":1,"modifiedIndex":1}`;
      reader.push(Buffer.from(`${fillerLine}\n${line}\n`));
    }
    reader.end();
    expect(heapInUse() - before).toBeLessThan(100_000_000 / 2);
    // Also keeps the tree alive until here.
    expect(tree.bytes).toBeGreaterThan(400 * 2_000);
  });
});
