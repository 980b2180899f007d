import { describe, expect, it } from "vitest";
import { FollowHistory, type FollowHistoryOptions } from "../../src/http/follow-history.ts";

const change = (path: string, text?: string) => ({ path, text });
const put = (path: string, text: string) => `${JSON.stringify({ kind: "put", path, text })}\n`;
const commit = (index: number) => `{"kind":"commit","index":${index}}\n`;

/** A history that began at index 10 with one document, and saw three steps since. */
function history(options?: FollowHistoryOptions): FollowHistory {
  const made = new FollowHistory(10, options);
  made.replaced([["/davit/a", "0"]]);
  made.changed([change("/davit/a", "1")], 12);
  made.changed([change("/davit/b", "2"), change("/davit/c", "3")], 15);
  made.changed([change("/davit/b")], 16);
  return made;
}

describe("the history of followers", () => {
  it.each([
    { after: 9, position: undefined },
    { after: 10, position: 0 },
    { after: 11, position: 0 },
    { after: 12, position: 1 },
    { after: 14, position: 1 },
    { after: 15, position: 2 },
    { after: 16, position: 3 },
    { after: 99, position: 3 },
  ])("goes on after $after at position $position", ({ after, position }) => {
    expect(history().positionAfter(after)).toBe(position);
  });

  it("tells a step as its changes and the index at which they were made", () => {
    const made = history();
    expect(made.linesAt(1)).toBe(put("/davit/b", "2") + put("/davit/c", "3") + commit(15));
    expect(made.linesAt(2)).toBe(`{"kind":"delete","path":"/davit/b"}\n${commit(16)}`);
    expect(made.linesAt(made.end)).toBeUndefined();
  });

  it("dumps everything as it stands when it is asked, whatever changes meanwhile", () => {
    const made = history();
    const dump = made.dump("c1", 16);
    made.changed([change("/davit/a"), change("/davit/d", "4")], 17);
    const expected = `{"kind":"dump","cluster":"c1"}\n${put("/davit/a", "1")}${put("/davit/c", "3")}${commit(16)}`;
    expect([...toIterable(dump)].join("")).toBe(expected);
  });

  it("dumps in pieces of some 64 KiB", () => {
    const made = new FollowHistory(0);
    made.replaced(Array.from({ length: 100 }, (_, at) => [`/davit/${at}`, "x".repeat(10_000)] as const));
    const pieces = [...toIterable(made.dump("c1", 0))];
    expect(pieces.length).toBeGreaterThan(10);
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(64 * 1024 + 11_000);
  });

  it.each([
    { name: "steps", options: { maxSteps: 2 } },
    { name: "bytes", options: { maxBytes: 60 } },
  ])("forgets the oldest beyond its number of $name", ({ options }) => {
    const made = history(options);
    expect(made.isGone(0)).toBe(true);
    expect(made.isGone(1)).toBe(false);
    expect(made.positionAfter(11)).toBeUndefined();
    expect(made.positionAfter(12)).toBe(1);
  });

  it("does not keep a step that is too large by itself", () => {
    const made = history({ maxBytes: 1_000 });
    made.changed([change("/davit/big", "x".repeat(1_000))], 20);
    expect(made.positionAfter(19)).toBeUndefined();
    expect(made.positionAfter(20)).toBe(made.end);
  });
});

function toIterable(iterator: Iterator<string>): Iterable<string> {
  return { [Symbol.iterator]: () => iterator };
}
