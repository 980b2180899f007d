/** The part of the tables in specs.ts that is about the expressions of a selector. */

import type { JsonObject, JsonValue } from "../../src/model/json.ts";

export interface KindSpec {
  readonly kind: string;
  readonly spec: JsonObject;
}

export const profileRef = { name: "web" };

export const admittedExpressions: readonly JsonObject[] = [
  {
    profileRef,
    selector: { matchLabels: { role: "web" }, matchExpressions: [{ key: "os", operator: "DoesNotExist" }] },
  },
  expressions({ key: "mac", operator: "In", values: ["52-54-00-A1-9C-AE", "525400a19cae", "5254.00a1.9cae"] }),
  expressions({ key: "serial", operator: "Exists" }, { key: "os", operator: "NotIn", values: ["a", "b c/ü"] }),
  expressions({ key: "serial", operator: "Prefix", values: ["VMware-"] }, { key: "serial", operator: "DoesNotExist" }),
  expressions(
    { key: "uuid", operator: "Glob", values: ["4c4c*", "????C4C4-*"] },
    { key: "mac", operator: "Exists", values: [] },
  ),
  // As selectors of Kubernetes have it, and as programs write it that know no absent list.
  ...["Exists", "DoesNotExist"].flatMap((operator) =>
    [[], null].map((values) => selected({ role: "web" }, { key: "os", operator, values })),
  ),
];

export const expressionsRefusedByRules: readonly (KindSpec & { readonly message: string })[] = [
  {
    kind: "Group",
    spec: { ...expressions({ key: "os", operator: "Exists" }), matchAll: true },
    message: "set exactly one of a non-empty selector and matchAll: true",
  },
  ...[{}, { matchLabels: { role: "web" } }].map((others) => ({
    kind: "Group",
    spec: { profileRef, selector: { ...others, matchExpressions: [] } },
    message: "an empty list takes no machine away: write an expression, or remove matchExpressions",
  })),
  ...[
    [{ key: "os", operator: "DoesNotExist" }],
    [
      { key: "os", operator: "NotIn", values: ["a"] },
      { key: "role", operator: "DoesNotExist" },
    ],
  ].map((matchExpressions) => ({
    kind: "Group",
    spec: { profileRef, selector: { matchLabels: {}, matchExpressions } },
    message:
      "NotIn and DoesNotExist alone take nearly every machine: add a label, or an expression of In, Exists, Prefix or Glob",
  })),
  ...[
    { operator: "In" },
    { operator: "In", values: [] },
    { operator: "NotIn", values: null },
    { operator: "Prefix", values: [] },
    { operator: "Glob" },
    { operator: "Exists", values: ["a"] },
    { operator: "DoesNotExist", values: ["a"] },
  ].map((expression) => ({
    kind: "Group",
    spec: selected({ role: "web" }, { key: "os", ...expression }),
    message: "In, NotIn, Prefix and Glob need values; Exists and DoesNotExist have none",
  })),
  ...["Prefix", "Glob"].map((operator) => ({
    kind: "Group",
    spec: expressions({ key: "os", operator, values: times(17, "a") }),
    message: "Prefix and Glob have at most 16 values",
  })),
  ...["UUID", "Mac", "aRCH"].map((key) => ({
    kind: "Group",
    spec: expressions({ key, operator: "Exists" }),
    message: "write the keys uuid, mac, hostname, serial, domain and arch in lower case",
  })),
];

export const expressionsRefusedBySchema: readonly (KindSpec & { readonly text: string })[] = [
  {
    kind: "Group",
    spec: expressions({ key: "os", operator: "in", values: ["a"] }),
    text: "must be one of In, NotIn, Exists, DoesNotExist, Prefix, Glob",
  },
  ...["", "-a", "a b", "__proto__"].map((key) => ({
    kind: "Group",
    spec: expressions({ key, operator: "Exists" }),
    text: key === "" ? "is empty" : "is no name of a label",
  })),
  { kind: "Group", spec: expressions({ key: "os", operator: null }), text: "is missing" },
  { kind: "Group", spec: expressions({ key: "os", operator: "In", values: ["a", null] }), text: "must be text" },
  { kind: "Group", spec: expressions({ key: "os", operator: "In", values: [""] }), text: "is empty" },
  { kind: "Group", spec: selected({ a: "b" }, null), text: "must be an object" },
];

export const expressionBounds: readonly [place: string, kind: string, most: JsonObject, more: JsonObject][] = [
  [
    "the expressions",
    "Group",
    expressions(...times(8, { key: "os", operator: "Exists" })),
    expressions(...times(9, { key: "os", operator: "Exists" })),
  ],
  ["the values of an expression", "Group", valuesOf(distinct(5000)), valuesOf(distinct(5001))],
  ["the MAC addresses of an expression", "Group", addresses(5000), addresses(5001)],
  ["a value of an expression", "Group", valuesOf(["x".repeat(253)]), valuesOf(["x".repeat(254)])],
  [
    "an expression's key",
    "Group",
    expressions({ key: "k".repeat(63), operator: "Exists" }),
    expressions({ key: "k".repeat(64), operator: "Exists" }),
  ],
];

/** A selector with these expressions alone. */
export function expressions(...matchExpressions: readonly JsonObject[]): JsonObject {
  return { profileRef, selector: { matchExpressions } };
}

function selected(matchLabels: JsonObject, expression: JsonValue): JsonObject {
  return { profileRef, selector: { matchLabels, matchExpressions: [expression] } };
}

function valuesOf(values: readonly string[]): JsonObject {
  return expressions({ key: "os", operator: "In", values });
}

function distinct(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `value-${at}`.padEnd(60, "x"));
}

/** In the longest form that a MAC address has. */
function addresses(count: number): JsonObject {
  const values = Array.from({ length: count }, (_, at) =>
    at
      .toString(16)
      .padStart(40, "0")
      .replaceAll(/..(?=.)/g, "$&:"),
  );
  return expressions({ key: "mac", operator: "In", values });
}

export function times<Value>(count: number, value: Value): readonly Value[] {
  return Array.from({ length: count }, () => value);
}
