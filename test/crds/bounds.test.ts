/** What the schemas bound, and how kubectl shows and merges the objects. The rules are in crds.test.ts. */

import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Check, compileCheck } from "../../src/admission/check.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/admission/crds.ts";
import { readKindSchemas, toSchemaNode } from "../../src/admission/schema.ts";
import type { JsonObject, JsonValue } from "../../src/model/json.ts";

const crds = await readCrds(packagedCrdsDirectory);
const checks = new Map<string, Check>(
  crds.flatMap(readKindSchemas).map(({ kind, spec }) => [kind, compileCheck(toSchemaNode(spec))]),
);

function isAdmitted(kind: string, spec: JsonObject): boolean {
  return checks.get(kind)?.(spec).kind === "good";
}

const profileRef = { name: "web" };
const labels = (matchLabels: Readonly<Record<string, JsonValue>>): JsonObject => ({
  profileRef,
  selector: { matchLabels },
});
const label = (value: string): JsonObject => labels({ serial: value });
const boot = (part: JsonObject): JsonObject => ({ boot: { kernel: "k", ...part } });
const fromConfigMap = (ref: JsonObject): JsonObject => ({ generic: { templateFrom: { configMapKeyRef: ref } } });
const times = <Value>(count: number, value: Value) => Array.from({ length: count }, () => value);
const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, "x"]));

describe("a text without control characters", () => {
  const texts: readonly [place: string, kind: string, specOf: (text: string) => JsonObject][] = [
    ["a Profile's displayName", "Profile", (text) => ({ displayName: text, boot: { local: "exit" } })],
    ["kernel", "Profile", (text) => boot({ kernel: text })],
    ["an initrd", "Profile", (text) => boot({ initrd: [text] })],
    ["an argument", "Profile", (text) => boot({ args: [text] })],
    ["a Group's displayName", "Group", (text) => ({ displayName: text, profileRef, matchAll: true })],
    ["a selector's value", "Group", label],
    ["a selector's key", "Group", (text) => labels({ [text]: "x" })],
  ];
  const controls = [...Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)), "\u007f"];

  it.each(texts)("is what %s has to be", (_place, kind, specOf) => {
    expect(isAdmitted(kind, specOf("a-b"))).toBe(true);
    for (const control of controls) expect(isAdmitted(kind, specOf(`a${control}b`))).toBe(false);
  });
});

describe("the bound of", () => {
  it.each<[place: string, kind: string, most: JsonObject, more: JsonObject]>([
    ["kernel", "Profile", boot({ kernel: "x".repeat(2048) }), boot({ kernel: "x".repeat(2049) })],
    ["an initrd", "Profile", boot({ initrd: ["x".repeat(2048)] }), boot({ initrd: ["x".repeat(2049)] })],
    ["the initrds", "Profile", boot({ initrd: times(32, "x") }), boot({ initrd: times(33, "x") })],
    ["an argument", "Profile", boot({ args: ["x".repeat(4096)] }), boot({ args: ["x".repeat(4097)] })],
    ["the arguments", "Profile", boot({ args: times(256, "x") }), boot({ args: times(257, "x") })],
    [
      "inline text",
      "Profile",
      { ignition: { inline: "x".repeat(131_072) } },
      { ignition: { inline: "x".repeat(131_073) } },
    ],
    [
      "a reference's key",
      "Profile",
      fromConfigMap({ name: "a", key: "k".repeat(253) }),
      fromConfigMap({ name: "a", key: "k".repeat(254) }),
    ],
    [
      "a reference's name",
      "Profile",
      fromConfigMap({ name: "a".repeat(253), key: "k" }),
      fromConfigMap({ name: "a".repeat(254), key: "k" }),
    ],
    [
      "profileRef.name",
      "Group",
      { profileRef: { name: "a".repeat(253) }, matchAll: true },
      { profileRef: { name: "a".repeat(254) }, matchAll: true },
    ],
    ["the labels", "Group", labels(names(16)), labels(names(17))],
    ["a label's value", "Group", label("x".repeat(253)), label("x".repeat(254))],
    ["a label's key", "Group", labels({ ["k".repeat(63)]: "x" }), labels({ ["k".repeat(64)]: "x" })],
    ["priority", "Group", { ...label("x"), priority: 1000 }, { ...label("x"), priority: 1001 }],
    ["metadata", "Group", { ...label("x"), metadata: names(256) }, { ...label("x"), metadata: names(257) }],
  ])("%s is the last that is admitted", (_place, kind, most, more) => {
    expect(isAdmitted(kind, most)).toBe(true);
    expect(isAdmitted(kind, more)).toBe(false);
  });

  it.each<[place: string, kind: string, spec: JsonObject]>([
    ["an empty kernel", "Profile", boot({ kernel: "" })],
    ["an empty initrd", "Profile", boot({ initrd: [""] })],
    ["an empty argument", "Profile", boot({ args: [""] })],
    ["an empty inline text", "Profile", { generic: { inline: "" } }],
    ["an empty label value", "Group", label("")],
    ["a label value that is a number", "Group", labels({ rack: 7 })],
    ["a Profile of another namespace", "Group", { profileRef: { name: "a", namespace: "b" }, matchAll: true }],
    ["a ConfigMap of another namespace", "Profile", fromConfigMap({ name: "a", key: "k", namespace: "b" })],
    ["a priority that is no whole number", "Group", { ...label("x"), priority: 0.5 }],
    ["metadata that is no object", "Group", { ...label("x"), metadata: "x" }],
  ])("no field lets %s through", (_place, kind, spec) => {
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
  it.each(["Profile", "Group"])("%s is namespaced, and shows only its wide columns with -o wide", (kind) => {
    const { scope, names: called, version } = shown(kind);
    expect(scope).toBe("Namespaced");
    expect(called.categories).not.toContain("all");
    const wide = version.additionalPrinterColumns.filter(({ priority }) => priority === 1).map(({ name }) => name);
    expect(wide).toEqual(kind === "Profile" ? ["Kernel", "Configs"] : ["Reason"]);
  });

  it("Group can be selected by its Profile's name, Profile by no field", () => {
    expect(shown("Group").version.selectableFields).toEqual([{ jsonPath: ".spec.profileRef.name" }]);
    expect(shown("Profile").version.selectableFields).toBeUndefined();
  });

  it.each([
    { kind: "Profile", path: "spec.boot.initrd", listType: "atomic" },
    { kind: "Profile", path: "spec.boot.args", listType: "atomic" },
    { kind: "Profile", path: "status.conditions", listType: "map" },
    { kind: "Group", path: "status.conditions", listType: "map" },
  ])("$kind merges $path as $listType", ({ kind, path, listType }) => {
    const list = at(kind, path);
    expect(list["x-kubernetes-list-type"]).toBe(listType);
    expect(list["x-kubernetes-list-map-keys"]).toEqual(listType === "map" ? ["type"] : undefined);
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

  it.each(["Profile", "Group"])("%s has the conditions of metav1.Condition and observedGeneration", (kind) => {
    const { items } = at(kind, "status.conditions");
    expect(items).toMatchObject({ required: ["type", "status", "lastTransitionTime", "reason", "message"] });
    expect(at(kind, "status.observedGeneration").type).toBe("integer");
    expect(Object.keys(at(kind, "status").properties ?? {})).not.toContain("phase");
  });
});
