import { describe, expect, it } from "vitest";
import type { SourceObject } from "../../../src/model/objects/source.ts";
import { Admission } from "../../../src/sources/admission/admission.ts";
import { packagedCrdsDirectory, readCrds } from "../../../src/sources/admission/crds.ts";
import { readFileBytes } from "../../../src/sources/directory/read-file.ts";
import { groupText, profileText, stream } from "./manifests.ts";

const admission = new Admission(await readCrds(packagedCrdsDirectory));

function read(text: string | Uint8Array, path = "a.yaml") {
  return readFileBytes(path, typeof text === "string" ? new TextEncoder().encode(text) : text, admission);
}

function objects(text: string, path?: string): readonly SourceObject[] {
  const { definitions, problems } = read(text, path);
  expect(problems).toEqual([]);
  return definitions.flatMap((definition) => (definition.kind === "accepted" ? [definition.object] : []));
}

function messages(text: string | Uint8Array, path?: string): readonly string[] {
  return read(text, path).problems.map(({ message }) => message);
}

const valid = "  selector: {matchLabels: {role: a}}";

it("a Profile becomes its typed object", () => {
  const spec = `  displayName: Web
  boot:
    kernel: /assets/{{ version }}/vmlinuz
    initrd: [a, a]
    args: ["ip=dhcp", "b"]
    efiInitrd: true
  ignition: {inline: "{}", raw: true}
  cloudConfig: {templateFrom: {configMapKeyRef: {name: texts, key: worker.yaml}}}
  generic: {templateFrom: {secretKeyRef: {name: tokens, key: TOKEN}}}
  genericParts:
    - {name: user-data, templateFrom: {secretKeyRef: {name: tokens, key: USER}}}
    - {name: a.json, inline: "[]", raw: true, format: json}`;
  expect(objects(profileText("web", spec))).toEqual([
    {
      kind: "Profile",
      namespace: "default",
      name: "web",
      uid: "directory/Profile/default/web",
      generation: 1,
      origin: "a.yaml, document 1 (line 1)",
      spec: {
        displayName: "Web",
        boot: {
          kind: "kernel",
          kernel: "/assets/{{ version }}/vmlinuz",
          initrd: ["a", "a"],
          args: ["ip=dhcp", "b"],
          efiInitrd: true,
        },
        templates: {
          ignition: { kind: "inline", text: "{}", raw: true },
          cloudConfig: { kind: "configMap", name: "texts", key: "worker.yaml", raw: false },
          generic: { kind: "secret", name: "tokens", key: "TOKEN", raw: false },
          "generic/user-data": { kind: "secret", name: "tokens", key: "USER", raw: false },
          "generic/a.json": { kind: "inline", text: "[]", raw: true, format: "json" },
        },
      },
    },
  ]);
});

it.each([
  { boot: "{script: '#!ipxe'}", spec: { boot: { kind: "script", script: "#!ipxe" } } },
  { boot: "{grubScript: exit}", spec: { grubScript: "exit" } },
  {
    boot: "{script: '#!ipxe', grubScript: exit}",
    spec: { boot: { kind: "script", script: "#!ipxe" }, grubScript: "exit" },
  },
])("scripts of a Profile's own: $boot", ({ boot, spec }) => {
  const [profile] = objects(profileText("web", `  boot: ${boot}\n  metadata: {a: {b: 1}}`));
  expect(profile).toMatchObject({ spec: { metadata: { a: { b: 1 } }, templates: {} } });
  expect({ ...profile }).toHaveProperty("spec", { metadata: { a: { b: 1 } }, templates: {}, ...spec });
});

it("a Group's arguments are its own, and none are none", () => {
  const [some, none] = objects(
    stream(groupText("a", "  matchAll: true\n  args: [a, '{{b}}']"), groupText("b", "  matchAll: true\n  args: []")),
  );
  expect(some).toHaveProperty("spec.args", ["a", "{{b}}"]);
  expect(none).not.toHaveProperty("spec.args");
});

it("a Group becomes its typed object, normalised and with defaults", () => {
  const spec = `  displayName: One
  hold: true
  selector: {matchLabels: {mac: 5254.00A1.9CAE, uuid: 4C4C4544-0042-3510-8052-B4C04F4E4A32, serial: "A B"}}
  metadata: {n1: 1, list: [true, null], deep: {__proto__: x, constructor: z}}`;
  const [group] = objects(groupText("one", spec));
  expect(group).toMatchObject({
    spec: {
      displayName: "One",
      profile: "web",
      selector: { mac: "52:54:00:a1:9c:ae", uuid: "4c4c4544-0042-3510-8052-b4c04f4e4a32", serial: "A B" },
      matchAll: false,
      priority: 0,
      hold: true,
    },
  });
  expect(JSON.stringify(group)).toContain(
    '"metadata":{"n1":1,"list":[true,null],"deep":{"__proto__":"x","constructor":"z"}}',
  );
});

it("nulls of declared fields are absent fields, as on the API server", () => {
  const [group] = objects(groupText("all", "  selector:\n  matchAll: true\n  priority:"));
  expect(group).toMatchObject({ spec: { matchAll: true, priority: 0, selector: {} } });
});

it("ConfigMaps and Secrets give texts; stringData wins, and what is not UTF-8 is left out", () => {
  const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: racks}\ndata: {a.txt: x}\n";
  const secret = `apiVersion: v1
kind: Secret
metadata: {name: s, labels: {davit.dev/allow-template: "true"}}
type: Opaque
data: {a: eA==, b: "/w==", c: "aGVs\\nbG8="}
stringData: {a: over}
`;
  const [first, second, third] = objects(stream(configMap, secret, secret.replace('"true"', '"no"')));
  expect(first).toMatchObject({ kind: "ConfigMap", namespace: "racks", data: { "a.txt": "x" } });
  expect(second).toMatchObject({ kind: "Secret", data: { a: "over", c: "hello" }, allowsTemplate: true });
  expect(third).toMatchObject({ allowsTemplate: false });
});

it("items of a List are objects, each with its own line", () => {
  const list = `apiVersion: v1
kind: List
items:
  - {apiVersion: davit.dev/v1alpha1, kind: Group, metadata: {name: a}, spec: {profileRef: {name: p}, matchAll: true}}
  - apiVersion: davit.dev/v1alpha1
    kind: Group
    metadata: {name: b}
    spec: {profileRef: {name: p}, priority: 3}
`;
  const { definitions, problems } = read(list);
  expect(definitions.map(({ kind }) => kind)).toEqual(["accepted", "refused"]);
  expect(problems[0]).toEqual({
    origin: "a.yaml, document 1 (line 5)",
    message: "Group default/b, spec (line 8): set exactly one of a non-empty selector and matchAll: true",
    code: "broken-rule",
    file: "a.yaml",
    at: { line: 8, column: 5 },
    text: "Group default/b, spec: set exactly one of a non-empty selector and matchAll: true",
  });
});

it("JSON is read by JSON's rules", () => {
  const group = {
    apiVersion: "davit.dev/v1alpha1",
    kind: "Group",
    metadata: { name: "a", creationTimestamp: null },
    spec: { profileRef: { name: "p" }, selector: { matchLabels: { role: "yes" } }, metadata: { n: 1e3 } },
    status: { conditions: [] },
  };
  expect(objects(JSON.stringify(group, null, 2), "a.json")).toHaveLength(1);
  expect(messages('{"kind": yes}', "a.json")).toEqual([
    "The file cannot be read at line 1, column 10: " +
      "a value has an unknown tag, or text without quotes in JSON: remove the tag or add the quotes",
  ]);
});

it("anchors and merge keys mean what they mean to kubectl", () => {
  const spec = "  selector: &s {matchLabels: {role: a}}\n  metadata: {<<: *s, more: 1}";
  expect(objects(groupText("a", spec))).toMatchObject([
    { spec: { metadata: { matchLabels: { role: "a" }, more: 1 } } },
  ]);
});

it("empty documents beside others, and documents of other groups, are no problem", () => {
  const { definitions, problems, ignored } = read(
    "---\n# nothing\n---\napiVersion: apps/v1\nkind: Deployment\nn: y\n---\n",
  );
  expect({ definitions, problems }).toEqual({ definitions: [], problems: [] });
  expect(ignored.map(({ place }) => place)).toEqual(["document 2 (line 4)"]);
});

it.each([
  { name: "bytes that are not UTF-8", text: Uint8Array.of(0x61, 0xff, 0xfe), says: "The file is not UTF-8 text" },
  { name: "a NUL", text: "a: \0", says: "The file is not UTF-8 text" },
  {
    name: "a comma is missing in braces",
    text: "spec: {a: 1 b: 2}\n",
    says: "a comma is missing inside brackets or braces",
  },
  {
    name: "a comma is missing at a line's end in braces",
    text: "spec: {\n  a: x\n  b: y\n}\n",
    says: "is a colon missing, or a comma inside braces?",
  },
  {
    name: "an open bracket",
    text: "a: [1",
    says: "line 1, column 6: the indentation does not fit the lines above, or a bracket",
  },
  { name: "a tab", text: "a:\n\tb: 1", says: "line 2, column 1: a line is indented with a tab" },
  { name: "a key twice", text: "a: 1\na: 2", says: "line 2, column 1: a key occurs twice" },
  { name: "an unknown tag", text: "a: !vault x", says: "line 1, column 4: a value has an unknown tag" },
  { name: "an alias to nothing", text: "a: *b", says: "line 1, column 4: an alias (*name) has no anchor" },
  {
    name: "an alias to what comes later",
    text: "a: &x 1\nb: [*x,\n  *c]\nc: &c 2",
    says: "line 3, column 3: an alias (*name) has no anchor",
  },
  { name: "a merge of what it stands in", text: "a: &a\n  <<: *a\n", says: "line 2, column 7: an alias (*name)" },
  { name: "a bomb of aliases", text: bomb(), says: "or there are too many" },
])("a file with $name is refused as a whole", ({ text, says }) => {
  const [message, ...more] = messages(text);
  expect(message).toContain(says);
  expect(more).toEqual([]);
});

describe("an alias of what it stands in", () => {
  const text = "is an alias (*name) of what it stands in, which would never end: write the value out";
  const where = "Group default/a, spec.metadata";
  const told = (spec: string) => read(groupText("a", `${valid}\n${spec}`)).problems.map((each) => [each.at, each.text]);

  it.each([
    { name: "in a list", spec: "  metadata:\n    b: &b [1, *b]", at: { line: 8, column: 15 } },
    { name: "in an object", spec: "  metadata: &b\n    c: {d: 1, e: *b}", at: { line: 8, column: 18 } },
    { name: "by the newer of two anchors", spec: "  metadata: {b: &b 1, c: &b [2, *b]}", at: { line: 7, column: 33 } },
  ])("$name is told where it is written, and once", ({ spec, at }) => {
    expect(told(spec)).toEqual([[at, `${where}: ${text}`]]);
  });

  it("is none where its anchor is closed, or another by then", () => {
    expect(told("  metadata: {b: &b [1], c: [*b, *b], d: &b {e: &b 2, f: *b}}")).toEqual([]);
  });

  it("is told of each document that has one", () => {
    const documents = ["a", "b"].map((name) => groupText(name, `${valid}\n  metadata: {x: &x [*x]}`));
    expect(read(documents.join("---\n")).problems.map(({ at }) => at)).toEqual([
      { line: 7, column: 21 },
      { line: 15, column: 21 },
    ]);
  });

  it("in an object of others is no problem", () => {
    expect(read("apiVersion: apps/v1\nkind: Deployment\nx: &x [*x]").problems).toEqual([]);
  });
});

it.each([
  { name: "no object", text: "- a", says: "Document (line 1): is no Kubernetes object" },
  { name: "no apiVersion", text: "kind: Group", says: "Document, apiVersion (line 1): is missing" },
  { name: "no kind", text: "apiVersion: v1", says: "Document, kind (line 1): is missing" },
  {
    name: "an unknown kind",
    text: "apiVersion: davit.dev/v1alpha1\nkind: Host",
    says: "kind (line 2): is no kind of davit.dev",
  },
  {
    name: "an unknown version",
    text: groupText("a").replace("1alpha1", "1"),
    says: "apiVersion (line 1): is no version",
  },
  {
    name: "no metadata",
    text: "apiVersion: v1\nkind: Secret",
    says: "Document, metadata (line 1): is missing: add it",
  },
  {
    name: "a bad name",
    text: groupText("A_b", valid),
    says: "Document, metadata.name (line 3): is no name of an object",
  },
  {
    name: "a bad namespace",
    text: groupText("a, namespace: a.b", valid),
    says: "metadata.namespace (line 3): is no namespace",
  },
  {
    name: "a number as name",
    text: groupText("12", valid),
    says: "metadata.name (line 3): must be text: write it in quotes",
  },
  {
    name: "no spec",
    text: groupText("a").split("spec:")[0] ?? "",
    says: "Group default/a, spec (line 1): is missing: add it",
  },
  {
    name: "a field beside spec",
    text: `${groupText("a")}data: {}\n`,
    says: "Group default/a (line 7): has a field that does not exist",
  },
  {
    name: "data that is not base64",
    text: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: '*'}",
    says: "data.k (line 4): is not base64",
  },
  {
    name: "data that is not text",
    text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {k: 1}",
    says: "data.k (line 4): must be text",
  },
  {
    name: "a bad key of data",
    text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {'a b': x}",
    says: "data (line 4): keys are 1 to 253",
  },
  {
    name: "a key that is no text",
    text: groupText("a", `${valid}\n  metadata: {[a]: 1}`),
    says: "spec.metadata (line 7): has a key that is not text",
  },
  {
    name: "a whole number beyond 2^53",
    text: groupText("a", `${valid}\n  metadata: {n1: 12345678901234567890}`),
    says: "spec.metadata (line 7): is a whole number beyond 2^53",
  },
  {
    name: "a number that is none",
    text: groupText("a", `${valid}\n  metadata: {n1: .nan}`),
    says: "is no number that JSON has",
  },
])("a document with $name is refused, and its place is named", ({ text, says }) => {
  expect(messages(text).join("\n")).toContain(says);
});

it.each(["yes", "n", "0123", "1_000", "0b11", "0o17", "1e3", "52:54:00:12:34:56", "On"])(
  "the plain scalar `%s` is refused as a value and as a key",
  (plain) => {
    const says = "reads differently in YAML 1.1 and 1.2: quote it";
    expect(messages(groupText("a", `  selector: {matchLabels: {mac: ${plain}}}`))).toContain(
      `Group default/a, spec.selector.matchLabels.mac (line 6): ${says}`,
    );
    expect(messages(groupText("a", `${valid}\n  metadata: {list: [{${plain}: 1}]}`))).toEqual([
      `Group default/a, spec.metadata (line 7): ${says}`,
    ]);
    expect(messages(groupText("a", `${valid}\n  metadata: {"${plain}": '${plain}'}`))).toEqual([]);
  },
);

it("no more than eight findings are told of one document, in order of lines", () => {
  const metadata = Array.from({ length: 20 }, (_, at) => `    k${at}: yes`).join("\n");
  const told = messages(groupText("a", `${valid}\n  metadata:\n${metadata}`));
  expect(told).toHaveLength(8);
  expect(told[0]).toContain("(line 8)");
});

it.each([
  { name: "a selector", spec: `${valid}\n  args: 1`, selector: { role: "a" }, matchAll: false, priority: 0 },
  {
    name: "a bad priority",
    spec: `${valid}\n  priority: -1`,
    selector: { role: "a" },
    matchAll: false,
    priority: 1000,
  },
  { name: "matchAll alone", spec: "  matchAll: true\n  priority: 7", selector: {}, matchAll: true, priority: 0 },
])("a refused Group with $name still says which machines are its own", ({ name: _, spec, ...own }) => {
  expect(read(groupText("a", spec)).definitions).toMatchObject([
    { kind: "refused", standIn: { kind: "Group", spec: { ...own, profile: "web" } } },
  ]);
});

it("a refused Group with a bad profile name has none", () => {
  const text = groupText("a", valid).replace("{name: web}", "{name: W}");
  expect(read(text).definitions).toMatchObject([{ standIn: { spec: { profile: "", selector: { role: "a" } } } }]);
});

it.each([
  { name: "emptied selector", spec: "  selector: {}" },
  { name: "null selector", spec: "  selector:" },
  { name: "value that Helm emptied", spec: "  selector: {matchLabels: {mac: }}" },
  { name: "misspelt selector", spec: "  selectors: {matchLabels: {role: a}}" },
  { name: "selector and matchAll", spec: `${valid}\n  matchAll: true` },
  { name: "bad MAC", spec: "  selector: {matchLabels: {mac: 52-54-00}}" },
])("a Group with $name is refused, and takes no machine", ({ spec }) => {
  const [definition, ...more] = read(groupText("a", spec)).definitions;
  expect(definition).toMatchObject({ kind: "refused", name: { name: "a" } });
  expect(definition).not.toHaveProperty("standIn");
  expect(more).toEqual([]);
});

const word = "xyzzySecret42";

it.each([
  { name: "broken YAML", text: `a: "${word}\nb: [` },
  { name: "an unknown tag", text: `a: !${word} ${word}` },
  { name: "an alias to nothing", text: `a: *${word}` },
  { name: "a key twice", text: `${word}: 1\n${word}: 2` },
  { name: "no object", text: word },
  { name: "an unknown kind", text: `apiVersion: davit.dev/v1alpha1\nkind: ${word}` },
  { name: "an unknown version", text: `apiVersion: davit.dev/${word}\nkind: Group` },
  {
    name: "almost our group",
    text: groupText("a", `  selector: {matchLabels: {a: ${word}}}`).replace(".dev", `.${word}`),
  },
  { name: "a bad name", text: groupText(`${word}_`, valid) },
  { name: "a bad enum", text: profileText("p", `  boot: {local: ${word}}`) },
  { name: "a wrong type", text: profileText("p", `  boot: {args: ${word}}`) },
  { name: "an unknown field", text: groupText("a", `  ${word}: 1\n${valid}`) },
  { name: "a control character", text: profileText("p", `  boot: {kernel: "${word}\\n"}`) },
  { name: "a MAC", text: groupText("a", `  selector: {matchLabels: {mac: ${word}}}`) },
  { name: "an odd label", text: groupText("a", `  selector: {matchLabels: {"${word}!": a}}`) },
  { name: "metadata", text: groupText("a", `${valid}\n  metadata: {${word}: [yes, {${word}: 0123}]}`) },
  { name: "base64", text: `apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: "${word}!"}` },
  { name: "a bad key of data", text: `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {"${word} ": 1}` },
])("a word planted in $name appears in no message", ({ text }) => {
  for (const path of ["a.yaml", "a.json"]) {
    const found = read(text, path);
    const refusals = found.definitions.map((definition) => (definition.kind === "refused" ? definition.text : ""));
    expect(found.problems.length).toBeGreaterThan(0);
    expect(JSON.stringify([found.problems, refusals])).not.toContain(word);
  }
});

function bomb(): string {
  const level = (name: string, below: string) => `${name}: &${name} [${Array(9).fill(below).join(",")}]\n`;
  return `a: &a [x,x,x,x,x,x,x,x,x]\n${level("b", "*a")}${level("c", "*b")}${level("d", "*c")}${level("e", "*d")}`;
}
