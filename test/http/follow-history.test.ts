import { describe, expect, it } from "vitest";
import { FollowHistory, type FollowHistoryOptions } from "../../src/http/store/follow-history.ts";

const change = (path: string, text?: string) => ({ path, text });
const put = (path: string, text: string) => `${JSON.stringify({ kind: "put", path, text })}\n`;
const commit = (index: number) => `{"kind":"commit","index":${index},"run":"b"}\n`;

const at = (index: number, run: string | undefined = "b") => ({ index, run });

/** A history that begins at index 10, which run "a" made, with one document; three steps followed, and other writes. */
function history(options?: FollowHistoryOptions): FollowHistory {
  const made = new FollowHistory(at(10, "a"), options);
  made.replaced([["/davit/a", "0"]], at(10, "a"));
  made.changed([change("/davit/a", "1")], at(12));
  made.changed([change("/davit/b", "2"), change("/davit/c", "3")], at(15));
  made.changed([change("/davit/b")], at(16));
  return made;
}

describe("the history of followers", () => {
  it.each([
    { after: at(9, "a"), position: undefined },
    { after: at(10, "a"), position: 0 },
    { after: at(11), position: 0 },
    { after: at(12), position: 1 },
    { after: at(14), position: 1 },
    { after: at(15), position: 2 },
    { after: at(16), position: 3 },
    { after: at(19), position: 3 },
    { after: at(99), position: undefined },
  ])("goes on after $after at position $position", ({ after, position }) => {
    expect(history().positionAfter(after, at(19))).toBe(position);
  });

  it.each([
    { name: "the run before, beyond the index at which it ended", after: at(11, "a") },
    { name: "another run", after: at(12, "lost") },
    { name: "another run that came to the same index", after: at(10, "lost") },
    { name: "this run, at an index that the one before made", after: at(10) },
    { name: "no run", after: { index: 12 } },
  ])("does not go on after $name", ({ after }) => {
    expect(history().positionAfter(after, at(19))).toBeUndefined();
  });

  it("does not go on where no davit named the run, whatever a follower says", () => {
    const made = new FollowHistory({ index: 10 });
    expect(made.positionAfter({ index: 10 }, { index: 10 })).toBeUndefined();
    expect(made.positionAfter(at(10), { index: 10 })).toBeUndefined();
  });

  it("tells a step as its changes and the index at which they were made", () => {
    const made = history();
    expect(made.linesAt(1)).toBe(put("/davit/b", "2") + put("/davit/c", "3") + commit(15));
    expect(made.linesAt(2)).toBe(`{"kind":"delete","path":"/davit/b"}\n${commit(16)}`);
    expect(made.linesAt(made.end)).toBeUndefined();
  });

  it("dumps everything as it stands when it is asked, whatever changes meanwhile", () => {
    const made = history();
    const dump = made.dump({ cluster: "c1" }, at(16));
    made.changed([change("/davit/a"), change("/davit/d", "4")], at(17));
    const expected = `{"kind":"dump","cluster":"c1"}\n${put("/davit/a", "1")}${put("/davit/c", "3")}${commit(16)}`;
    expect([...toIterable(dump)].join("")).toBe(expected);
  });

  it("begins anew when all documents are replaced: nobody goes on from before", () => {
    const made = history();
    const before = made.end;
    made.replaced([["/davit/z", "9"]], at(30));
    expect(made.isGone(before)).toBe(true);
    expect(made.positionAfter(at(16), at(30))).toBeUndefined();
    expect(made.positionAfter(at(29), at(30))).toBeUndefined();
    expect(made.positionAfter(at(30), at(30))).toBe(made.end);
    expect([...toIterable(made.dump({ cluster: "c1" }, at(30)))].join("")).toBe(
      `{"kind":"dump","cluster":"c1"}\n${put("/davit/z", "9")}${commit(30)}`,
    );
    made.changed([change("/davit/z", "10")], at(31));
    expect(made.linesAt(made.positionAfter(at(30), at(31)) ?? -1)).toBe(put("/davit/z", "10") + commit(31));
  });

  it("dumps in pieces of some 64 KiB", () => {
    const made = new FollowHistory(at(0));
    made.replaced(
      Array.from({ length: 100 }, (_, number) => [`/davit/${number}`, "x".repeat(10_000)] as const),
      at(0),
    );
    const pieces = [...toIterable(made.dump({ cluster: "c1" }, at(0)))];
    expect(pieces.length).toBeGreaterThan(10);
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(64 * 1024 + 11_000);
  });

  it.each([
    { name: "steps", options: { maxSteps: 2 } },
    { name: "bytes", options: { maxBytes: 60 + 4 * 64 } },
  ])("forgets the oldest beyond its number of $name", ({ options }) => {
    const made = history(options);
    expect(made.isGone(0)).toBe(true);
    expect(made.isGone(1)).toBe(false);
    expect(made.positionAfter(at(11), at(16))).toBeUndefined();
    expect(made.positionAfter(at(12), at(16))).toBe(1);
  });

  it.each([
    { name: "of Latin-1", letter: "x" },
    { name: "of other letters", letter: "\u4e2d" },
    { name: "whose lines are six times as long", letter: "\u0001" },
  ])("keeps no more than its bytes when followers read steps $name", ({ letter }) => {
    const maxBytes = 300_000;
    const made = new FollowHistory(at(0), { maxBytes });
    for (let index = 1; index <= 100; index++) made.changed([change("/davit/a", letter.repeat(5_000))], at(index));
    const first =
      Array.from({ length: 100 }, (_, position) => position).find((position) => !made.isGone(position)) ?? 0;
    for (let position = first; position < made.end; position++) made.linesAt(position);
    const kept = Array.from({ length: 100 }, (_, position) => position).filter((position) => !made.isGone(position));
    const lines = kept.map((position) => made.linesAt(position) ?? "");
    // V8 takes at most two bytes for each unit.
    expect(lines.reduce((sum, { length }) => sum + 2 * length, 0)).toBeLessThanOrEqual(maxBytes);
    expect(kept.length).toBeGreaterThan(3);
  });

  it("has the lines of a step that it drops while a follower reads it", () => {
    const made = new FollowHistory(at(0), { maxBytes: 4_000 });
    made.changed([change("/davit/a", "\u0001".repeat(1_000))], at(1));
    expect(made.linesAt(0)).toContain('"kind":"commit","index":1');
    expect(made.isGone(0)).toBe(true);
    expect(made.positionAfter(at(1), at(1))).toBe(made.end);
  });

  it("does not keep a step that is too large by itself", () => {
    const made = history({ maxBytes: 1_000 });
    made.changed([change("/davit/big", "x".repeat(1_000))], at(20));
    expect(made.positionAfter(at(19), at(20))).toBeUndefined();
    expect(made.positionAfter(at(20), at(20))).toBe(made.end);
  });
});

function toIterable(iterator: Iterator<string>): Iterable<string> {
  return { [Symbol.iterator]: () => iterator };
}
