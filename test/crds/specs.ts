/**
 * Specs that the CRDs admit and specs that they refuse, with what is to be told of them. The directory source's checks
 * and a real API server are both held against these tables: the same file has to mean the same to both.
 */

import type { JsonObject, JsonValue } from "../../src/model/json.ts";
import { admittedAssets, assetBounds, assetsRefusedByRules } from "./asset-specs.ts";
import { admittedDisks, diskBounds, disksRefusedByRules, disksRefusedBySchema } from "./disk-specs.ts";
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
import {
  admittedPermits,
  nullsOfPermits,
  permitBounds,
  permitsRefusedByRules,
  permitsRefusedBySchema,
  plainPermitTexts,
} from "./permit-specs.ts";

export const admitted: readonly KindSpec[] = [
  ...[
    { boot: { kernel: "/assets/vmlinuz", initrd: ["a"], args: ["b"], efiInitrd: true } },
    { boot: { local: "sanboot" } },
    { boot: { kernel: "/assets/k?sha256={{digest}}", initrd: [`--name i /assets/i?sha256=${"aF".repeat(32)}&a=b`] } },
    { boot: { kernel: "http://192.0.2.7/k?sha256=abc" } },
    { boot: { script: "#!ipxe\nset a b\n\tshell ä\n" } },
    { boot: { script: "#!ipxe", grubScript: "if true; then\n\texit\nfi\n" }, metadata: { a: { b: [1, null] } } },
    { boot: { kernel: "k", args: ["a"], grubScript: "exit" } },
    { boot: { grubScript: "exit" } },
    { generic: { inline: "{}", format: "json" } },
    { genericParts: [{ name: "user-data", inline: "x", format: "json" }] },
    {
      generic: { inline: "x" },
      genericParts: [
        { name: "ks.cfg", raw: true, templateFrom: { configMapKeyRef: { name: "a", key: "k" } } },
        { name: "sig", templateFrom: { secretKeyRef: { name: "a", key: "k" } } },
      ],
    },
    {
      ignition: { inline: "{}" },
      generic: { templateFrom: { secretKeyRef: { name: "a.b-c", key: "K_1.x" } }, raw: true },
    },
  ].map((spec) => ({ kind: "Profile", spec })),
  ...[
    { profileRef, matchAll: true, priority: 0 },
    { profileRef, matchAll: true, args: ["note={{note}}", "quiet"] },
    { profileRef, selector: { matchLabels: { mac: "52:54:00:a1:9c:ae", Role_1: "A b/ü" } }, priority: 1000 },
    { profileRef, matchAll: false, selector: { matchLabels: { uuid: "4C4C4544-0042-3510-8052-b4c04f4e4a32" } } },
    ...admittedExpressions,
  ].map((spec) => ({ kind: "Group", spec })),
  ...admittedPermits,
  ...admittedAssets,
  ...admittedDisks,
];

/** At least one for each rule, whose `message` is part of what davit and the API server say. */
export const refusedByRules: readonly (KindSpec & { readonly message: string })[] = [
  ...[{}, { genericParts: [] }].map((spec) => ({
    kind: "Profile",
    spec,
    message: "set at least one of boot, ignition, cloudConfig, generic and genericParts",
  })),
  ...["x.sig", "x.asc", "x.sig.asc"].map((name) => ({
    kind: "Profile",
    spec: { genericParts: [{ name, inline: "x" }] },
    message: "the name of a part does not end in .sig or .asc: signatures are served there",
  })),
  { kind: "Profile", spec: genericPart({ name: "x" }), message: "set exactly one of inline and templateFrom" },
  ...[
    {},
    { kernel: "a", local: "exit" },
    { kernel: "a", script: "#!ipxe" },
    { local: "exit", script: "#!ipxe" },
    { args: ["a"] },
  ].map((boot) => ({
    kind: "Profile",
    spec: { boot },
    message: "set exactly one of kernel, local and script, or grubScript alone",
  })),
  ...[
    { kernel: "/assets/k?sha256=abc" },
    { kernel: `/assets/k?SHA256=${"0".repeat(64)}` },
    { kernel: "k", initrd: [`{{davit.url}}/assets/i?a=b&sha256=${"0".repeat(63)}`] },
  ].map((boot) => ({
    kind: "Profile",
    spec: { boot },
    message: "sha256 of a location is in lower case, with 64 hexadecimal digits as sha256sum prints them: correct it",
  })),
  {
    kind: "Profile",
    spec: { boot: { local: "exit", grubScript: "exit" } },
    message: "local boots from disk by GRUB, too: remove grubScript",
  },
  ...[{ initrd: ["a"] }, { args: ["a"] }, { efiInitrd: false }].map((extra) => ({
    kind: "Profile",
    spec: { boot: { ...("args" in extra ? { script: "#!ipxe" } : { local: "exit" }), ...extra } },
    message: "initrd, args and efiInitrd belong to a kernel: remove them",
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
  ...permitsRefusedByRules,
  ...assetsRefusedByRules,
  ...disksRefusedByRules,
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
  ...["", "#!ipxe2", " #!ipxe", "#!ipxe\r\nshell", "#!ipxe\n\u0000", "{{#if a}}#!ipxe{{/if}}"].map((script) => ({
    kind: "Profile",
    spec: { boot: { script } },
    text: "begin it with the line #!ipxe",
  })),
  { kind: "Profile", spec: { boot: { grubScript: "exit\r\n" } }, text: "other than line feed and tab" },
  { kind: "Profile", spec: { boot: { grubScript: "" } }, text: "is empty" },
  { kind: "Profile", spec: { boot: { kernel: "k" }, metadata: [] }, text: "must be an object" },
  { kind: "Group", spec: { profileRef, matchAll: true, args: ["a\nb"] }, text: "has a control character" },
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
  { kind: "Profile", spec: genericPart({ inline: "x" }), text: "is missing" },
  ...["User-Data", "user_data", "-x", "x.", "a/b", "ä"].map((name) => ({
    kind: "Profile",
    spec: genericPart({ name, inline: "x" }),
    text: "is no name of a part",
  })),
  {
    kind: "Profile",
    spec: { genericParts: ["a", "b", "a"].map((name, at) => ({ name, inline: `${at}` })) },
    text: "has the name of an entry above",
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
  ...permitsRefusedBySchema,
  ...disksRefusedBySchema,
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
  ...nullsOfPermits,
];

/** Texts of specs that may not have control characters. */
export const plainTexts: readonly [place: string, kind: string, specOf: (text: string) => JsonObject][] = [
  ["a Profile's displayName", "Profile", (text) => ({ displayName: text, boot: { local: "exit" } })],
  ["kernel", "Profile", (text) => boot({ kernel: text })],
  ["an initrd", "Profile", (text) => boot({ initrd: [text] })],
  ["an argument", "Profile", (text) => boot({ args: [text] })],
  ["a Group's argument", "Group", (text) => ({ profileRef, matchAll: true, args: [text] })],
  ["a Group's displayName", "Group", (text) => ({ displayName: text, profileRef, matchAll: true })],
  ["a selector's value", "Group", label],
  ["a selector's key", "Group", (text) => labels({ [text]: "x" })],
  ["an expression's value", "Group", (text) => expressions({ key: "os", operator: "Glob", values: [text] })],
  ["an expression's key", "Group", (text) => expressions({ key: text, operator: "Exists" })],
  ...plainPermitTexts,
];
export const controlCharacters = [...Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)), "\u007f"];

/** For each bound a spec that keeps it and one that is just beyond. */
export const bounds: readonly [place: string, kind: string, most: JsonObject, more: JsonObject][] = [
  ["kernel", "Profile", boot({ kernel: "x".repeat(2048) }), boot({ kernel: "x".repeat(2049) })],
  ["an initrd", "Profile", boot({ initrd: ["x".repeat(2048)] }), boot({ initrd: ["x".repeat(2049)] })],
  ["the initrds", "Profile", boot({ initrd: times(32, "x") }), boot({ initrd: times(33, "x") })],
  ["an argument", "Profile", boot({ args: ["x".repeat(4096)] }), boot({ args: ["x".repeat(4097)] })],
  ["the arguments", "Profile", boot({ args: times(256, "x") }), boot({ args: times(257, "x") })],
  ["a script", "Profile", { boot: { script: script(65_536) } }, { boot: { script: script(65_537) } }],
  ["a config for GRUB", "Profile", boot({ grubScript: "x".repeat(65_536) }), boot({ grubScript: "x".repeat(65_537) })],
  ["a Profile's metadata", "Profile", boot({}, names(256)), boot({}, names(257))],
  ["a Group's arguments", "Group", { ...label("x"), args: times(256, "x") }, { ...label("x"), args: times(257, "x") }],
  [
    "a Group's argument",
    "Group",
    { ...label("x"), args: ["x".repeat(4096)] },
    { ...label("x"), args: ["x".repeat(4097)] },
  ],
  [
    "inline text",
    "Profile",
    { ignition: { inline: "x".repeat(131_072) } },
    { ignition: { inline: "x".repeat(131_073) } },
  ],
  ["the generic parts", "Profile", { genericParts: parts(32) }, { genericParts: parts(33) }],
  [
    "a generic part's name",
    "Profile",
    genericPart({ name: "x".repeat(63), inline: "x" }),
    genericPart({ name: "x".repeat(64), inline: "x" }),
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
  ...permitBounds,
  ...assetBounds,
  ...diskBounds,
  ["priority", "Group", { ...label("x"), priority: 1000 }, { ...label("x"), priority: 1001 }],
  ["metadata", "Group", { ...label("x"), metadata: names(256) }, { ...label("x"), metadata: names(257) }],
];

/** What is missing, empty, of another type, or in a place that is not there. */
export const refusedPlaces: readonly [place: string, kind: string, spec: JsonObject][] = [
  ["an empty kernel", "Profile", boot({ kernel: "" })],
  ["an empty initrd", "Profile", boot({ initrd: [""] })],
  ["an empty argument", "Profile", boot({ args: [""] })],
  ["an empty inline text", "Profile", { generic: { inline: "" } }],
  ["a generic part without a name", "Profile", genericPart({ name: "", inline: "x" })],
  ["generic parts of one name", "Profile", { genericParts: [...parts(2), ...parts(1)] }],
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

function boot(part: JsonObject, metadata?: JsonObject): JsonObject {
  return { boot: { kernel: "k", ...part }, ...(metadata && { metadata }) };
}

function script(length: number): string {
  return "#!ipxe\n".padEnd(length, "x");
}

function genericPart(part: JsonObject): JsonObject {
  return { genericParts: [part] };
}

function parts(count: number): readonly JsonObject[] {
  return Array.from({ length: count }, (_, at) => ({ name: `part-${at}`, inline: "x" }));
}

function fromConfigMap(ref: JsonObject): JsonObject {
  return { generic: { templateFrom: { configMapKeyRef: ref } } };
}

function names(count: number): JsonObject {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, "x"]));
}
