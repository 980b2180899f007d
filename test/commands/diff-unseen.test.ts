/** What `davit diff` reports although no config of a known machine shows it. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseJsonObject } from "../../src/model/json.ts";
import { runCommand } from "../helpers/command-under-test.ts";
import { group, type Manifest, machine, profile, secret, stream } from "../helpers/manifests.ts";

const mac = "52:54:00:a1:9c:ae";
const planted = "hunter2hunter2";
const installer = profile("installer", { effect: "Install" });
const web = [profile("web"), group("web", { zone: "b" })];

const soon = { field: "effect, once machines are served", before: "Boot", after: "Install" };

/** An everyday Group of all zones, or of those that meet an expression. */
function zones(expression: object = {}) {
  const any = { key: "zone", operator: "Exists" };
  return group("web", {}, { priority: 5, selector: { matchExpressions: [any, { ...any, ...expression }] } });
}

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-diff-"));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Compares a directory with manifests from standard input. */
async function diff(before: readonly Manifest[], after: readonly Manifest[], ...words: readonly string[]) {
  await writeFile(join(folder, "objects.yaml"), stream(before));
  return await runCommand(["diff", "--from", folder, ...words], { input: [stream(after)] });
}

/** The report as JSON. */
async function report(before: readonly Manifest[], after: readonly Manifest[]) {
  const { output, errors } = await diff(before, after, "--output", "json");
  expect(errors).toBe("");
  return parseJsonObject(output);
}

describe("machines that nobody knows", () => {
  const racks = { matchExpressions: [{ key: "rack", operator: "In", values: ["r1", "r2"] }] };
  const hidden = [
    profile("first"),
    group("first", { rack: "r1" }, { priority: 9 }),
    group("web", {}, { selector: racks }),
  ];

  it.each<[string, Manifest, object]>([
    ["an effect", profile("web", { effect: "Install" }), { moreDestructive: true }],
    ["other bytes", profile("web", { boot: { kernel: "/new" } }), { moreDestructive: false }],
  ])("may get %s from a Group whose sample machine another Group takes", async (_, changed, expected) => {
    const json = await report([profile("web"), ...hidden], [changed, ...hidden]);
    expect(json).toMatchObject({ differs: true, groups: [{ group: "racks/web", ...expected }] });
  });

  it("may get an installer that needs no approval any more", async () => {
    const known = {
      ...machine("node", mac, {}),
      spec: { identity: { macs: [mac] }, labels: { rack: "r1" }, approved: true },
    };
    const open = (spec: object) => [installer, group("installer", { rack: "r1" }, spec), known];
    expect(await report(open({ approval: "Required" }), open({}))).toMatchObject({
      machines: { known: 1, changed: 0 },
      groups: [{ group: "racks/installer", moreDestructive: true }],
    });
  });

  it("may get other bytes once a hold ends", async () => {
    const held = (kernel: string) => [
      profile("web", { boot: { kernel } }),
      group("web", { rack: "r1" }, { hold: true }),
    ];
    expect(await report(held("/old"), held("/new"))).toMatchObject({ differs: true, groups: [{ group: "racks/web" }] });
  });

  it("may get an installer that now ranks higher", async () => {
    const rank = (priority: number) => [...web, installer, group("installer", { rack: "r1" }, { priority })];
    expect(await report(rank(1), rank(9))).toMatchObject({
      groups: [{ group: "racks/installer", moreDestructive: true }],
    });
  });

  it.each<[string, readonly Manifest[]]>([
    ["removed", []],
    ["narrowed", [group("web", { zone: "b", row: "1" }, { priority: 5 })]],
    ["ranked lower", [group("web", { zone: "b" }, { priority: 0 })]],
  ])("may fall to an installer when their everyday Group is %s", async (_, after) => {
    const rest = [profile("web"), installer, group("installer", { rack: "r1", row: "2" })];
    const json = await report([group("web", { zone: "b" }, { priority: 5 }), ...rest], [...after, ...rest]);
    expect(json).toMatchObject({
      groups: [{ group: "racks/installer", moreDestructive: true, changes: [{ sample: expect.anything() }] }, {}],
    });
  });

  it.each<[string, readonly Manifest[], readonly Manifest[]]>([
    ["a value less", [zones({ operator: "In", values: ["a", "b"] })], [zones({ operator: "In", values: ["a"] })]],
    ["a label more to lack", [zones()], [zones({ key: "row", operator: "DoesNotExist" })]],
  ])("may fall to an installer when their everyday Group has %s", async (_, before, after) => {
    const rest = [profile("web"), installer, group("installer", { rack: "r1" })];
    expect(await report([...before, ...rest], [...after, ...rest])).toMatchObject({
      groups: [{ group: "racks/installer", moreDestructive: true }, { group: "racks/web" }],
    });
  });

  it("are not all looked for among thousands of pairs of Groups", async () => {
    const numbers = [...Array(150).keys()];
    const installers = numbers.map((at) => group(`i${at}`, { zone: `i${at}` }, { profileRef: { name: "installer" } }));
    const all = (priority: number) => [
      ...[profile("web"), installer, ...installers],
      ...numbers.map((at) => group(`g${at}`, { zone: `g${at}` }, { priority, profileRef: { name: "web" } })),
    ];
    const { output } = await diff(all(5), all(4));
    expect(output).toContain("note: many Groups have another selector or priority");
    expect(output).toMatch(/; not all Groups were compared with those that install\n$/);
  });

  it("may be installed once a hold ends", async () => {
    const held = (spec: object) => [profile("web", spec), group("web", { rack: "r1" }, { hold: true })];
    const json = await report(held({}), held({ effect: "Install" }));
    expect(json).toMatchObject({ groups: [{ moreDestructive: true, fields: expect.arrayContaining([soon]) }] });
  });

  it("may get what changes in a Group whose only known machine moves", async () => {
    const both = (kernel: string, own: object) => [
      profile("web", { boot: { kernel } }),
      group("web", { zone: "b" }, own),
      profile("db"),
      group("db", { zone: "b", rack: "r2" }, { priority: 1 }),
      { ...machine("node", mac, {}), spec: { identity: { macs: [mac] }, labels: { zone: "b", rack: "r2" } } },
    ];
    const json = await report(both("/old", { priority: 5 }), both("/new", { priority: 0 }));
    expect(JSON.stringify(json)).toContain("content of the Profile");
  });
});

describe("a grant", () => {
  const until = new Date(Date.now() + 3_600_000).toISOString();
  const plan = { effect: "Install", install: { then: "exit" } };
  const granted = (install: object) => [
    profile("web", plan),
    group("web", { mac }, { install: { generation: 2, ledger: "9f3c0a52", until, ...install } }),
  ];

  it.each([
    ["for installed machines, too", {}, { scope: "All" }, true],
    ["for new machines only", { scope: "All" }, {}, false],
    ["in another ledger", { ledger: "00000000" }, {}, true],
    ["of the next generation", {}, { generation: 3 }, true],
  ])("that opens %s", async (_, before, after, moreDestructive) => {
    const json = await report(granted(before), granted(after));
    expect(json).toMatchObject({ differs: true, groups: [{ moreDestructive }] });
  });
});

describe("a field of a Profile that no config shows", () => {
  const install = { effect: "Install", install: { then: "exit" } };
  const onDrive = (bios: number) => ({ ...install, install: { then: "sanboot", disk: { bios } } });
  const sealed = (serve: string) => ({
    ...install,
    generic: { templateFrom: { secretKeyRef: { name: "texts", key: "config", serve } }, raw: true },
  });
  const asset = (digit: string) => ({
    assets: [{ name: "racks/vmlinuz", url: "http://mirror.example/vmlinuz?key=hunter2", sha256: digit.repeat(64) }],
  });

  it.each<[string, object, object, string]>([
    ["a Secret that is always served", sealed("DuringInstall"), sealed("Always"), "spec.generic, serve: DuringInstall"],
    ["no HTTPS", { requireTls: true }, {}, "spec.requireTls: true -> none"],
    ["another boot after the install", install, { ...install, install: { then: "sanboot" } }, "then: exit -> sanboot"],
    ["another disk after the install", onDrive(0x80), onDrive(0x81), 'install.disk: {"bios":128} -> {"bios":129}'],
    ["another file", asset("1"), asset("2"), "spec.assets[racks/vmlinuz]: sha256 1"],
  ])("shows: %s", async (_, before, after, shown) => {
    const objects = (spec: object) => [profile("web", spec), group("web", { mac }), secret(planted)];
    const { code, output } = await diff(objects(before), objects(after), "--exit-code");
    expect([code, output]).toEqual([1, expect.stringContaining(shown)]);
    expect(output).not.toContain("hunter2");
    const markdown = await diff(objects(before), objects(after), "--output", "markdown");
    expect(markdown.output).toContain(shown.split(": ")[1]);
  });
});

it.each(["diff", "lint"])("davit %s prints no command of the terminal that a manifest has", async (command) => {
  const evil = "a\u001b[2J\u202e";
  const objects = [
    profile(evil),
    group("web", { zone: "b" }, { [evil]: 1, metadata: { [evil]: "{{x}}" }, args: [evil] }),
  ];
  await writeFile(join(folder, "objects.yaml"), "");
  const words = command === "diff" ? ["--from", folder] : [];
  const { code, output, errors } = await runCommand([command, ...words], { input: [stream(objects)] });
  expect([code, output + errors]).not.toEqual([0, ""]);
  for (const character of ["\u001b", "\u202e"]) expect(output + errors).not.toContain(character);
});

it("counts a machine without a Group that waits now, and finds a difference", async () => {
  const known = (hold: boolean) => ({ ...machine("node", mac, {}), spec: { identity: { macs: [mac] }, hold } });
  expect(await report([known(false)], [known(true)])).toMatchObject({
    differs: true,
    groups: [],
    machines: { known: 1, changed: 1 },
  });
  const { output, code } = await diff([known(false)], [known(true)], "--exit-code");
  expect(output).toContain("0 Groups differ, 1 of 1 known machines get something else");
  expect(code).toBe(1);
});
