/** A map from keys to one or several entries. */

import { expect, it } from "vitest";
import { MultiMap, Several } from "../../src/lib/multi-map.ts";

const [a, b] = [{ name: "a" }, { name: "b" }];

it("stores a single entry as itself, and several as a list", () => {
  const map = new MultiMap<{ name: string }>();
  expect(map.slot("key")).toBeUndefined();
  map.add("key", a);
  expect(map.slot("key")).toBe(a);
  map.add("key", b);
  expect(map.slot("key")).toBeInstanceOf(Several);
  expect(map.of("key")).toEqual([a, b]);
});

it("stores an entry once under a key", () => {
  const map = new MultiMap<{ name: string }>();
  map.add("key", a);
  map.add("key", a);
  expect(map.slot("key")).toBe(a);
});

it("removes an entry from one key, and then a key without entries", () => {
  const map = new MultiMap<{ name: string }>();
  for (const key of ["key", "other"]) for (const entry of [a, b]) map.add(key, entry);
  map.remove("key", a);
  expect(map.slot("key")).toBe(b);
  expect(map.of("other")).toEqual([a, b]);
  map.remove("key", a);
  map.remove("key", b);
  expect(map.of("key")).toEqual([]);
  expect(map.size).toBe(1);
});
