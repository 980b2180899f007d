import fc from "fast-check";
import { expect, it } from "vitest";
import { compareBytes } from "../../src/lib/order.ts";

it("`compareBytes` orders like the bytes of UTF-8", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      expect(Math.sign(compareBytes(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
  );
});
