/** What the schemas bound, and how kubectl shows and merges the objects. The rules are in crds.test.ts. */

import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { JsonObject } from "../../src/model/json.ts";
import { type Check, compileCheck } from "../../src/sources/admission/check.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import { readKindSchemas, toSchemaNode } from "../../src/sources/admission/schema.ts";
import { bounds, controlCharacters, label, labels, plainTexts, refusedPlaces } from "./specs.ts";

const crds = await readCrds(packagedCrdsDirectory);
const checks = new Map<string, Check>(
  crds.flatMap(readKindSchemas).map(({ kind, spec }) => [kind, compileCheck(toSchemaNode(spec))]),
);

function isAdmitted(kind: string, spec: JsonObject): boolean {
  return checks.get(kind)?.(spec).kind === "good";
}

describe("a text without control characters", () => {
  it.each(plainTexts)("is what %s has to be", (_place, kind, specOf) => {
    expect(isAdmitted(kind, specOf("a-b"))).toBe(true);
    for (const control of controlCharacters) expect(isAdmitted(kind, specOf(`a${control}b`))).toBe(false);
  });
});

describe("the bound of", () => {
  it.each(bounds)("%s is the last that is admitted", (_place, kind, most, more) => {
    expect(isAdmitted(kind, most)).toBe(true);
    expect(isAdmitted(kind, more)).toBe(false);
  });

  it.each(refusedPlaces)("no field lets %s through", (_place, kind, spec) => {
    expect(isAdmitted(kind, spec)).toBe(false);
  });
});

it("an absent priority is 0", () => {
  expect(checks.get("Group")?.(label("x"))).toMatchObject({ value: { priority: 0 } });
});

it.each(["constructor", "toString", "valueOf", "hasOwnProperty", "prototype"])(
  "`%s` is a label like any other, and its rules still hold",
  (name) => {
    expect(isAdmitted("Group", labels({ [name]: "x" }))).toBe(true);
    expect(isAdmitted("Group", labels({ [name]: "x", mac: "52:54" }))).toBe(false);
    expect(isAdmitted("Group", { ...labels({ [name]: "x" }), matchAll: true })).toBe(false);
  },
);

interface Shown {
  readonly names: JsonObject;
  readonly scope: string;
  readonly version: {
    readonly selectableFields?: readonly { readonly jsonPath: string }[];
    readonly additionalPrinterColumns: readonly { readonly name: string; readonly priority?: number }[];
  };
  readonly schema: JsonObject;
}

function shown(kind: string): Shown {
  const found = crds.map((text) => parse(text).spec).find((spec) => spec.names.kind === kind);
  const [version] = found.versions;
  return { names: found.names, scope: found.scope, version, schema: version.schema.openAPIV3Schema };
}

/** A place of a CRD's schema, by its path through properties. */
function at(kind: string, path: string): JsonObject {
  return path.split(".").reduce((node, name) => {
    const child = Object.entries(node.properties ?? {}).find(([property]) => property === name)?.[1];
    if (typeof child !== "object") throw new Error(`The schema of ${kind} has ${path}`);
    return child;
  }, shown(kind).schema);
}

describe("the CRD of", () => {
  it.each([
    { kind: "Profile", columns: ["Kernel", "Configs"] },
    { kind: "Group", columns: ["Reason"] },
    { kind: "Machine", columns: ["UUID", "Address", "Rendered"] },
  ])("$kind is namespaced, and shows only its wide columns with -o wide", ({ kind, columns }) => {
    const { scope, names: called, version } = shown(kind);
    expect(scope).toBe("Namespaced");
    expect(called.categories).not.toContain("all");
    const wide = version.additionalPrinterColumns.filter(({ priority }) => priority === 1).map(({ name }) => name);
    expect(wide).toEqual(columns);
  });

  it("Group can be selected by its Profile's name, Profile by no field", () => {
    expect(shown("Group").version.selectableFields).toEqual([{ jsonPath: ".spec.profileRef.name" }]);
    expect(shown("Profile").version.selectableFields).toBeUndefined();
  });

  it("Profile has room in its status for the configs of one that has all of them", () => {
    const parts = Array.from({ length: 32 }, () => `generic/${"x".repeat(63)}`);
    const longest = ["ipxe", "ignition", "cloud", "generic", ...parts].join(",");
    expect(Number(at("Profile", "status.configs").maxLength)).toBeGreaterThanOrEqual(longest.length);
  });

  it.each([
    { kind: "Profile", path: "spec.boot.initrd", listType: "atomic" },
    { kind: "Profile", path: "spec.boot.args", listType: "atomic" },
    { kind: "Profile", path: "status.conditions", listType: "map" },
    { kind: "Profile", path: "spec.genericParts", listType: "map", key: "name" },
    { kind: "Group", path: "status.conditions", listType: "map" },
    { kind: "Machine", path: "spec.identity.macs", listType: "atomic" },
    { kind: "Machine", path: "status.conditions", listType: "map" },
  ])("$kind merges $path as $listType", ({ kind, path, listType, key = "type" }) => {
    const list = at(kind, path);
    expect(list["x-kubernetes-list-type"]).toBe(listType);
    expect(list["x-kubernetes-list-map-keys"]).toEqual(listType === "map" ? [key] : undefined);
  });

  it.each([
    { kind: "Group", path: "spec.profileRef" },
    { kind: "Profile", path: "spec.ignition.templateFrom.configMapKeyRef" },
    { kind: "Profile", path: "spec.cloudConfig.templateFrom.secretKeyRef" },
    { kind: "Profile", path: "spec.generic.templateFrom.configMapKeyRef" },
  ])("$kind replaces the reference $path as a whole, and has no namespace in it", ({ kind, path }) => {
    const reference = at(kind, path);
    expect(reference["x-kubernetes-map-type"]).toBe("atomic");
    expect(Object.keys(reference.properties ?? {})).not.toContain("namespace");
  });

  it.each(["Profile", "Group", "Machine"])(
    "%s has the conditions of metav1.Condition and observedGeneration",
    (kind) => {
      const { items } = at(kind, "status.conditions");
      expect(items).toMatchObject({ required: ["type", "status", "lastTransitionTime", "reason", "message"] });
      expect(at(kind, "status.observedGeneration").type).toBe("integer");
      // A Machine's phase is that of an install, which conditions cannot show in one word.
      if (kind !== "Machine") expect(Object.keys(at(kind, "status").properties ?? {})).not.toContain("phase");
    },
  );
});
