/** Whatever happens: no kept text is another than a listing of now would be, and never are there too many. */

import fc from "fast-check";
import { expect, it } from "vitest";
import { KeptTexts, type ListingPieces } from "../../src/http/keys/kept-texts.ts";
import type { Command, SingleCommand } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { Tree } from "../../src/store/tree/tree.ts";
import { anyCommand } from "../helpers/any-command.ts";
import { type Query, query, Reader, run, set, treeOf, undone } from "./kept-reader.ts";

const anyQuery: fc.Arbitrary<Query> = fc.record({
  path: fc.constantFrom("/", "/a", "/b", "/a/b", "/_h", "/__proto__").map(storePath),
  recursive: fc.boolean(),
  sorted: fc.boolean(),
});

/** What leaves most listings as they are, and makes them of the same size when it does not. */
const anySteady: fc.Arbitrary<SingleCommand> = fc.record({
  kind: fc.constantFrom("set", "update", "delete"),
  path: fc.constantFrom("/a/a", "/a/b", "/a/b/a", "/b").map(storePath),
  value: fc.constantFrom("", "x", "y"),
  recursive: fc.constant(true),
});

const anyStep = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant("command"), command: anySteady }), weight: 12 },
  { arbitrary: fc.record({ kind: fc.constant("command"), command: anySteady.map(undone) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant("command"), command: anyCommand }), weight: 2 },
  { arbitrary: fc.record({ kind: fc.constant("command"), command: anyCommand.map(undone) }), weight: 1 },
  {
    arbitrary: fc.record({
      kind: fc.constant("list"),
      query: anyQuery,
      meanwhile: fc.array(anyCommand, { maxLength: 2 }),
    }),
    weight: 4,
  },
  { arbitrary: fc.record({ kind: fc.constant("pass"), durationMs: fc.constantFrom(500, 1_000, 3_000) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant("restart") }), weight: 1 },
);

type Step = typeof anyStep extends fc.Arbitrary<infer Each> ? Each : never;

const everyQuery: readonly Query[] = ["/", "/a", "/b", "/a/b", "/_h"].flatMap((path) =>
  [true, false].flatMap((recursive) => [true, false].map((sorted) => ({ path: storePath(path), recursive, sorted }))),
);

/** The tree that a start makes of its snapshot. */
function restored(tree: Tree): Tree {
  const again = new Tree();
  const walk = tree.walkFrozen();
  for (const node of walk.steps()) if (node !== undefined) again.restore(node);
  walk.end();
  again.restoreIndex(tree.index);
  return again;
}

/** A tree with a reader, and a clock. */
class Life {
  readonly reader = new Reader(new Tree());
  asked = 0;
  #nowMs = 0;

  take(step: Step): void {
    switch (step.kind) {
      case "command":
        run(this.reader.tree, step.command, this.#nowMs);
        return;
      case "pass":
        this.#nowMs += step.durationMs;
        return;
      case "restart":
        this.reader.tree = restored(this.reader.tree);
        return;
      case "list":
        this.#lookWhile(step.query, step.meanwhile);
    }
  }

  /** Asks for a listing, and for what it would be if nothing were kept. */
  look(request: Query): void {
    if (!this.#isThere(request)) return;
    expect(this.reader.all(request, this.#nowMs)).toEqual(this.reader.fresh(request, this.#nowMs));
    this.asked += 1;
  }

  /** The pieces may differ then, and so may an order that is not asked for. */
  #lookWhile(request: Query, commands: readonly Command[]): void {
    if (!this.#isThere(request)) return;
    const sorted = { ...request, sorted: true };
    const expected = this.reader.fresh(sorted, this.#nowMs).join("");
    const waiting = [...commands];
    const found = this.reader.all(sorted, this.#nowMs, () => {
      const next = waiting.shift();
      if (next !== undefined) run(this.reader.tree, next, this.#nowMs);
    });
    expect(found.join("")).toBe(expected);
  }

  #isThere({ path }: Query): boolean {
    return [...this.reader.tree.walk(path, this.#nowMs)].length > 0;
  }
}

it("a listing is, piece for piece, what it would be if nothing were kept", () => {
  let asked = 0;
  let made = 0;
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 30 }), (steps) => {
      const life = new Life();
      for (const step of steps) {
        life.take(step);
        for (const each of everyQuery) life.look(each);
      }
      expect(life.reader.tree.walkCount).toBe(0);
      asked += life.asked;
      made += life.reader.made;
    }),
    { numRuns: 200 },
  );
  // Else it would say nothing.
  expect(made).toBeLessThan(asked * 0.8);
});

const names = ["a", "b", "c", "d", "e"];
const bounds = { maxBytes: 70_000, maxTextBytes: 30_000 };

const anyMove = fc.record({
  kind: fc.constantFrom("begin", "next", "end", "set"),
  name: fc.constantFrom(...names),
  which: fc.nat(9),
});

type Move = typeof anyMove extends fc.Arbitrary<infer Each> ? Each : never;

/** Many who read at the same time. */
class Crowd {
  readonly reader = new Reader(
    treeOf(...names.map((name) => set(`/${name}/k`, "x".repeat(20_000)))),
    new KeptTexts(bounds),
  );
  readonly #open: ListingPieces[] = [];

  make({ kind, name, which }: Move): void {
    const at = which % Math.max(this.#open.length, 1);
    switch (kind) {
      case "begin":
        this.#open.push(this.reader.begin(query(`/${name}`), 0, 5_000));
        return;
      case "set":
        run(this.reader.tree, set(`/${name}/k${which}`, "x".repeat(which * 1_000)));
        return;
      case "next":
        if (this.#open[at]?.next().done === true) this.#open.splice(at, 1);
        return;
      case "end":
        for (const each of this.#open.splice(at, 1)) each.end();
    }
  }

  leave(): void {
    for (const each of this.#open) each.end();
  }
}

it("what is kept never exceeds its bound, whoever begins, goes on and gives up", () => {
  fc.assert(
    fc.property(fc.array(anyMove, { maxLength: 200 }), (moves) => {
      const crowd = new Crowd();
      const { kept, tree } = crowd.reader;
      for (const move of moves) {
        crowd.make(move);
        expect(kept.bytes).toBeLessThanOrEqual(bounds.maxBytes);
      }
      crowd.leave();
      expect(tree.walkCount).toBe(0);
      // Whoever asks once more finds what is kept out of date, and that is all there was.
      for (const name of names) {
        run(tree, set(`/${name}/with-a-ttl`, "", 60));
        for (const piece = crowd.reader.begin(query(`/${name}`)); piece.next().done !== true; );
      }
      expect([kept.count, kept.bytes]).toEqual([0, 0]);
    }),
  );
});
