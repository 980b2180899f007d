import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { compileCheck, patternTexts } from "../../src/admission/check.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/admission/crds.ts";
import { readKindSchemas, type SchemaNode, toSchemaNode } from "../../src/admission/schema.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/model/json.ts";
import { normalizeMac } from "../../src/model/labels.ts";

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

const allPlaces = crds.flatMap(places);

describe("every field of the CRDs", () => {
  it.each(["Profile.metadata", "Group.metadata"])("%s has a type alone, as the API server wants it", (path) => {
    expect(allPlaces.find((place) => place.path === path)?.schema).toEqual({ type: "object" });
  });

  const described = allPlaces.filter(({ path }) => !/^[A-Z][a-z]+\.metadata$/.test(path));
  it.each(described)("$path has a type and a description that says more than its name", ({ schema }) => {
    expect(schema.type).toMatch(/^(?:object|array|string|integer|boolean)$/);
    expect(String(schema.description)).toMatch(/^(?:Always (?:Profile|Group)|[A-Z0-9a-z].{18,})\.$/s);
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
      expect(Object.keys(patternTexts)).toContain(pattern);
      // No lookaround, no back reference, and no class whose meaning depends on the engine.
      expect(pattern).not.toMatch(/\(\?|\\[1-9bBdDsSwW]/);
    }
  });
});

describe("the CRDs", () => {
  it.each([
    { kind: "Profile", shortNames: ["dprof"], columns: ["Ready", "Reason", "Groups", "Kernel", "Configs", "Age"] },
    { kind: "Group", shortNames: ["dgrp"], columns: ["Ready", "Profile", "Selector", "Priority", "Reason", "Age"] },
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

const profileRef = { name: "web" };
const good: Readonly<Record<string, readonly JsonObject[]>> = {
  Profile: [
    { boot: { kernel: "/assets/vmlinuz", initrd: ["a"], args: ["b"], efiInitrd: true } },
    { boot: { local: "sanboot" } },
    {
      ignition: { inline: "{}" },
      generic: { templateFrom: { secretKeyRef: { name: "a.b-c", key: "K_1.x" } }, raw: true },
    },
  ],
  Group: [
    { profileRef, matchAll: true, priority: 0 },
    { profileRef, selector: { matchLabels: { mac: "52:54:00:a1:9c:ae", Role_1: "A b/ü" } }, priority: 1000 },
    { profileRef, matchAll: false, selector: { matchLabels: { uuid: "4C4C4544-0042-3510-8052-b4c04f4e4a32" } } },
  ],
};

const bad: readonly { readonly kind: string; readonly spec: JsonObject; readonly message: string }[] = [
  { kind: "Profile", spec: {}, message: "set at least one of boot, ignition, cloudConfig and generic" },
  { kind: "Profile", spec: { boot: {} }, message: "set exactly one of kernel and local" },
  { kind: "Profile", spec: { boot: { kernel: "a", local: "exit" } }, message: "set exactly one of kernel and local" },
  ...[{ initrd: ["a"] }, { args: ["a"] }, { efiInitrd: false }].map((extra) => ({
    kind: "Profile",
    spec: { boot: { local: "exit", ...extra } },
    message: "local boots from disk: remove initrd, args and efiInitrd",
  })),
  ...["ignition", "cloudConfig", "generic"].flatMap((part) => [
    { kind: "Profile", spec: { [part]: {} }, message: "set exactly one of inline and templateFrom" },
    {
      kind: "Profile",
      spec: { [part]: { templateFrom: {} } },
      message: "set exactly one of configMapKeyRef and secretKeyRef",
    },
  ]),
  ...[
    {},
    { selector: {} },
    { selector: { matchLabels: {} } },
    { matchAll: false },
    { matchAll: true, selector: { matchLabels: { a: "b" } } },
  ].map((spec) => ({
    kind: "Group",
    spec: { profileRef, ...spec },
    message: "set exactly one of a non-empty selector.matchLabels and matchAll: true",
  })),
  {
    kind: "Group",
    spec: { profileRef, matchAll: true, priority: 1 },
    message: "a matchAll group comes last: remove priority",
  },
  ...["", "a b", "-a", "a-", "ä", "a".repeat(64), "__proto__"].map((key) => ({
    kind: "Group",
    spec: { profileRef, selector: { matchLabels: Object.fromEntries([[key, "x"]]) } },
    message:
      "keys are 1 to 63 letters, digits, hyphens, underscores and dots, beginning and ending with a letter or digit",
  })),
  ...["UUID", "Mac", "hostName", "SERIAL", "Domain", "aRCH"].map((key) => ({
    kind: "Group",
    spec: { profileRef, selector: { matchLabels: { [key]: "x" } } },
    message: "write uuid, mac, hostname, serial, domain and arch in lower case",
  })),
  {
    kind: "Group",
    spec: { profileRef, selector: { matchLabels: { mac: "52:54:00-a1-9c-ae" } } },
    message: 'mac must be a MAC address such as "52:54:00:a1:9c:ae"',
  },
  {
    kind: "Group",
    spec: { profileRef, selector: { matchLabels: { uuid: "4c4c4544" } } },
    message: 'uuid must be a UUID such as "4c4c4544-0042-3510-8052-b4c04f4e4a32"',
  },
];

describe("the rules", () => {
  it.each(Object.entries(good).flatMap(([kind, list]) => list.map((spec) => ({ kind, spec }))))(
    "admit the $kind $spec",
    ({ kind, spec }) => {
      expect(checks.get(kind)?.(spec)).toMatchObject({ kind: "good" });
    },
  );

  it.each(bad)("refuse the $kind $spec with a message of their own", ({ kind, spec, message }) => {
    const checked = checks.get(kind)?.(spec);
    expect(checked).toMatchObject({ kind: "bad" });
    expect(checked?.kind === "bad" && checked.findings.map(({ text }) => text)).toContain(message);
  });

  it("are each refused by an object above", () => {
    expect(new Set(bad.map(({ message }) => message))).toEqual(
      new Set(rulesOf([...specs.values()]).map(({ message }) => message)),
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

it.each([
  { kind: "Profile", spec: { boot: { kernel: "a\nb" } }, text: "has a control character" },
  { kind: "Profile", spec: { boot: { kernel: "k", args: ["a\nimgfetch x"] } }, text: "has a control character" },
  { kind: "Profile", spec: { boot: { kernel: "k", args: Array(257).fill("a") } }, text: "has more than 256 entries" },
  { kind: "Profile", spec: { boot: { kernel: "" } }, text: "is empty" },
  { kind: "Profile", spec: { boot: { local: "disk" } }, text: "must be one of exit, sanboot, notFound" },
  { kind: "Profile", spec: { generic: { inline: "x".repeat(131_073) } }, text: "is longer than 131072 characters" },
  { kind: "Profile", spec: { generic: { templateFrom: { secretKeyRef: { name: "a" } } } }, text: "is missing" },
  {
    kind: "Profile",
    spec: { generic: { templateFrom: { secretKeyRef: { name: "A", key: "k" } } } },
    text: "is no name",
  },
  {
    kind: "Profile",
    spec: { generic: { templateFrom: { secretKeyRef: { name: "a", key: "/" } } } },
    text: "is no key",
  },
  { kind: "Group", spec: { profileRef, matchAll: true, priority: 1001 }, text: "must be 1000 or less" },
  { kind: "Group", spec: { profileRef, matchAll: true, priority: -1 }, text: "must be 0 or more" },
  { kind: "Group", spec: { profileRef, matchAll: true, priority: 1.5 }, text: "must be a whole number" },
  { kind: "Group", spec: { profileRef, matchAll: "true" }, text: "must be true or false" },
  { kind: "Group", spec: { profileRef, matchAll: true, metadata: [] }, text: "must be an object" },
  { kind: "Group", spec: { profileRef, matchAll: true, metadata: manyNames(257) }, text: "has more than 256 names" },
  { kind: "Group", spec: { matchAll: true }, text: "is missing" },
  { kind: "Group", spec: { profileRef, selector: { matchLabels: { flag: "" } } }, text: "is empty" },
  {
    kind: "Group",
    spec: { profileRef, selector: { matchLabels: { n1: 5 } } },
    text: "must be text: write it in quotes",
  },
  { kind: "Group", spec: { profileRef, selector: { matchLabels: manyNames(17) } }, text: "has more than 16 names" },
])("the schema of $kind refuses what $text", ({ kind, spec, text }) => {
  const checked = checks.get(kind)?.(spec);
  expect(checked?.kind === "bad" && checked.findings.map((finding) => finding.text).join("\n")).toContain(text);
});

function manyNames(count: number): JsonObject {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, "x"]));
}

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
