import fc from "fast-check";
import { expect, it } from "vitest";
import { ValueMap } from "../../src/model/labels/value-map.ts";

const digit = fc.constantFrom(..."0123456789abcdefAFg/:`");
const byte = fc.tuple(digit, digit).map((digits) => digits.join(""));
/** MAC addresses, nearly all of them with a fault, of few bytes so that they collide. */
const likeMacs = fc
  .tuple(fc.array(byte, { minLength: 6, maxLength: 6 }), fc.constantFrom(":", "-", "::", ""))
  .map(([bytes, mark]) => bytes.join(mark));
const macs = fc
  .array(fc.constantFrom("00", "01", "09", "0a", "a0", "ff"), { minLength: 6, maxLength: 6 })
  .map((bytes) => bytes.join(":"));
const texts = fc.oneof(fc.string({ maxLength: 3 }), likeMacs, macs);

it("is a map by texts, whether or not they are MAC addresses", () => {
  const steps = fc.array(fc.tuple(fc.constantFrom("set", "delete"), texts, fc.nat()), { maxLength: 30 });
  fc.assert(
    fc.property(steps, fc.array(texts), (changes, strangers) => {
      const map = new ValueMap<number>();
      const model = new Map<string, number>();
      for (const [step, text, kept] of changes) {
        if (step === "set") {
          map.set(text, kept);
          model.set(text, kept);
        } else {
          map.delete(text);
          model.delete(text);
        }
        expect(map.isEmpty).toBe(model.size === 0);
      }
      for (const text of [...model.keys(), ...strangers]) expect(map.get(text)).toBe(model.get(text));
      expect([...map.values()].toSorted()).toEqual([...model.values()].toSorted());
    }),
  );
});

it.each([
  ["52:54:00:12:34:56", "52:54:00:12:34:57"],
  ["52:54:00:12:34:56", "53:54:00:12:34:56"],
  ["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"],
  // By a digit's code alone, these would be the same numbers.
  ["aa:aa:aa:aa:aa:aa", "AA:AA:AA:AA:AA:AA"],
  ["5a:00:00:00:00:00", "5::00:00:00:00:00"],
  ["00-00-00-00-00-00", "00:00:00:00:00:00"],
])("%s is not %s", (one, other) => {
  const map = new ValueMap<string>();
  map.set(one, one);
  expect(map.get(other)).toBeUndefined();
  map.set(other, other);
  expect([map.get(one), map.get(other)]).toEqual([one, other]);
});
