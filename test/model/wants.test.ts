import { expect, it } from "vitest";
import type { Expression } from "../../src/model/labels/expression.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { matches, toGroup } from "../../src/model/objects/group.ts";
import { missText, wantsOf } from "../../src/model/selection/wants.ts";
import { groupSpec } from "../boot/feed-documents.ts";

function group(selector: Readonly<Record<string, string>>) {
  return toGroup("lab", "own", groupSpec({ selector }));
}

it.each([
  { query: "zone=b", said: "wants zone=a, request has zone=b" },
  { query: "rack=b", said: "wants zone=a, request has no zone" },
  { query: "zone=", said: "wants zone=a, request has an empty zone" },
  { query: "zone=A", said: "wants zone=a, request has zone=A" },
  { query: "zone=%1b%5b31m", said: String.raw`wants zone=a, request has zone=\u{1b}[31m` },
  { query: `zone=${"x".repeat(1_000)}`, said: `wants zone=a, request has zone=${"x".repeat(123)}...` },
])("$query misses: $said", ({ query, said }) => {
  const labels = labelsFromQuery(query.slice(0, 4_000));
  expect(wantsOf(group({ zone: "a" })).map((want) => missText(want, labels))).toEqual([said]);
});

it.each<{ expression: Expression; query: string; said: string }>([
  {
    expression: { key: "os", operator: "DoesNotExist", values: [] },
    query: "os=x",
    said: "wants os DoesNotExist, request has os=x",
  },
  {
    expression: { key: "serial", operator: "In", values: ["a", "b"] },
    query: "",
    said: "wants serial In (a,b), request has no serial",
  },
])("$query misses an expression: $said", ({ expression, query, said }) => {
  const labels = labelsFromQuery(query);
  const wants = wantsOf(toGroup("lab", "own", groupSpec({ expressions: [expression] })));
  expect(
    wants.filter(({ accepts, label }) => !accepts(labels.get(label))).map((want) => missText(want, labels)),
  ).toEqual([said]);
});

it.each([
  { selector: {}, query: "" },
  { selector: { zone: "a" }, query: "zone=a" },
  { selector: { zone: "a" }, query: "zone=b" },
  { selector: { zone: "a", mac: "52:54:00:00:00:01" }, query: "zone=a&mac=52-54-00-00-00-01" },
  { selector: { zone: "a", mac: "52:54:00:00:00:01" }, query: "mac=52-54-00-00-00-01" },
])("a Group of $selector matches $query exactly when the machine has all that it wants", ({ selector, query }) => {
  const labels = labelsFromQuery(query);
  const hasAll = wantsOf(group(selector)).every(({ label, accepts }) => accepts(labels.get(label)));
  expect(hasAll).toBe(matches(group(selector), labels));
});
