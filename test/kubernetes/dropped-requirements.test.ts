import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { packagedCrdsDirectory, readCrds } from "../../src/admission/crds.ts";
import {
  droppedRequirements,
  isNothing,
  selectorNames,
  specNames,
  withDropped,
} from "../../src/kubernetes/source/dropped-requirements.ts";
import type { JsonObject, JsonValue } from "../../src/model/json.ts";

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
    const dropped = droppedRequirements(group(selector, told));
    expect([dropped.expressions, isNothing(dropped)]).toEqual([expected, !expected]);
  });

  it.each<[name: string, written: JsonObject, expected: string | undefined]>([
    ["a misspelt name of the selector", { selector: { ...labels, matchExpresions: exists } }, "spec.selector"],
    ["a misspelt name of the spec", { selector: labels, holds: true }, "spec"],
    ["every name there is", Object.fromEntries(specNames.map((name) => [name, labels])), undefined],
  ])("kubectl applied %s", (_name, written, expected) => {
    const told = { annotations: { [annotation]: JSON.stringify({ spec: written }) } };
    const dropped = droppedRequirements({ metadata: told, spec: { selector: labels } });
    expect(dropped.unknownIn).toBe(expected);
    if (expected !== undefined) expect(isNothing(dropped)).toBe(false);
  });

  it("by the names that the CRD has", async () => {
    const crd = (await readCrds(packagedCrdsDirectory)).find((text) => text.includes("name: groups.davit.dev"));
    const { properties } = parse(crd ?? "").spec.versions[0].schema.openAPIV3Schema.properties.spec;
    expect(Object.keys(properties).toSorted()).toEqual([...specNames]);
    expect(Object.keys(properties.selector.properties).toSorted()).toEqual(selectorNames.toSorted());
  });

  it("and the spec with them is one that is refused", () => {
    expect(withDropped({ selector: labels, hold: true }, { labels: ["mac"], expressions: true })).toEqual({
      hold: true,
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
    expect(isNothing(droppedRequirements(object))).toBe(true);
  });
});
