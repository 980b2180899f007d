import { expect, it } from "vitest";
import { TextCache } from "../../src/lib/text/text-cache.ts";

const upper = (text: string) => ({ made: text.toUpperCase() });

it("makes a text once", () => {
  const cache = new TextCache<{ made: string }>({ limitBytes: 100 });
  const first = cache.get("abc", upper);
  expect(first).toEqual({ made: "ABC" });
  expect(cache.get("abc", upper)).toBe(first);
});

it("drops what was not used for longest when the texts exceed the limit", () => {
  const cache = new TextCache<{ made: string }>({ limitBytes: 12 });
  const a = cache.get("aaa", upper);
  const b = cache.get("bbb", upper);
  expect(cache.get("aaa", upper)).toBe(a);
  cache.get("ccc", upper);
  expect(cache.sizeBytes).toBe(12);
  expect(cache.get("aaa", upper)).toBe(a);
  expect(cache.get("bbb", upper)).not.toBe(b);
});

it("keeps nothing of a text that is larger than the limit, and nothing is dropped for it", () => {
  const cache = new TextCache<{ made: string }>({ limitBytes: 4 });
  const a = cache.get("a", upper);
  expect(cache.get("abc", upper)).toEqual({ made: "ABC" });
  expect(cache.sizeBytes).toBe(2);
  expect(cache.get("a", upper)).toBe(a);
});

it("keeps nothing of a text that cannot be made", () => {
  const cache = new TextCache<{ made: string }>({ limitBytes: 100 });
  const fail = () => {
    throw new Error("no");
  };
  expect(() => cache.get("abc", fail)).toThrow("no");
  expect(cache.sizeBytes).toBe(0);
});
