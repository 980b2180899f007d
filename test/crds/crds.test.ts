import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/model/json.ts";
import { normalizeMac } from "../../src/model/labels/hardware-ids.ts";
import { isPartName } from "../../src/model/objects/profile.ts";
import { compileCheck, patternFindings } from "../../src/sources/admission/check.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import { namesRule, readKindSchemas, type SchemaNode, toSchemaNode } from "../../src/sources/admission/schema.ts";
import { ajvOptions } from "../../src/sources/admission/validator.ts";
import { profileRef } from "./expression-specs.ts";
import { admitted, refusedByRules, refusedBySchema } from "./specs.ts";

const crds = await readCrds(packagedCrdsDirectory);
const specs = new Map(crds.flatMap(readKindSchemas).map(({ kind, spec }) => [kind, toSchemaNode(spec)]));
const checks = new Map([...specs].map(([kind, spec]) => [kind, compileCheck(spec)]));

interface Place {
  readonly path: string;
  readonly schema: JsonObject;
}

/** Every schema of a CRD with its path, from the root on. */
function places(crd: string): readonly Place[] {
  const { kind, schema } = versionOf(crd);
  return walk(kind, schema);
}

function versionOf(crd: string) {
  const { spec } = parse(crd);
  const [version] = spec.versions;
  return { kind: String(spec.names.kind), names: spec.names, version, schema: version.schema.openAPIV3Schema };
}

function walk(path: string, schema: JsonValue): readonly Place[] {
  if (!isJsonObject(schema)) return [];
  const properties = isJsonObject(schema.properties) ? Object.entries(schema.properties) : [];
  const inner = [
    ["[]", schema.items],
    ["*", schema.additionalProperties],
  ] as const;
  const below = [...properties, ...inner].flatMap(([name, child]) =>
    child === undefined ? [] : walk(`${path}.${name}`, child),
  );
  return [{ path, schema }, ...below];
}

it.each([...specs])("the schema of %s is one for ajv", (_kind, { json }) => {
  expect(new Ajv(ajvOptions).validateSchema(json)).toBe(true);
});

const allPlaces = crds.flatMap(places);

describe("every field of the CRDs", () => {
  it.each(["Profile.metadata", "Group.metadata", "Machine.metadata"])(
    "%s has a type alone, as the API server wants it",
    (path) => {
      expect(allPlaces.find((place) => place.path === path)?.schema).toEqual({ type: "object" });
    },
  );

  const described = allPlaces.filter(({ path }) => !/^[A-Z][a-z]+\.metadata$/.test(path));
  it.each(described)("$path has a type and a description that says more than its name", ({ schema }) => {
    expect(schema.type).toMatch(/^(?:object|array|string|integer|boolean)$/);
    expect(String(schema.description)).toMatch(/^(?:Always (?:Profile|Group|Machine)|[A-Z0-9a-z].{18,})\.$/s);
  });

  it.each(allPlaces.filter(({ path }) => !/\.(?:apiVersion|kind)$/.test(path)))("$path is bounded", ({ schema }) => {
    if (schema.type === "string") expect(schema.maxLength ?? schema.enum).toBeDefined();
    if (schema.type === "array") expect(schema.maxItems).toBeDefined();
    if (schema.additionalProperties !== undefined) expect(schema.maxProperties).toBeDefined();
    if (schema.type === "integer") expect(schema.minimum).toBeDefined();
  });

  it("with a pattern has words for it, and the pattern is one that RE2 reads alike", () => {
    const patterns = new Set(allPlaces.flatMap(({ schema }) => schema.pattern ?? []));
    expect(patterns.size).toBeGreaterThan(2);
    for (const pattern of patterns) {
      expect(Object.keys(patternFindings)).toContain(pattern);
      // No lookaround, no back reference, and no class whose meaning depends on the engine.
      expect(pattern).not.toMatch(/\(\?|\\[1-9bBdDsSwW]/);
    }
  });
});

describe("every object of a spec", () => {
  const named = allPlaces.flatMap(({ path, schema }) =>
    isJsonObject(schema.properties) && path.includes(".spec")
      ? [{ path, schema, names: Object.keys(schema.properties) }]
      : [],
  );
  it.each(named)("$path has the API server refuse a name that it does not have", ({ schema, names }) => {
    expect(schema["x-kubernetes-preserve-unknown-fields"]).toBe(true);
    expect(schema["x-kubernetes-validations"]).toContainEqual(namesRule(names));
  });
});

describe("the CRDs", () => {
  it.each([
    {
      kind: "Profile",
      shortNames: ["dprof"],
      columns: ["Ready", "Reason", "Effect", "Groups", "Kernel", "Configs", "Age"],
    },
    {
      kind: "Group",
      shortNames: ["dgrp"],
      columns: ["Ready", "Profile", "Selector", "Priority", "Hold", "Rendered", "Reason", "Age"],
    },
    {
      kind: "Machine",
      shortNames: ["dmach"],
      columns: ["MAC", "Group", "Profile", "Phase", "Install", "Seen", "UUID", "Address", "Rendered"],
    },
  ])("of $kind have short names, a category, columns and a status of their own", ({ kind, shortNames, columns }) => {
    const found = crds.map(versionOf).find((crd) => crd.kind === kind);
    expect(found?.names).toMatchObject({ shortNames, categories: ["davit"] });
    expect(found?.version).toMatchObject({
      name: "v1alpha1",
      served: true,
      storage: true,
      subresources: { status: {} },
    });
    expect(found?.version.additionalPrinterColumns.map((column: { name: string }) => column.name)).toEqual(columns);
  });

  it("have rules that use has, in, size, all and matches only", () => {
    for (const rule of rulesOf([...specs.values()]).map(({ rule }) => rule)) {
      const code = rule.replaceAll(/"[^"]*"/g, '""');
      const called = [...code.matchAll(/([A-Za-z]+)\(/g)].map(([, name]) => name);
      expect(["has", "size", "all", "matches"]).toEqual(expect.arrayContaining(called));
      expect(code).not.toMatch(/[?<*/%+]|oldSelf/);
    }
  });
});

describe("the rules", () => {
  it.each(admitted)("admit the $kind $spec", ({ kind, spec }) => {
    expect(checks.get(kind)?.(spec)).toMatchObject({ kind: "good" });
  });

  it.each(refusedByRules)("refuse the $kind $spec with a message of their own", ({ kind, spec, message }) => {
    const checked = checks.get(kind)?.(spec);
    expect(checked).toMatchObject({ kind: "bad" });
    expect(checked?.kind === "bad" && checked.findings.map(({ text }) => text)).toContain(message);
  });

  it("are each refused by an object above", () => {
    expect(new Set(refusedByRules.map(({ message }) => message))).toEqual(
      new Set(rulesOf([...specs.values()]).map(({ message }) => message)),
    );
  });

  it("admit a name of a generic part exactly when its path is one that davit knows", () => {
    const check = checks.get("Profile");
    const name = fc.oneof(
      fc.stringMatching(/^[-.a-z0-9]{1,8}$/),
      fc.stringMatching(/^[a-z]{1,3}\.(sig|asc|s)$/),
      fc.string({ minLength: 1, maxLength: 70 }),
      fc.integer({ min: 60, max: 66 }).map((length) => "x".repeat(length)),
    );
    fc.assert(
      fc.property(name, (each) => {
        const isAdmitted = check?.({ genericParts: [{ name: each, inline: "x" }] }).kind === "good";
        expect(isAdmitted).toBe(isPartName(each));
      }),
    );
  });

  it("admit a MAC exactly when it can be normalised", () => {
    const separated = fc
      .record({
        mark: fc.constantFrom(":", "-", ".", ""),
        digits: fc.constantFrom(2, 4, 12, 16),
        count: fc.constantFrom(1, 3, 4, 5, 6, 8, 10, 20),
      })
      .chain(({ mark, digits, count }) =>
        fc
          .array(fc.stringMatching(new RegExp(`^[0-9a-fA-F]{${digits}}$`)), { minLength: count, maxLength: count })
          .map((groups) => groups.join(mark)),
      );
    const check = checks.get("Group");
    fc.assert(
      fc.property(fc.oneof(separated, fc.stringMatching(/^[-:.0-9a-f]{1,60}$/)), (mac) => {
        fc.pre(mac.length <= 253);
        const isAdmitted = check?.({ profileRef, selector: { matchLabels: { mac } } }).kind === "good";
        expect(isAdmitted).toBe(normalizeMac(mac) !== undefined);
      }),
    );
  });
});

it.each(refusedBySchema)("the schema of $kind refuses what $text", ({ kind, spec, text }) => {
  const checked = checks.get(kind)?.(spec);
  expect(checked?.kind === "bad" && checked.findings.map((finding) => finding.text).join("\n")).toContain(text);
});

function rulesOf(nodes: readonly SchemaNode[]): readonly { readonly rule: string; readonly message: string }[] {
  return nodes.flatMap((node) => [
    ...node.rules,
    ...rulesOf([
      ...node.properties.values(),
      ...(node.items ? [node.items] : []),
      ...(node.values ? [node.values] : []),
    ]),
  ]);
}
