import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchesGlob } from "../../src/model/labels/expression.ts";

describe("matchesGlob", () => {
  it.each([
    ["abc", "abc", true],
    ["abc", "abcd", false],
    ["abc", "ABC", false],
    ["a*", "a", true],
    ["a*", "abc", true],
    ["*c", "abc", true],
    ["*c", "abcd", false],
    ["a*c", "ac", true],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "a-c-b", false],
    ["*ab*", "aab", true],
    ["?", "a", true],
    ["?", "", false],
    ["a?c", "abc", true],
    ["a?c", "ac", false],
    ["*?", "", false],
    ["**", "", true],
    ["?", "😀", true],
    ["😀*", "😀x", true],
    ["[a-z].+", "b.+", false],
    ["a\\*", "a*", false],
  ])("`%s` and `%s`: %s", (pattern, value, expected) => {
    expect(matchesGlob(pattern, value)).toBe(expected);
  });

  const texts = fc.array(fc.constantFrom("a", "b", "😀"), { maxLength: 12 }).map((characters) => characters.join(""));
  const patterns = fc.array(fc.constantFrom("a", "b", "😀", "*", "?"), { maxLength: 8 }).map((parts) => parts.join(""));

  it("says what a regular expression says", () => {
    fc.assert(
      fc.property(patterns, texts, (pattern, text) => {
        const same = new RegExp(`^${pattern.replaceAll("*", ".*").replaceAll("?", ".")}$`, "u");
        expect(matchesGlob(pattern, text)).toBe(same.test(text));
      }),
      { numRuns: 1000 },
    );
  });

  it("knows values of up to 253 characters", () => {
    expect([matchesGlob("a*", "a".repeat(253)), matchesGlob("a*", "a".repeat(254))]).toEqual([true, false]);
    expect([matchesGlob("*", "😀".repeat(253)), matchesGlob("*", "😀".repeat(254))]).toEqual([true, false]);
  });

  it("ends with patterns that send others back without end", () => {
    const pattern = `${"*a".repeat(126)}b`;
    expect(matchesGlob(pattern, "a".repeat(253))).toBe(false);
    expect(matchesGlob(pattern, "a".repeat(1_000_000))).toBe(false);
  });
});
