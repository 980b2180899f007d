/** Expressions about MAC addresses and UUIDs for property tests: values that fit, and values that almost do. */

import fc from "fast-check";
import { expressions, type KindSpec } from "./expression-specs.ts";

/** A Group with one expression. About half of them are admitted. */
export function anyIdentityExpression(): fc.Arbitrary<KindSpec> {
  const operator = fc.constantFrom("In", "NotIn", "Prefix", "Glob");
  const written = fc.constantFrom("mac", "uuid").chain((key) => {
    const value = almost(key === "mac" ? macText : uuidText);
    return fc.record({ key: fc.constant(key), operator, values: fc.array(value, { minLength: 1, maxLength: 2 }) });
  });
  // A negative one alone is refused for another reason.
  const others = { key: "role", operator: "Exists" };
  return written.map((expression) => ({ kind: "Group", spec: expressions(others, expression) }));
}

const digit = fc.constantFrom(..."0123456789abcdefABCDEF");

function digits(count: number): fc.Arbitrary<string> {
  return fc.array(digit, { minLength: count, maxLength: count }).map((all) => all.join(""));
}

/** Groups of digits of these lengths, with one mark between them. */
function groups(lengths: readonly number[], mark: string): fc.Arbitrary<string> {
  return fc.tuple(...lengths.map(digits)).map((all) => all.join(mark));
}

const macText = fc
  .tuple(fc.constantFrom(3, 5, 6, 8, 19, 20, 21), fc.constantFrom(":", "-", ".", ""))
  .chain(([bytes, mark]) =>
    groups(Array(Math.ceil(mark === "." ? bytes / 2 : bytes)).fill(mark === "." ? 4 : 2), mark),
  );

const uuidText = fc.constantFrom("-", "").chain((mark) => groups([8, 4, 4, 4, 12], mark));

/** As it is, cut off, or with one character more, less or in the place of another. */
function almost(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const edit = fc.record({
    at: fc.nat(60),
    kind: fc.constantFrom("none", "none", "cut", "insert", "replace", "remove"),
    character: fc.constantFrom("g", "*", "?", ":", "-", ".", "a", " "),
  });
  return fc.tuple(text, edit).map(([whole, { at, kind, character }]) => {
    const [before, after] = [whole.slice(0, at), whole.slice(at)];
    if (kind === "cut") return before || whole;
    if (kind === "insert") return before + character + after;
    if (kind === "replace") return before + character + after.slice(1);
    return kind === "remove" ? before + after.slice(1) : whole;
  });
}
