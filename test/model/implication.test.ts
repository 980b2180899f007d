import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Expression, type Operator, operators } from "../../src/model/labels/expression.ts";
import { matches, type Selection, toGroup } from "../../src/model/objects/group.ts";
import { implies } from "../../src/model/selection/implication.ts";
import { sampleLabels } from "../../src/model/selection/sample-machine.ts";
import { groupSpec } from "../controller/objects.ts";

function selectorOf(selector: Record<string, string>, ...expressions: readonly Expression[]): Selection {
  return toGroup("lab", "g", groupSpec({ selector, expressions }));
}

const os = (operator: Operator, ...values: readonly string[]): Expression => ({ key: "os", operator, values });

describe("one selector says all that another one says", () => {
  it.each<[first: Selection, second: Selection, expected: boolean]>([
    [selectorOf({ a: "1", b: "2" }), selectorOf({ a: "1" }), true],
    [selectorOf({ a: "1" }), selectorOf({ a: "1", b: "2" }), false],
    [selectorOf({ os: "x" }), selectorOf({}, os("In", "x", "y")), true],
    [selectorOf({ os: "z" }), selectorOf({}, os("In", "x", "y")), false],
    [selectorOf({}, os("In", "x")), selectorOf({ os: "x" }), true],
    [selectorOf({}, os("In", "x", "y")), selectorOf({ os: "x" }), false],
    [selectorOf({}, os("In", "x")), selectorOf({}, os("In", "x", "y")), true],
    [selectorOf({}, os("Prefix", "x")), selectorOf({}, os("Exists")), true],
    [selectorOf({}, os("NotIn", "x")), selectorOf({}, os("Exists")), false],
    [selectorOf({}, os("Prefix", "xy")), selectorOf({}, os("Prefix", "x")), true],
    [selectorOf({}, os("In", "xa", "xb")), selectorOf({}, os("Glob", "x?")), true],
    [selectorOf({}, os("Glob", "x?")), selectorOf({}, os("Glob", "x?", "y")), true],
    [selectorOf({}, os("NotIn", "x", "y")), selectorOf({}, os("NotIn", "x")), true],
    [selectorOf({}, os("NotIn", "x")), selectorOf({}, os("NotIn", "x", "y")), false],
    [selectorOf({}, os("DoesNotExist")), selectorOf({}, os("NotIn", "x")), true],
    [selectorOf({}, os("Exists")), selectorOf({}, os("DoesNotExist")), false],
  ])("%#", (first, second, expected) => {
    expect(implies(first, second)).toBe(expected);
  });

  const values = fc.constantFrom("a", "ab", "b", "*", "a?");
  const expressions = fc
    .tuple(fc.constantFrom("os", "role"), fc.constantFrom(...operators), fc.uniqueArray(values, { minLength: 1 }))
    .map(([key, operator, some]): Expression => ({ key, operator, values: operator.endsWith("Exist") ? [] : some }));
  const labels = fc.record({ os: values, role: values }, { requiredKeys: [] });
  const selectors = fc
    .tuple(labels, fc.array(expressions, { maxLength: 3 }))
    .map(([selector, some]) => selectorOf({ ...selector }, ...some));
  const machines = fc.record(
    { os: fc.constantFrom("", "a", "ab", "abc", "b"), role: fc.constantFrom("", "a", "b") },
    { requiredKeys: [] },
  );

  it("only if every machine of the first one is one of the second", () => {
    fc.assert(
      fc.property(selectors, selectors, machines, (first, second, machine) => {
        const sent = new Map(Object.entries(machine));
        const isMissed = implies(first, second) && matches(first, sent) && !matches(second, sent);
        expect(isMissed).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("the sample machine of a selector", () => {
  it.each<[name: string, selector: Selection]>([
    ["labels", selectorOf({ role: "web", mac: "52:54:00:a1:9c:ae" })],
    ["a list", selectorOf({}, { key: "mac", operator: "In", values: ["52:54:00:a1:9c:ae"] })],
    ["a beginning", selectorOf({}, { key: "mac", operator: "Prefix", values: ["52:54"] })],
    ["a pattern", selectorOf({}, { key: "serial", operator: "Glob", values: ["VM?-*"] })],
    ["a list without one", selectorOf({}, os("In", "a", "b"), os("NotIn", "a"))],
    ["what is there, but the sample", selectorOf({}, os("Exists"), os("NotIn", "other"))],
    ["what is absent", selectorOf({ role: "web" }, { key: "hostname", operator: "DoesNotExist", values: [] })],
  ])("of %s is one of its machines", (_name, selector) => {
    expect(matches(selector, sampleLabels(selector))).toBe(true);
  });
});
