import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findJsonFault } from "../../src/render/config/json-fault.ts";

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("findJsonFault", () => {
  it.each([
    { name: "a comma too many in an object", text: '{"a": 1,\n}', line: 2, column: 1 },
    { name: "a comma too many in a list", text: "[1,\n 2,\n ]", line: 3, column: 2 },
    { name: "a value without quotes", text: '{"a": 1,\n  "b": bare}', line: 2, column: 8 },
    { name: "a missing colon", text: '{"a"\n 1}', line: 2, column: 2 },
    { name: "a missing comma", text: '{"a": 1\n "b": 2}', line: 2, column: 2 },
    { name: "a bracket of the other kind", text: '{"a": [1}', line: 1, column: 9 },
    { name: "a bracket too many", text: "{}\n}", line: 2, column: 1 },
    { name: "a line break in a text", text: '{"a": "x\ny"}', line: 1, column: 9 },
    { name: "an unknown escape", text: String.raw`["\x"]`, line: 1, column: 3 },
    { name: "a number with a zero in front", text: "[01]", line: 1, column: 3 },
    { name: "a text that ends too soon", text: '{"a": [1,\n2', line: 2, column: 2 },
    { name: "nothing", text: "", line: 1, column: 1 },
  ])("finds $name", ({ text, line, column }) => {
    expect(findJsonFault(text)).toEqual({ line, column });
  });

  it("is not stopped by nesting, nor by a text of 8 MiB", () => {
    expect(findJsonFault("[".repeat(100_000))).toEqual({ line: 1, column: 100_001 });
    const long = `"${"x\\n\u007f".repeat(2 * 1024 * 1024)}`;
    expect(findJsonFault(long)).toEqual({ line: 1, column: long.length + 1 });
  });

  it("agrees with the engine on every value", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(findJsonFault(text)).toBeUndefined();
      }),
    );
  });

  it("agrees with the engine on JSON that one character was changed in", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.constantFrom(...'{}[],:"\\tf1-e.\n\u007f x'), (json, at, character) => {
        const cut = at % (json.length + 1);
        const text = json.slice(0, cut) + character + json.slice(cut + 1);
        expect(findJsonFault(text) === undefined).toBe(isJson(text));
      }),
      { numRuns: 2_000 },
    );
  });
});
