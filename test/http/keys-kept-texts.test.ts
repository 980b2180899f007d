/** Texts of listings that are sent again: never another one than a listing of now would be, and never too many. */

import { describe, expect, it } from "vitest";
import { KeptTexts } from "../../src/http/keys/kept-texts.ts";
import type { Command } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { bodyOf } from "../helpers/listed.ts";
import { query, Reader, remove, run, set, treeOf, undone } from "./kept-reader.ts";

describe("a kept text", () => {
  const before = [set("/d/a", "1"), set("/d/sub/b", "2"), set("/d/_h/c", "3"), set("/other/e", "4")];

  it("is sent again while nothing at or below its path changes, and for the same question only", () => {
    const reader = new Reader(treeOf(...before));
    expect(reader.keeps(query("/d"))).toBe(false);
    run(reader.tree, set("/other/e", "5"));
    run(reader.tree, { kind: "update", path: storePath("/d/none"), value: "" });
    expect(reader.keeps(query("/d"))).toBe(true);
    expect(reader.keeps(query("/d", false))).toBe(false);
    expect(reader.keeps({ ...query("/d"), sorted: true })).toBe(false);
    expect(reader.keeps(query("/d/sub"))).toBe(false);
    expect(
      [query("/d", false), { ...query("/d"), sorted: true }, query("/d")].map((each) => reader.keeps(each)),
    ).toEqual([...[true, true, true]]);
  });

  it.each<{ readonly name: string; readonly commands: readonly Command[] }>([
    { name: "a value of the same size", commands: [set("/d/a", "9")] },
    { name: "the same value once more", commands: [set("/d/sub/b", "2")] },
    { name: "a new key", commands: [set("/d/new/x/y", "")] },
    { name: "a hidden key", commands: [set("/d/_h/c", "9")] },
    { name: "a delete deep below", commands: [remove("/d/sub/b")] },
    { name: "an update of the directory", commands: [{ kind: "update", path: storePath("/d"), value: "" }] },
    { name: "an update of a directory in it", commands: [{ kind: "update", path: storePath("/d/sub"), value: "" }] },
    { name: "the directory made anew", commands: [remove("/d"), ...before.slice(0, 3)] },
    {
      name: "a file in its place, and a directory again",
      commands: [remove("/d"), set("/d", ""), remove("/d"), set("/d/a", "1")],
    },
    { name: "a directory in place of a file", commands: [remove("/d/a"), set("/d/a/b", "1")] },
    { name: "a batch that is undone", commands: [undone(set("/d/a", "9"))] },
  ])("is not sent again after $name", ({ commands }) => {
    const reader = new Reader(treeOf(...before));
    reader.all(query("/d"));
    for (const command of commands) run(reader.tree, command);
    const expected = reader.fresh(query("/d"));
    expect(reader.keeps(query("/d"))).toBe(false);
    expect(reader.all(query("/d"))).toEqual(expected);
  });

  it("is of a tree without a ttl: neither of the directory nor of anything below", () => {
    const reader = new Reader(treeOf(set("/d/a", "1", 60), set("/e/f/g", "1"), set("/h/i", "1")));
    run(reader.tree, { kind: "update", path: storePath("/h"), value: "", ttlSeconds: 60 });
    for (const path of ["/", "/d", "/h"]) {
      expect([reader.keeps(query(path)), reader.keeps(query(path))]).toEqual([false, false]);
    }
    expect([reader.keeps(query("/e")), reader.keeps(query("/e"))]).toEqual([false, true]);
    run(reader.tree, set("/d/a", "1"));
    expect([reader.keeps(query("/d")), reader.keeps(query("/d"))]).toEqual([false, true]);
  });

  it("is not sent of a directory above which one has ended", () => {
    const reader = new Reader(treeOf(set("/p/d/a", "1")));
    run(reader.tree, { kind: "update", path: storePath("/p"), value: "", ttlSeconds: 1 });
    reader.all(query("/p/d"), 999);
    expect(reader.keeps(query("/p/d"), 999)).toBe(true);
    expect(() => reader.all(query("/p/d"), 1_000)).toThrow(StoreError);
  });

  it("is whole: one that was given up, or changed before its end, is not kept", () => {
    const reader = new Reader(treeOf(...before));
    const given = reader.begin(query("/d"));
    given.next();
    given.end();
    given.end();
    expect([reader.kept.bytes, reader.kept.count, reader.tree.walkCount]).toEqual([0, 0, 0]);
    reader.all(query("/d"), 0, () => run(reader.tree, set("/d/sub/b", "9")));
    expect([reader.kept.bytes, reader.kept.count]).toEqual([0, 0]);
  });

  it("of several who write it at once is that of the first who ends", () => {
    const reader = new Reader(treeOf(...before));
    const slow = reader.begin(query("/d"));
    slow.next();
    expect([reader.keeps(query("/d")), reader.keeps(query("/d"))]).toEqual([false, true]);
    const { bytes } = reader.kept;
    while (slow.next().done !== true);
    expect(reader.kept.count).toBe(1);
    expect(reader.kept.bytes).toBeLessThan(bytes);
    expect(reader.keeps(query("/d"))).toBe(true);
  });

  it("of a directory that is gone by its end makes no other stale", () => {
    const reader = new Reader(treeOf(...before));
    const [slow, slower] = [reader.begin(query("/d")), reader.begin(query("/d"))];
    for (const each of [slow, slower]) each.next();
    run(reader.tree, remove("/d"));
    run(reader.tree, set("/d/a", "9"));
    while (slow.next().done !== true);
    expect([reader.keeps(query("/d")), reader.keeps(query("/d"))]).toEqual([false, true]);
    while (slower.next().done !== true);
    expect(reader.keeps(query("/d"))).toBe(true);
    expect(reader.all(query("/d"))).toEqual(reader.fresh(query("/d")));
    expect(reader.kept.count).toBe(1);
  });

  it("goes on being sent to whoever began with it, whatever changes", () => {
    const reader = new Reader(treeOf(...before));
    const expected = reader.all(query("/d"));
    const sent = reader.begin(query("/d"));
    const found = [sent.next().value.toString()];
    run(reader.tree, remove("/d"));
    run(reader.tree, set("/d/a", "9"));
    reader.all(query("/d"));
    for (let piece = sent.next(); ; piece = sent.next()) {
      found.push(piece.value.toString());
      if (piece.done === true) break;
    }
    expect(found).toEqual(expected);
  });
});

describe("what is kept", () => {
  const large = (name: string) => set(`/${name}/k`, "x".repeat(20_000));
  const names = ["a", "b", "c", "d", "e"];
  const bounds = { maxBytes: 70_000, maxTextBytes: 30_000 };

  it("stays below its bound: what was not asked for the longest time goes", () => {
    const reader = new Reader(treeOf(...names.map(large)), new KeptTexts(bounds));
    for (const name of ["a", "b", "c"]) reader.all(query(`/${name}`));
    expect(reader.keeps(query("/a"))).toBe(true);
    reader.all(query("/d"));
    expect(reader.kept.bytes).toBeLessThanOrEqual(bounds.maxBytes);
    expect(["a", "c", "d", "b"].map((name) => reader.keeps(query(`/${name}`)))).toEqual([true, true, true, false]);
  });

  it("has no text beyond a text's bound, and counts what small ones take", () => {
    const small = Array.from({ length: 100 }, (_, number) => set(`/s${number}/k`, ""));
    const reader = new Reader(treeOf(...small, large("a"), large("a/x")), new KeptTexts(bounds));
    expect([reader.keeps(query("/a")), reader.kept.bytes]).toEqual([false, 0]);
    for (let number = 0; number < 100; number++) reader.all(query(`/s${number}`));
    expect(reader.kept.bytes).toBeLessThanOrEqual(bounds.maxBytes);
    expect(reader.kept.count).toBeLessThan(70);
  });

  it("counts texts that are being made or sent, and keeps nothing more while they fill it", () => {
    const reader = new Reader(treeOf(...names.map(large)), new KeptTexts(bounds));
    for (const name of ["a", "b", "c"]) reader.all(query(`/${name}`));
    const slow = ["a", "b", "c"].map((name) => reader.begin(query(`/${name}`)));
    for (const each of slow) each.next();
    expect([reader.keeps(query("/d")), reader.keeps(query("/d"))]).toEqual([false, false]);
    expect(reader.kept.count).toBe(3);
    run(reader.tree, set("/a/k", "short"));
    // The old text stays in memory until its reader is done with it.
    expect(reader.keeps(query("/a"))).toBe(false);
    expect(reader.kept.bytes).toBeGreaterThan(60_000);
    for (const each of slow) each.end();
    expect(reader.kept.bytes).toBeLessThan(50_000);
    expect([reader.keeps(query("/d")), reader.keeps(query("/d"))]).toEqual([false, true]);
  });

  it("is the body that a listing has", () => {
    const reader = new Reader(treeOf(...names.map(large), set("/é", "<\u2028>")));
    const expected = bodyOf(reader.tree.list(storePath("/"), { recursive: true, nowMs: 0 }));
    expect([reader.all(query("/")).join(""), reader.all(query("/")).join("")]).toEqual([expected, expected]);
  });
});
