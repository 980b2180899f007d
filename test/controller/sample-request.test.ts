import { describe, expect, it } from "vitest";
import { selectorSummary } from "../../src/controller/reconcile/reconcile-group.ts";
import type { Expression } from "../../src/model/labels/expression.ts";
import { matches, toGroup } from "../../src/model/objects/group.ts";
import { sampleRequest } from "../../src/model/selection/sample-machine.ts";
import { groupSpec } from "./objects.ts";

const groupOf = (expressions: readonly Expression[], selector: Record<string, string> = {}) =>
  toGroup("lab", "g", groupSpec({ selector, expressions }));

describe("the sample request of a Group", () => {
  it.each<[name: string, expressions: readonly Expression[]]>([
    ["a beginning of its mac", [{ key: "mac", operator: "Prefix", values: ["52:54"] }]],
    ["a label that is named as what every object has", [{ key: "hasOwnProperty", operator: "Exists", values: [] }]],
    ["no hostname", [{ key: "hostname", operator: "DoesNotExist", values: [] }]],
    ["another serial than the sample's", [{ key: "serial", operator: "NotIn", values: ["SAMPLE"] }]],
  ])("with %s is one that it selects", (_name, expressions) => {
    const group = groupOf(expressions, { role: "web" });
    expect(matches(group, sampleRequest(group).labels)).toBe(true);
  });
});

describe("a selector in a status", () => {
  it("is its text", () => {
    expect(selectorSummary(groupOf([{ key: "os", operator: "Exists", values: [] }], { role: "web" }))).toBe(
      "os Exists,role=web",
    );
  });

  it("has the first values of a long list", () => {
    const values = Array.from({ length: 5000 }, (_, at) => `n${at}`);
    expect(selectorSummary(groupOf([{ key: "serial", operator: "In", values }]))).toBe(
      "serial In (n0,n1,n2,n3,4996 more)",
    );
  });

  it("is as long as a status may have it", () => {
    const long = (at: number): Expression => ({
      key: `${"k".repeat(60)}${at}`,
      operator: "In",
      values: ["a", "b", "c", "d"].map((end) => "😀".repeat(252) + end),
    });
    const text = selectorSummary(groupOf([long(1), long(2), long(3), long(4), long(5)]));
    expect(text.length).toBeLessThanOrEqual(8192);
    expect(text.endsWith("...")).toBe(true);
  });
});
