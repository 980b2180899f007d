import { describe, expect, it } from "vitest";
import { shown, visible } from "../../src/lib/text/visible.ts";

describe("visible", () => {
  it.each([
    { name: "words", text: "wants zone=ä 東", seen: "wants zone=ä 東" },
    { name: "an escape sequence of terminals", text: "a\u001b[31m", seen: String.raw`a\u{1b}[31m` },
    { name: "line ends", text: "a\r\nb\u2028c\u2029d\u0085", seen: String.raw`a\u{d}\u{a}b\u{2028}c\u{2029}d\u{85}` },
    { name: "a change of the direction of writing", text: "a\u202eb", seen: String.raw`a\u{202e}b` },
    { name: "half a character", text: "a\ud800", seen: "a\ufffd" },
  ])("shows $name", ({ text, seen }) => {
    expect(visible(text)).toBe(seen);
  });
});

it("`shown` cuts after 128 characters, and says so", () => {
  expect(shown("x".repeat(128))).toBe("x".repeat(128));
  expect(shown("x".repeat(129))).toBe(`${"x".repeat(128)}...`);
});
