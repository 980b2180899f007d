import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineReader } from "../../src/lib/text/line-reader.ts";

function readAll(chunks: readonly Buffer[], { maxLineBytes = 1024 * 1024 } = {}): readonly string[] {
  const reader = new LineReader({ maxLineBytes, refuse: (detail, cause) => new Error(detail, { cause }) });
  return chunks.flatMap((chunk) => [...reader.push(chunk)]);
}

describe("lines", () => {
  it("are the same however their bytes are cut, in the middle of characters as well", () => {
    const line = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\n", " "));
    const cuts = fc.array(fc.nat(), { maxLength: 20 });
    fc.assert(
      fc.property(fc.array(line), cuts, (lines, places) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(""));
        const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
        const chunks = [...at, bytes.length].map((end, each) => bytes.subarray(at[each - 1] ?? 0, end));
        expect(readAll(chunks)).toEqual(lines);
      }),
    );
  });

  it("end with a newline: what has none yet is not told", () => {
    expect(readAll([Buffer.from("whole\nhalf")])).toEqual(["whole"]);
  });

  it.each([
    { name: "in one piece", chunks: ["123456789\n"] },
    { name: "in pieces", chunks: ["12345", "6789\n"] },
    { name: "before its end has come", chunks: ["12345", "6789"] },
  ])("of more than the limit end it, $name", ({ chunks }) => {
    const buffers = chunks.map((chunk) => Buffer.from(chunk));
    expect(() => readAll(buffers, { maxLineBytes: 8 })).toThrow("a line is too long");
    expect(readAll([Buffer.from("12345678\n")], { maxLineBytes: 8 })).toEqual(["12345678"]);
  });

  it("that are not UTF-8 end it", () => {
    expect(() => readAll([Buffer.from([0x61, 0xff, 0x0a])])).toThrow("a line is not UTF-8");
  });
});
