/** The judge of the kill loop is judged: what it must let pass, and what it must not. */

import { describe, expect, it } from "vitest";
import { compare, type Effect } from "./expected-keys.ts";
import type { StoredKey } from "./keys-client.ts";

const nowMs = Date.UTC(2026, 0, 1);
const key = (value: string, index: number, more: Partial<StoredKey> = {}): StoredKey => ({
  value,
  createdIndex: index,
  modifiedIndex: index,
  ...more,
});
const endingAt = (ms: number) => ({ expiration: new Date(ms).toISOString() });
const known = { "/w/a": key("1", 5), "/w/q/6": key("2", 6), "/w/q/7": key("3", 7) };
const { "/w/a": a, "/w/q/6": six } = known;

function outcome(
  before: Readonly<Record<string, StoredKey>>,
  now: Readonly<Record<string, StoredKey>>,
  effect?: Effect,
) {
  const reading = { keys: new Map(Object.entries(now)), fromMs: nowMs, toMs: nowMs + 10 };
  return compare({ keys: new Map(Object.entries(before)), inFlight: effect, index: 7 }, reading);
}

const put: Effect = { kind: "put", path: "/w/a", value: "new" };
const brief: Effect = { ...put, endsAtMs: nowMs - 1 };
const post: Effect = { kind: "post", directory: "/w/q", value: "new" };
const clear: Effect = { kind: "remove", path: "/w/q" };

describe("passes", () => {
  it.each([
    { name: "what is as it was", now: known, is: "absent" },
    { name: "a put that was not carried out", effect: put, now: known, is: "absent" },
    { name: "a put that was", effect: put, now: { ...known, "/w/a": key("new", 8) }, is: "found" },
    {
      name: "a put that has ended since",
      effect: brief,
      now: { "/w/q/6": six, "/w/q/7": known["/w/q/7"] },
      is: "found",
    },
    { name: "a post that was", effect: post, now: { ...known, "/w/q/9": key("new", 9) }, is: "found" },
    { name: "a recursive delete that was", effect: clear, now: { "/w/a": a }, is: "found" },
  ])("$name", ({ effect, now, is }) => {
    expect(outcome(known, now, effect)).toBe(is);
  });

  it("a key that has ended, or is about to", () => {
    expect(outcome({ "/w/t": key("1", 5, endingAt(nowMs - 5_000)) }, {})).toBe("absent");
    const ending = { "/w/t": key("1", 5, endingAt(nowMs + 5)) };
    expect(outcome(ending, {})).toBe("absent");
    expect(outcome(ending, ending)).toBe("absent");
  });
});

describe("does not pass", () => {
  it.each([
    { name: "a key that is missing", now: { "/w/q/6": six, "/w/q/7": known["/w/q/7"] } },
    { name: "an older value", now: { ...known, "/w/a": key("0", 4) } },
    { name: "another index", now: { ...known, "/w/a": key("1", 6) } },
    { name: "a key that was removed", now: { ...known, "/w/b": key("1", 3) } },
    { name: "a write in flight that undid another", effect: post, now: { "/w/a": a, "/w/q/9": key("new", 9) } },
    { name: "a write in flight in another place", effect: put, now: { ...known, "/w/b": key("new", 8) } },
    { name: "a write in flight with an index of before", effect: put, now: { ...known, "/w/a": key("new", 7) } },
    {
      name: "a post that was carried out twice",
      effect: post,
      now: { ...known, "/w/q/8": key("new", 8), "/w/q/9": key("new", 9) },
    },
    { name: "half of a recursive delete", effect: clear, now: { "/w/a": a, "/w/q/6": six } },
  ])("$name", ({ effect, now }) => {
    expect(() => outcome(known, now, effect)).toThrow(/is not as it was/);
  });

  it("a key that has ended and is there, and one that went before its end", () => {
    const ended = { "/w/t": key("1", 5, endingAt(nowMs - 5_000)) };
    expect(() => outcome(ended, ended)).toThrow("/w/t lives on after 2025-12-31T23:59:55.000Z");
    expect(() => outcome({ "/w/t": key("1", 5, endingAt(nowMs + 5_000)) }, {})).toThrow(/is not as it was/);
  });
});
