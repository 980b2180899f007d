import { describe, expect, it } from "vitest";
import {
  expressionText,
  isBroadExpression,
  isExpression,
  isPositive,
  normalizeExpressions,
  type Operator,
  toRequirement,
} from "../../src/model/labels/expression.ts";

const absent = undefined;

describe("an expression of", () => {
  it.each<[operator: Operator, values: string[], met: (string | undefined)[], unmet: (string | undefined)[]]>([
    ["In", ["a", "b"], ["a", "b"], ["c", "A", "ab", "", absent]],
    ["NotIn", ["a", "b"], ["c", "A", "", absent], ["a", "b"]],
    ["Exists", [], ["a", " "], ["", absent]],
    ["DoesNotExist", [], ["", absent], ["a", " "]],
    ["Prefix", ["ab", "c"], ["ab", "abc", "c"], ["a", "AB", "xab", "", absent]],
    ["Glob", ["a*", "?b"], ["a", "ax", "xb"], ["b", "xxb", "", absent]],
    ["Glob", ["*"], ["a"], ["", absent]],
  ])("%s %s", (operator, values, met, unmet) => {
    const { accepts } = toRequirement({ key: "os", operator, values });
    expect(met.filter((value) => !accepts(value))).toEqual([]);
    expect(unmet.filter((value) => accepts(value))).toEqual([]);
  });
});

describe("normalizeExpressions", () => {
  const normalized = (key: string, operator: Operator, ...values: readonly string[]) =>
    normalizeExpressions([{ key, operator, values }]);

  it("writes values as labels have them, sorted, each once", () => {
    const written = ["52-54-00-A1-9C-AF", "525400a19cae", "52:54:00:a1:9c:ae"];
    expect(normalized("mac", "In", ...written)).toEqual({
      expressions: [{ key: "mac", operator: "In", values: ["52:54:00:a1:9c:ae", "52:54:00:a1:9c:af"] }],
      badValues: [],
    });
    expect(normalized("uuid", "Prefix", "4C4C").expressions).toEqual([
      { key: "uuid", operator: "Prefix", values: ["4c4c"] },
    ]);
    expect(normalized("serial", "Glob", "B*", "A*").expressions).toEqual([
      { key: "serial", operator: "Glob", values: ["A*", "B*"] },
    ]);
  });

  it("counts an expression once that is written twice, in whatever order", () => {
    const [a, b] = [
      { key: "os", operator: "In", values: ["x", "y"] },
      { key: "role", operator: "Exists", values: [] },
    ] as const;
    const { expressions } = normalizeExpressions([b, a, { ...a, values: ["y", "x"] }, b]);
    expect(expressions).toEqual([a, b]);
    expect(normalizeExpressions([a, b]).expressions).toEqual(expressions);
  });

  it.each<[key: string, operator: Operator, good: string, bad: string]>([
    ["mac", "In", "5254.00a1.9cae", "52:54"],
    ["mac", "NotIn", "52-54-00-a1-9c-ae", "52:54:00-a1:9c:ae"],
    ["mac", "Prefix", "52:5", "52-54"],
    ["mac", "Prefix", "52:54:00:a1:9c:ae", "5254"],
    ["mac", "Glob", "52:54:*:??", "52-54-*"],
    ["uuid", "In", "4C4C4544-0042-3510-8052-b4c04f4e4a32", "4c4c4544"],
    ["uuid", "Prefix", "4c4c4544-00", "4c4c45440"],
    ["uuid", "Glob", "4c4c*-????", "node-*"],
  ])("takes for %s %s `%s`, and leaves out `%s`, which no machine can have", (key, operator, good, bad) => {
    const { expressions, badValues } = normalized(key, operator, good, bad);
    expect(expressions[0]?.values).toHaveLength(1);
    expect(badValues).toEqual([{ expression: 0, value: 1, key, operator }]);
  });
});

it("an expression reads as text", () => {
  expect(expressionText({ key: "os", operator: "DoesNotExist", values: [] })).toBe("os DoesNotExist");
  expect(expressionText({ key: "mac", operator: "In", values: ["a", "b"] })).toBe("mac In (a,b)");
});

it.each<[operator: Operator, values: string[], positive: boolean, broad: boolean]>([
  ["In", ["a"], true, false],
  ["NotIn", ["a"], false, false],
  ["Exists", [], true, true],
  ["DoesNotExist", [], false, false],
  ["Prefix", ["abc"], true, false],
  ["Glob", ["abc*"], true, false],
  ["Glob", ["abc*", "??*"], true, true],
])("%s %s is positive: %s, and nearly any machine meets it: %s", (operator, values, positive, broad) => {
  const expression = { key: "os", operator, values };
  expect([isPositive(expression), isBroadExpression(expression)]).toEqual([positive, broad]);
});

it.each<[what: string, value: unknown]>([
  ["an operator of a newer davit", { key: "os", operator: "Matches", values: [] }],
  ["no values", { key: "os", operator: "In" }],
  ["values that are no texts", { key: "os", operator: "In", values: [1] }],
  ["no key", { operator: "In", values: [] }],
  ["null", null],
])("%s is no expression of a document", (_what, value) => {
  expect(isExpression(value)).toBe(false);
});
