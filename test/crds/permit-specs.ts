/** As the tables of specs.ts, for Machines and for what concerns permits. */

import type { JsonObject, JsonValue } from "../../src/model/json.ts";
import { type KindSpec, profileRef, times } from "./expression-specs.ts";

const mac = "52:54:00:a1:9c:ae";
const uuid = "4c4c4544-0042-3510-8052-b4c04f4e4a32";
const until = "2026-12-01T18:00:00Z";

/** A Profile that installs, with these fields besides. */
function installing(fields: JsonObject): JsonObject {
  return { effect: "Install", boot: { kernel: "k" }, install: plan("sanboot"), ...fields };
}

/** How a Profile installs. */
function plan(then: JsonValue, timeout?: JsonValue): JsonObject {
  return { then, ...(timeout !== undefined && { timeout }) };
}

function reporting(labels: JsonValue): JsonObject {
  return installing({ reports: { labels } });
}

/** A text of a Secret that is served sometimes. */
function sealed(serve: string): JsonObject {
  return { templateFrom: { secretKeyRef: { name: "join", key: "token", serve } } };
}

/** A Group with a grant. */
function granting(install: JsonValue): JsonObject {
  return { profileRef, matchAll: true, install };
}

function machine(fields: JsonObject): JsonObject {
  return { identity: { macs: [mac] }, ...fields };
}

function labelled(labels: JsonObject): JsonObject {
  return machine({ labels });
}

function named(key: string, value: JsonValue = "x"): JsonObject {
  return Object.fromEntries([[key, value]]);
}

export const admittedPermits: readonly KindSpec[] = [
  ...[
    installing({}),
    installing({
      install: plan("exit", "1h30m"),
      reports: { labels: { os: ["installed"] }, ttl: "720h" },
    }),
    installing({ generic: sealed("DuringInstall"), genericParts: [{ name: "a", ...sealed("DuringInstall") }] }),
    { boot: { kernel: "k" }, generic: sealed("Always"), genericParts: [{ name: "a", ...sealed("Always") }] },
    reporting({ arch: ["a", "b"], "Davit-x": ["c"], davit: ["d"] }),
    ...["1m", "59m", "1440m", "1h", "23h59m", "24h", "2h0m0s", "90m0s", "24h0m0s"].map((timeout) =>
      installing({ install: plan("notFound", timeout) }),
    ),
  ].map((spec) => ({ kind: "Profile", spec })),
  ...[
    { profileRef, matchAll: true, approval: "Required", enroll: true },
    granting({ generation: 1 }),
    granting({ generation: 4, ledger: "9f3c0a52", until, scope: "All" }),
    ...["2026-02-28T23:59:59.5+01:00", "2028-02-29T00:00:00Z", "2026-12-31T00:00:00.123456789-23:59"].map((time) =>
      granting({ generation: 2_147_483_647, until: time, scope: "NeverInstalled" }),
    ),
  ].map((spec) => ({ kind: "Group", spec })),
  ...[
    { identity: { uuid } },
    { identity: { uuid: uuid.toUpperCase(), macs: [mac, "52-54-00-A1-9C-AE", "525400a19cae"] } },
    machine({ approved: true, hold: false, labels: { rack: "7", domain: "a.b" }, metadata: { ip: "192.0.2.12" } }),
    machine({ install: { generation: 2, ledger: "00000000", until } }),
  ].map((spec) => ({ kind: "Machine", spec })),
];

const namesOfMachines = ["uuid", "mac", "serial", "hostname", "UUID", "Mac", "davit.dev", "DAVIT.x", "davit."];

export const permitsRefusedByRules: readonly (KindSpec & { readonly message: string })[] = [
  ...[{}, { effect: "Boot" }].map((effect) => ({
    kind: "Profile",
    spec: { boot: { kernel: "k" }, install: plan("exit"), ...effect },
    message: "install asks for permits, which a Profile with effect: Install needs: set effect: Install",
  })),
  {
    kind: "Profile",
    spec: installing({ boot: { local: "exit" } }),
    message: "local never installs: remove install, or boot.local",
  },
  {
    kind: "Profile",
    spec: { boot: { kernel: "k" }, reports: { labels: { os: ["a"] } } },
    message: "only a machine that installs can report: set install, or remove reports",
  },
  ...[
    { ignition: sealed("DuringInstall") },
    { cloudConfig: sealed("DuringInstall") },
    { generic: sealed("DuringInstall") },
    {
      genericParts: [
        { name: "a", inline: "x" },
        { name: "b", ...sealed("DuringInstall") },
      ],
    },
  ].map((parts) => ({
    kind: "Profile",
    spec: { boot: { kernel: "k" }, ...parts },
    message: "a text with serve: DuringInstall needs installs: set install, or remove serve",
  })),
  { kind: "Profile", spec: reporting({}), message: "write at least one label that machines may report" },
  ...[[], null].map((values) => ({
    kind: "Profile",
    spec: reporting({ os: values }),
    message: "a label that machines report needs values: write them, or remove the label",
  })),
  ...["", "a b", "-a", "__proto__", "a".repeat(64)].map((key) => ({
    kind: "Profile",
    spec: reporting(named(key, ["x"])),
    message:
      "names of labels are 1 to 63 letters, digits, hyphens, underscores and dots, beginning and ending with a letter or digit",
  })),
  ...namesOfMachines
    .filter((key) => key !== "davit.")
    .map((key) => ({
      kind: "Profile",
      spec: reporting(named(key, ["x"])),
      message: "machines never report uuid, mac, serial, hostname, or a label that begins with davit and a dot",
    })),
  ...["Arch", "DOMAIN"].map((key) => ({
    kind: "Profile",
    spec: reporting(named(key, ["x"])),
    message: "write domain and arch in lower case",
  })),
  ...[{}, { macs: [] }, { uuid: null, macs: null }].map((identity) => ({
    kind: "Machine",
    spec: { identity },
    message: "a Machine has a uuid or at least one of macs: write one",
  })),
  { kind: "Machine", spec: labelled({ rack: null }), message: "a label needs a value: write it, or remove the label" },
  ...["", "a b", "-a", "a".repeat(64)].map((key) => ({
    kind: "Machine",
    spec: labelled(named(key)),
    message:
      "keys are 1 to 63 letters, digits, hyphens, underscores and dots, beginning and ending with a letter or digit",
  })),
  ...namesOfMachines
    .filter((key) => key !== "davit.")
    .map((key) => ({
      kind: "Machine",
      spec: labelled(named(key)),
      message:
        "labels never name a machine, and never begin with davit and a dot: write uuid and mac in identity, and remove serial, hostname and the others",
    })),
  ...["ARCH", "Domain"].map((key) => ({
    kind: "Machine",
    spec: labelled(named(key)),
    message: "write domain and arch in lower case",
  })),
];

const noTimeout = "is no duration of 1m to 24h";
const noTime = "is no time of RFC 3339";

export const permitsRefusedBySchema: readonly (KindSpec & { readonly text: string })[] = [
  { kind: "Profile", spec: installing({ install: {} }), text: "is missing" },
  { kind: "Profile", spec: installing({ install: plan("disk") }), text: "must be one of exit, sanboot, notFound" },
  ...["0m", "59s", "1441m", "24h1m", "25h", "2", "2 h", "1.5h", "PT2H", "-1h", "1h60m", "2h30s"].map((timeout) => ({
    kind: "Profile",
    spec: installing({ install: plan("exit", timeout) }),
    text: noTimeout,
  })),
  { kind: "Profile", spec: installing({ install: plan("exit", 7200) }), text: "must be text" },
  ...["0h", "30s", "10000h", "1d"].map((ttl) => ({
    kind: "Profile",
    spec: installing({ reports: { labels: { os: ["a"] }, ttl } }),
    text: "is no duration of 1m to 9999h59m",
  })),
  ...["Sometimes", "duringInstall", ""].map((serve) => ({
    kind: "Profile",
    spec: installing({ ignition: sealed(serve) }),
    text: "must be one of Always, DuringInstall",
  })),
  { kind: "Profile", spec: installing({ reports: {} }), text: "is missing" },
  { kind: "Profile", spec: reporting({ os: "installed" }), text: "must be a list" },
  { kind: "Profile", spec: reporting({ os: [""] }), text: "is empty" },
  { kind: "Profile", spec: reporting({ os: ["a\nb"] }), text: "has a control character" },
  { kind: "Group", spec: { profileRef, matchAll: true, approval: "required" }, text: "must be one of Required" },
  { kind: "Group", spec: { profileRef, matchAll: true, approval: true }, text: "must be text" },
  { kind: "Group", spec: { profileRef, matchAll: true, enroll: "true" }, text: "must be true or false" },
  { kind: "Group", spec: granting({ ledger: "9f3c0a52" }), text: "is missing" },
  { kind: "Group", spec: granting({ generation: 1, scope: "all" }), text: "must be one of NeverInstalled, All" },
  ...grantsRefused("Group", granting),
  { kind: "Machine", spec: {}, text: "is missing" },
  { kind: "Machine", spec: { identity: { uuid: "4c4c4544" } }, text: "is no UUID" },
  { kind: "Machine", spec: { identity: { uuid: "" } }, text: "is no UUID" },
  { kind: "Machine", spec: { identity: { uuid: ` ${uuid}` } }, text: "is longer than 36 characters" },
  ...["", "52:54:00:a1:9c", "52:54:00-a1:9c:ae", "52:54:00:a1:9c:ag", ` ${mac}`].map((address) => ({
    kind: "Machine",
    spec: { identity: { macs: [mac, address] } },
    text: "is no MAC address",
  })),
  { kind: "Machine", spec: { identity: { macs: [null] } }, text: "must be text" },
  { kind: "Machine", spec: { identity: { macs: mac } }, text: "must be a list" },
  { kind: "Machine", spec: { identity: { macs: [525_400_119_312] } }, text: "must be text: write it in quotes" },
  { kind: "Machine", spec: machine({ approved: "true" }), text: "must be true or false" },
  { kind: "Machine", spec: machine({ hold: 1 }), text: "must be true or false" },
  { kind: "Machine", spec: labelled({ rack: 7 }), text: "must be text: write it in quotes" },
  { kind: "Machine", spec: labelled({ rack: "" }), text: "is empty" },
  { kind: "Machine", spec: machine({ metadata: [] }), text: "must be an object" },
  {
    kind: "Machine",
    spec: machine({ install: { generation: 1, scope: "All" } }),
    text: "correct its name to one of generation, ledger, until",
  },
  ...grantsRefused("Machine", (install) => machine({ install })),
];

/** Grants that neither a Group nor a Machine may have. */
function grantsRefused(kind: string, of: (install: JsonObject) => JsonObject) {
  return [
    ...["9f3c0a5", "9f3c0a521", "9F3C0A52", "9f3c0a5g", ""].map((ledger) => ({
      kind,
      spec: of({ generation: 1, ledger }),
      text: ledger.length > 8 ? "is longer than 8 characters" : "is no id of a ledger",
    })),
    { kind, spec: of({ generation: 1, ledger: 12_345_678 }), text: "must be text: write it in quotes" },
    { kind, spec: of({ generation: 0 }), text: "must be 1 or more" },
    { kind, spec: of({ generation: 2_147_483_648 }), text: "must be 2147483647 or less" },
    { kind, spec: of({ generation: 1.5 }), text: "must be a whole number" },
    { kind, spec: of({ generation: "1" }), text: "must be a whole number" },
    ...["", "tomorrow", "2026-12-01", "2026-12-01T18:00Z", "2026-12-01 18:00:00Z", "2026-12-01T18:00:00"].map(
      (time) => ({
        kind,
        spec: of({ generation: 1, until: time }),
        text: noTime,
      }),
    ),
    ...["2026-13-01T18:00:00Z", "2026-02-30T18:00:00Z", "2026-04-31T18:00:00Z", "1926-12-01T18:00:00Z"].map((time) => ({
      kind,
      spec: of({ generation: 1, until: time }),
      text: noTime,
    })),
    ...["2026-12-01T24:00:00Z", "2026-12-01T18:00:60Z", "2026-12-01t18:00:00z", "2026-12-01T18:00:00+24:00"].map(
      (time) => ({ kind, spec: of({ generation: 1, until: time }), text: noTime }),
    ),
    { kind, spec: of({ generation: 1, until: 1_796_148_000 }), text: "must be text: write it in quotes" },
  ];
}

/** Null where it means that nothing was written: never what opens an install, or releases a machine. */
export const nullsOfPermits: readonly (KindSpec & { readonly what: string; readonly meant: JsonObject })[] = [
  ...["approval", "enroll", "install"].map((field) => ({
    what: `a Group's ${field} of null`,
    kind: "Group",
    spec: { profileRef, matchAll: true, [field]: null },
    meant: { profileRef, matchAll: true, priority: 0 },
  })),
  {
    what: "a grant with nulls",
    kind: "Group",
    spec: granting({ generation: 1, ledger: null, until: null, scope: null }),
    meant: { ...granting({ generation: 1 }), priority: 0 },
  },
  {
    what: "a Profile's timeout of null",
    kind: "Profile",
    spec: installing({ install: plan("exit", null), reports: null }),
    meant: installing({ install: plan("exit") }),
  },
  ...["approved", "hold", "labels", "metadata", "install"].map((field) => ({
    what: `a Machine's ${field} of null`,
    kind: "Machine",
    spec: machine({ [field]: null }),
    meant: machine({}),
  })),
  {
    what: "a Machine's uuid of null",
    kind: "Machine",
    spec: { identity: { uuid: null, macs: [mac] } },
    meant: machine({}),
  },
  {
    what: "null in a Machine's metadata",
    kind: "Machine",
    spec: machine({ metadata: { a: null } }),
    meant: machine({ metadata: { a: null } }),
  },
];

const longestMac = Array.from({ length: 20 }, () => "5a").join(":");

export const permitBounds: readonly [place: string, kind: string, most: JsonObject, more: JsonObject][] = [
  ["a Machine's macs", "Machine", { identity: { macs: times(16, mac) } }, { identity: { macs: times(17, mac) } }],
  ["a MAC address", "Machine", { identity: { macs: [longestMac] } }, { identity: { macs: [`${longestMac}:5a`] } }],
  ["a Machine's labels", "Machine", labelled(many(16, "x")), labelled(many(17, "x"))],
  ["a Machine's label", "Machine", labelled({ a: "x".repeat(253) }), labelled({ a: "x".repeat(254) })],
  ["a Machine's label's key", "Machine", labelled(named("k".repeat(63))), labelled(named("k".repeat(64)))],
  ["a Machine's metadata", "Machine", machine({ metadata: many(256, 1) }), machine({ metadata: many(257, 1) })],
  ["the reported labels", "Profile", reporting(many(16, ["x"])), reporting(many(17, ["x"]))],
  ["the values of a reported label", "Profile", reporting({ a: times(32, "x") }), reporting({ a: times(33, "x") })],
  ["a value of a reported label", "Profile", reporting({ a: ["x".repeat(253)] }), reporting({ a: ["x".repeat(254)] })],
];

function many(count: number, value: JsonValue): JsonObject {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, value]));
}

export const plainPermitTexts: readonly [place: string, kind: string, specOf: (text: string) => JsonObject][] = [
  ["a Machine's label", "Machine", (text) => labelled({ rack: text })],
  ["a value of a reported label", "Profile", (text) => reporting({ os: [text] })],
];
