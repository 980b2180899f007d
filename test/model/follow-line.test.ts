import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeFollowLine, encodeFollowLine, type FollowLine } from "../../src/model/follow-line.ts";

describe("a line of the follow protocol", () => {
  it("is read back as it was written, in one line whatever its text", () => {
    const text = fc.string({ unit: "binary" });
    const index = fc.nat({ max: Number.MAX_SAFE_INTEGER });
    const line: fc.Arbitrary<FollowLine> = fc.oneof(
      fc.record({ kind: fc.constantFrom("dump", "resume"), cluster: fc.string({ minLength: 1 }) }),
      fc.record({ kind: fc.constant("put"), path: text, text }),
      fc.record({ kind: fc.constant("delete"), path: text }),
      fc.record({ kind: fc.constantFrom("commit", "heartbeat"), index }),
    );
    fc.assert(
      fc.property(line, (given) => {
        const written = encodeFollowLine(given);
        expect(written.indexOf("\n")).toBe(written.length - 1);
        expect(decodeFollowLine(written.slice(0, -1))).toEqual(given);
      }),
    );
  });

  it.each([
    "",
    "null",
    "[]",
    '"put"',
    '{"kind":"put"',
    "{}",
    '{"kind":"shout"}',
    '{"kind":"dump"}',
    '{"kind":"resume","cluster":""}',
    '{"kind":"put","path":"/a"}',
    '{"kind":"put","path":"/a","text":null}',
    '{"kind":"delete","path":1}',
    '{"kind":"commit","index":-1}',
    '{"kind":"commit","index":1.5}',
    '{"kind":"heartbeat","index":"1"}',
    '{"kind":"heartbeat","index":9007199254740992}',
  ])("is not %s", (text) => {
    expect(decodeFollowLine(text)).toBeUndefined();
  });
});
