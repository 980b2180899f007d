/**
 * Specs that the CRDs admit and specs that they refuse, with what is to be told of them. The directory source's checks
 * and a real API server are both held against these tables: the same file has to mean the same to both.
 */

import type { JsonObject, JsonValue } from "../../src/model/json.ts";
import {
  admittedExpressions,
  expressionBounds,
  expressions,
  expressionsRefusedByRules,
  expressionsRefusedBySchema,
  type KindSpec,
  profileRef,
  times,
} from "./expression-specs.ts";

export const admitted: readonly KindSpec[] = [
  ...[
    { boot: { kernel: "/assets/vmlinuz", initrd: ["a"], args: ["b"], efiInitrd: true } },
    { boot: { local: "sanboot" } },
    { generic: { inline: "{}", format: "json" } },
    {
      ignition: { inline: "{}" },
      generic: { templateFrom: { secretKeyRef: { name: "a.b-c", key: "K_1.x" } }, raw: true },
    },
  ].map((spec) => ({ kind: "Profile", spec })),
  ...[
    { profileRef, matchAll: true, priority: 0 },
    { profileRef, selector: { matchLabels: { mac: "52:54:00:a1:9c:ae", Role_1: "A b/ü" } }, priority: 1000 },
    { profileRef, matchAll: false, selector: { matchLabels: { uuid: "4C4C4544-0042-3510-8052-b4c04f4e4a32" } } },
    ...admittedExpressions,
  ].map((spec) => ({ kind: "Group", spec })),
];

/** At least one for each rule, whose `message` is part of what davit and the API server say. */
export const refusedByRules: readonly (KindSpec & { readonly message: string })[] = [
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
    message: "set exactly one of a non-empty selector and matchAll: true",
  })),
  ...expressionsRefusedByRules,
  {
    kind: "Group",
    spec: { profileRef, matchAll: true, priority: 1 },
    message: "a matchAll group comes last: remove priority",
  },
  ...[{ mac: null, role: "web" }, { role: null }].map((matchLabels) => ({
    kind: "Group",
    spec: { profileRef, selector: { matchLabels } },
    message: "a label needs a value: write it, or remove the label",
  })),
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

/** By the schema, before any rule is asked; `text` is part of what davit says. */
export const refusedBySchema: readonly (KindSpec & { readonly text: string })[] = [
  { kind: "Profile", spec: { boot: { kernel: "a\nb" } }, text: "has a control character" },
  { kind: "Profile", spec: { boot: { kernel: "k", args: ["a\nimgfetch x"] } }, text: "has a control character" },
  { kind: "Profile", spec: { boot: { kernel: "k", args: Array(257).fill("a") } }, text: "has more than 256 entries" },
  { kind: "Profile", spec: { boot: { kernel: "" } }, text: "is empty" },
  { kind: "Profile", spec: { boot: { local: "disk" } }, text: "must be one of exit, sanboot, notFound" },
  { kind: "Profile", spec: { generic: { inline: "x", format: "xml" } }, text: "must be one of json" },
  {
    kind: "Profile",
    spec: { ignition: { inline: "x", format: "json" } },
    text: "has a field that does not exist: remove it or correct its name to one of inline, raw, templateFrom",
  },
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
  { kind: "Group", spec: { profileRef, matchAll: true, metadata: names(257) }, text: "has more than 256 names" },
  { kind: "Group", spec: { matchAll: true }, text: "is missing" },
  { kind: "Group", spec: { profileRef, selector: { matchLabels: { flag: "" } } }, text: "is empty" },
  {
    kind: "Group",
    spec: { profileRef, selector: { matchLabels: { n1: 5 } } },
    text: "must be text: write it in quotes",
  },
  { kind: "Group", spec: { profileRef, selector: { matchLabels: names(17) } }, text: "has more than 16 names" },
  ...expressionsRefusedBySchema,
];

const selector = { matchLabels: { role: "web" } };

/** Null where it means that nothing was written, and what is stored then: never what takes more machines. */
export const nulls: readonly (KindSpec & { readonly what: string; readonly meant: JsonObject })[] = [
  {
    what: "a selector of null beside matchAll",
    kind: "Group",
    spec: { profileRef, matchAll: true, selector: null },
    meant: { profileRef, matchAll: true, priority: 0 },
  },
  {
    what: "labels of null beside matchAll",
    kind: "Group",
    spec: { profileRef, matchAll: true, selector: { matchLabels: null } },
    meant: { profileRef, matchAll: true, priority: 0, selector: {} },
  },
  ...["matchAll", "hold", "priority", "metadata", "displayName"].map((field) => ({
    what: `a ${field} of null`,
    kind: "Group",
    spec: { profileRef, selector, [field]: null },
    meant: { profileRef, selector, priority: 0 },
  })),
  {
    // Nobody can refuse it in a rule, so it is kept for davit, which does.
    what: "expressions of null beside labels",
    kind: "Group",
    spec: { profileRef, selector: { ...selector, matchExpressions: null } },
    meant: { profileRef, selector: { ...selector, matchExpressions: null }, priority: 0 },
  },
  {
    what: "null in metadata",
    kind: "Group",
    spec: { profileRef, selector, metadata: { a: null, b: [null] } },
    meant: { profileRef, selector, priority: 0, metadata: { a: null, b: [null] } },
  },
  {
    what: "a local boot of null beside a kernel",
    kind: "Profile",
    spec: { boot: { kernel: "k", local: null, args: null }, ignition: null },
    meant: { boot: { kernel: "k" } },
  },
];

/** Texts of specs that may not have control characters. */
export const plainTexts: readonly [place: string, kind: string, specOf: (text: string) => JsonObject][] = [
  ["a Profile's displayName", "Profile", (text) => ({ displayName: text, boot: { local: "exit" } })],
  ["kernel", "Profile", (text) => boot({ kernel: text })],
  ["an initrd", "Profile", (text) => boot({ initrd: [text] })],
  ["an argument", "Profile", (text) => boot({ args: [text] })],
  ["a Group's displayName", "Group", (text) => ({ displayName: text, profileRef, matchAll: true })],
  ["a selector's value", "Group", label],
  ["a selector's key", "Group", (text) => labels({ [text]: "x" })],
  ["an expression's value", "Group", (text) => expressions({ key: "os", operator: "Glob", values: [text] })],
  ["an expression's key", "Group", (text) => expressions({ key: text, operator: "Exists" })],
];
export const controlCharacters = [...Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)), "\u007f"];

/** For each bound a spec that keeps it and one that is just beyond. */
export const bounds: readonly [place: string, kind: string, most: JsonObject, more: JsonObject][] = [
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
  ...expressionBounds,
  ["priority", "Group", { ...label("x"), priority: 1000 }, { ...label("x"), priority: 1001 }],
  ["metadata", "Group", { ...label("x"), metadata: names(256) }, { ...label("x"), metadata: names(257) }],
];

/** What is missing, empty, of another type, or in a place that is not there. */
export const refusedPlaces: readonly [place: string, kind: string, spec: JsonObject][] = [
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
];

export function labels(matchLabels: Readonly<Record<string, JsonValue>>): JsonObject {
  return { profileRef, selector: { matchLabels } };
}

export function label(value: string): JsonObject {
  return labels({ serial: value });
}

function boot(part: JsonObject): JsonObject {
  return { boot: { kernel: "k", ...part } };
}

function fromConfigMap(ref: JsonObject): JsonObject {
  return { generic: { templateFrom: { configMapKeyRef: ref } } };
}

function names(count: number): JsonObject {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, "x"]));
}
