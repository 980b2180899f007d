import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { JsonObject, JsonValue } from "../../../src/model/json.ts";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import {
  droppedFields,
  isNothing,
  selectorNames,
  specNames,
  withDropped,
} from "../../../src/sources/kubernetes/source/dropped-fields.ts";

const annotation = "kubectl.kubernetes.io/last-applied-configuration";
const exists = [{ key: "os", operator: "Exists" }];
const labels = { matchLabels: { zone: "a" } };

interface Told {
  readonly applied?: JsonValue;
  /** Who is told to own expressions. */
  readonly owners?: readonly string[];
}

function group(selector: JsonObject, { applied, owners = [] }: Told): JsonObject {
  const text = applied === undefined ? undefined : JSON.stringify({ spec: { selector: applied } });
  return {
    metadata: {
      ...(text !== undefined && { annotations: { [annotation]: text } }),
      managedFields: [
        { manager: "davit", fieldsV1: { "f:status": {} } },
        ...owners.map((manager) => ({
          manager,
          fieldsV1: { "f:spec": { "f:selector": { "f:matchExpressions": {}, "f:matchLabels": {} } } },
        })),
      ],
    },
    spec: { selector },
  };
}

describe("expressions were dropped", () => {
  it.each<[name: string, selector: JsonObject, told: Told, expected: boolean]>([
    ["where kubectl applied some", labels, { applied: { ...labels, matchExpressions: exists } }, true],
    ["where kubectl applied null", labels, { applied: { ...labels, matchExpressions: null } }, true],
    ["where somebody is told to have written them", labels, { owners: ["helm"] }, true],
    ["where kubectl applied none and somebody else wrote them", labels, { applied: labels, owners: ["helm"] }, true],
    ["not where kubectl applied none", labels, { applied: labels, owners: ["kubectl-client-side-apply"] }, false],
    ["not where they are there", { ...labels, matchExpressions: exists }, { owners: ["helm"] }, false],
    ["not where nobody wrote any", labels, { applied: labels, owners: [] }, false],
    ["not where there is nothing but labels", labels, {}, false],
  ])("%s", (_name, selector, told, expected) => {
    const dropped = droppedFields("Group", group(selector, told));
    expect([dropped.expressions, isNothing(dropped)]).toEqual([expected, !expected]);
  });

  it.each<[name: string, written: JsonObject, expected: string | undefined]>([
    ["a misspelt name of the selector", { selector: { ...labels, matchExpresions: exists } }, "spec.selector"],
    ["a misspelt name of the spec", { selector: labels, holds: true }, "spec"],
    ["every name there is", Object.fromEntries(specNames.Group.map((name) => [name, labels])), undefined],
  ])("kubectl applied %s", (_name, written, expected) => {
    const told = { annotations: { [annotation]: JSON.stringify({ spec: written }) } };
    const dropped = droppedFields("Group", { metadata: told, spec: { selector: labels } });
    expect(dropped.unknownIn).toBe(expected);
    if (expected !== undefined) expect(isNothing(dropped)).toBe(false);
  });

  it.each(["Profile", "Group", "Machine"] as const)("by the names that the CRD of %s has", async (kind) => {
    const crds = (await readCrds(packagedCrdsDirectory)).map((text) => parse(text).spec);
    const { versions } = crds.find(({ names }) => names.kind === kind);
    const { properties } = versions[0].schema.openAPIV3Schema.properties.spec;
    expect(Object.keys(properties).toSorted()).toEqual([...specNames[kind]]);
    if (kind === "Group") {
      expect(Object.keys(properties.selector.properties).toSorted()).toEqual(selectorNames.toSorted());
    }
  });

  it("and the spec with them is one that is refused", () => {
    const dropped = { labels: ["mac"], expressions: true, closing: ["hold", "approval", "args"] };
    expect(withDropped("Group", { selector: labels }, dropped)).toEqual({
      hold: true,
      approval: "Required",
      selector: { matchLabels: { zone: "a", mac: null }, matchExpressions: null },
    });
  });

  it.each<[name: string, object: JsonObject]>([
    ["an object of nothing", {}],
    ["managed fields that are no list", { metadata: { managedFields: "x" }, spec: {} }],
    [
      "an annotation that is no JSON",
      { metadata: { annotations: { [annotation]: 'null "matchExpressions"' } }, spec: {} },
    ],
  ])("not in %s", (_name, object) => {
    expect(isNothing(droppedFields("Group", object))).toBe(true);
  });
});

describe("a field that closes a boot was dropped", () => {
  const cases: readonly [kind: "Profile" | "Group" | "Machine", field: string, value: JsonValue, safe: JsonObject][] = [
    ["Profile", "effect", "Install", { effect: "Install" }],
    ["Profile", "install", { timeout: "1h" }, { effect: "Install" }],
    ["Profile", "boot.grubScript", "exit", {}],
    ["Group", "hold", true, { hold: true }],
    ["Group", "approval", "Required", { approval: "Required" }],
    ["Group", "args", ["rescue"], {}],
    ["Machine", "hold", true, { hold: true }],
    ["Machine", "labels", { os: "installed" }, {}],
  ];
  const nested = (path: string, value: JsonValue, prefix = ""): JsonObject =>
    path.split(".").reduceRight<JsonValue>((inner, name) => ({ [prefix + name]: inner }), value) as JsonObject;
  const applied = (spec: JsonObject) => ({ annotations: { [annotation]: JSON.stringify({ spec }) } });
  const owned = (fields: JsonObject, manager = "helm") => ({
    managedFields: [{ manager, fieldsV1: { "f:spec": fields } }],
  });

  it.each(cases)("of %s: %s", (kind, field, value, safe) => {
    const closing = (object: JsonObject) => droppedFields(kind, object).closing;
    const spec = nested(field, value);
    const found = [
      { metadata: applied(spec), spec: {} },
      { metadata: owned(nested(field, {}, "f:")), spec: {} },
      { metadata: { ...applied({}), ...owned(nested(field, {}, "f:")) }, spec: {} },
    ];
    for (const object of found) expect(closing(object)).toEqual([field]);
    const others = [
      { metadata: applied(spec), spec },
      { metadata: owned(nested(field, {}, "f:")), spec },
      { metadata: { ...applied({}), ...owned(nested(field, {}, "f:"), "kubectl-client-side-apply") }, spec: {} },
      { metadata: applied(nested(field, null)), spec: {} },
      { spec: {} },
    ];
    for (const object of others) expect(closing(object)).toEqual([]);
    const dropped = { labels: [], expressions: false, closing: [field] };
    expect(isNothing(dropped)).toBe(false);
    expect(withDropped(kind, {}, dropped)).toMatchObject(safe);
  });

  it("unless what was written closes nothing", () => {
    expect(droppedFields("Profile", { metadata: applied({ effect: "Boot" }), spec: {} }).closing).toEqual([]);
    expect(droppedFields("Group", { metadata: applied({ hold: false }), spec: {} }).closing).toEqual([]);
  });
});
