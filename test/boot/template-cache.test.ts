import { expect, it } from "vitest";
import { TemplateCache } from "../../src/boot/template-cache.ts";

const upper = (text: string) => ({ made: text.toUpperCase() });

it("makes a text once", () => {
  const cache = new TemplateCache<{ made: string }>();
  const first = cache.get("abc", upper);
  expect(first).toEqual({ made: "ABC" });
  expect(cache.get("abc", upper)).toBe(first);
});

it("drops what was not used for longest when the texts exceed the limit", () => {
  const cache = new TemplateCache<{ made: string }>({ limitBytes: 12 });
  const a = cache.get("aaa", upper);
  const b = cache.get("bbb", upper);
  expect(cache.get("aaa", upper)).toBe(a);
  cache.get("ccc", upper);
  expect(cache.sizeBytes).toBe(12);
  expect(cache.get("aaa", upper)).toBe(a);
  expect(cache.get("bbb", upper)).not.toBe(b);
});

it("keeps nothing of a text that is larger than the limit", () => {
  const cache = new TemplateCache<{ made: string }>({ limitBytes: 4 });
  expect(cache.get("abc", upper)).toEqual({ made: "ABC" });
  expect(cache.sizeBytes).toBe(0);
});

it("keeps nothing of a text that cannot be made", () => {
  const cache = new TemplateCache<{ made: string }>();
  const fail = () => {
    throw new Error("no");
  };
  expect(() => cache.get("abc", fail)).toThrow("no");
  expect(cache.sizeBytes).toBe(0);
});
