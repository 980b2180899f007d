/** `davit diff` of two directories. `integration/diff.test.ts` compares with a running davit and with a backup. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseJsonObject } from "../../src/model/json.ts";
import { runCommand } from "../helpers/command-under-test.ts";
import { group, type Manifest, machine, profile, secret, stream } from "../helpers/manifests.ts";

const mac = "52:54:00:a1:9c:ae";
const planted = "hunter2hunter2";

const absent = join(import.meta.dirname, "absent");

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-diff-"));
  await Promise.all(["before", "after"].map((name) => mkdir(join(folder, name))));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

const fromSecret = { generic: { templateFrom: { secretKeyRef: { name: "texts", key: "config" } } } };

async function put(directory: "before" | "after", manifests: readonly Manifest[]): Promise<void> {
  await writeFile(join(folder, directory, "objects.yaml"), stream(manifests));
}

/** Compares a directory with manifests from standard input. */
async function diff(before: readonly Manifest[], after: readonly Manifest[], ...words: readonly string[]) {
  await put("before", before);
  return await run(["--from", join(folder, "before"), ...words], stream(after));
}

async function run(words: readonly string[], input = "") {
  const { code, output, errors } = await runCommand(["diff", ...words], { input: [input] });
  return { code, output: output.replaceAll(folder, ""), errors: errors.replaceAll(folder, "") };
}

/** The report as JSON. */
async function report(before: readonly Manifest[], after: readonly Manifest[], ...words: readonly string[]) {
  const { output, errors } = await diff(before, after, "--output", "json", ...words);
  expect(errors).toBe("");
  return parseJsonObject(output);
}

const installer = profile("installer", { effect: "Install" });
const fleet = Array.from({ length: 200 }, (_, at) => {
  const last = at.toString(16).padStart(2, "0");
  return machine(`node-${last}`, `52:54:00:00:00:${last}`, { zone: "b", rack: at < 3 ? "r1" : "r2" });
});
const web = [profile("web"), group("web", { zone: "b" })];
const narrow = group("installer", { zone: "b", rack: "r1" }, { priority: 10 });
const wide = group("installer", { zone: "b" }, { priority: 10 });

describe("a selector that takes 197 machines more for an installer", () => {
  const before = [...web, ...fleet, installer, narrow];
  const after = [...web, ...fleet, installer, wide];

  it("stands out, with what the machines get instead", async () => {
    const { output, code } = await diff(before, after);
    expect(output).toContain("!! Group racks/installer: more destructive\n");
    expect(output).toContain("selector: rack=r1,zone=b -> zone=b (it widens: ");
    expect(output).toContain(
      "!! gains 197 machines from Group racks/web: Profile racks/web -> racks/installer, Boot -> Install\n" +
        "      mac=52:54:00:00:00:03, mac=52:54:00:00:00:04, ",
    );
    expect(output).toContain(" and 187 more\n");
    expect(output).toContain("        -kernel /assets/web/vmlinuz\n        +kernel /assets/installer/vmlinuz\n");
    expect(output).toContain("Group racks/web\n   loses 197 machines to Group racks/installer\n");
    expect(output).toContain(
      "2 Groups differ (1 more destructive), 200 of 200 known machines get something else, " +
        "197 of them something more destructive\n",
    );
    expect(code).toBe(0);
  });

  it("is one object for programs, with each machine's name", async () => {
    const json = await report(before, after);
    expect(json).toMatchObject({
      differs: true,
      machines: { known: 200, changed: 200, moreDestructive: 197, uncertain: 0 },
      groups: [
        { group: "racks/installer", kind: "changed", moreDestructive: true },
        { group: "racks/web", moreDestructive: false, losses: [{ to: "racks/installer", machines: 197 }] },
      ],
    });
    expect(JSON.stringify(json)).toContain('"mac=52:54:00:00:00:c7"');
  });

  it("is a comment for a pull request", async () => {
    const { output } = await diff(before, after, "--output", "markdown");
    expect(output).toMatch(/^### davit diff\n\n2 Groups differ \(1 more destructive\), 200 of 200 known machines get/);
    expect(output).toContain(
      "| **more destructive** | `racks/installer` | gains 197 machines from Group racks/web<br>keeps 3 machines | " +
        "Boot -&gt; Install<br>Install |\n",
    );
    expect(output).toContain("```diff\n--- before/ipxe\n+++ after/ipxe\n");
    expect(output.length).toBeLessThan(65_536);
  });
});

describe("the exit code", () => {
  const same = [...web, machine("node", mac, { zone: "b" })];
  const other = [profile("web", { boot: { kernel: "/assets/new" } }), ...same.slice(1)];

  it("is 1 for a difference only if asked", async () => {
    expect((await diff(same, other)).code).toBe(0);
    expect((await diff(same, other, "--exit-code")).code).toBe(1);
  });

  it("is 0 without a difference", async () => {
    const { code, output } = await diff(same, same, "--exit-code");
    expect([code, output]).toEqual([0, expect.stringContaining("no differences for 1 machine\n")]);
  });

  it.each([
    ["a directory that is not there", ["--from", absent], `No file or directory "${absent}"`],
    ["a file that is no backup", ["--from", import.meta.filename], "Reading "],
    ["a form that davit does not know", ["--output", "xml"], "--output"],
  ])("is 2 for %s", async (_, words, message) => {
    await put("before", same);
    const { code, output, errors } = await run(["--manifests", join(folder, "before"), ...words, "--exit-code"]);
    expect([code, output, errors]).toEqual([2, "", expect.stringContaining(message)]);
  });

  it("is 2 for manifests that cannot be read, and says where", async () => {
    await put("before", same);
    await writeFile(join(folder, "after/broken.yaml"), `kind: [${planted}`);
    const { code, output, errors } = await run([
      ...["--manifests", join(folder, "after"), "--from", join(folder, "before"), "--exit-code"],
    ]);
    expect([code, output]).toEqual([2, ""]);
    expect(errors).toMatch(/^broken.yaml, document 1 \(line 1\): The file cannot be read/);
    expect(errors).toContain("Nothing is compared because of 1 problem: correct the manifests");
    expect(errors).not.toContain(planted);
  });

  it("is 2 for an object that davit refuses", async () => {
    const { code, errors } = await diff(same, [...same, group("high", { mac }, { priority: 5_000 })], "--exit-code");
    expect([code, errors]).toEqual([
      2,
      expect.stringContaining("Group racks/high, spec.priority (line 7): must be 1000 or less"),
    ]);
  });
});

describe("what is destructive", () => {
  const node = machine("node", mac, { zone: "b" });

  it("is a Profile that begins to install", async () => {
    const json = await report(
      [...web, node],
      [profile("web", { effect: "Install" }), group("web", { zone: "b" }), node],
    );
    expect(json).toMatchObject({
      machines: { moreDestructive: 1 },
      groups: [{ moreDestructive: true, changes: [{ before: { effect: "Boot" }, after: { effect: "Install" } }] }],
    });
  });

  it("is a removed Group, if its machines then fall to an installer", async () => {
    const rest = [installer, group("installer", {}, { selector: { matchLabels: { rack: "r1" } } })];
    const one = machine("node", mac, { zone: "b", rack: "r1" });
    const json = await report(
      [...web.slice(0, 1), group("web", { zone: "b" }, { priority: 5 }), one, ...rest],
      [profile("web"), one, ...rest],
    );
    expect(json).toMatchObject({
      machines: { moreDestructive: 1 },
      groups: [
        { group: "racks/installer", moreDestructive: true },
        { group: "racks/web", kind: "removed" },
      ],
    });
  });

  it("is a hold that ends", async () => {
    const held = group("installer", { zone: "b" }, { hold: true });
    const json = await report([installer, held, node], [installer, group("installer", { zone: "b" }), node]);
    expect(json).toMatchObject({ machines: { moreDestructive: 1 }, groups: [{ moreDestructive: true }] });
  });

  it("is an installer for machines that nobody knows yet", async () => {
    const json = await report(web, [...web, installer, group("installer", { rack: "r9" })]);
    expect(json).toMatchObject({
      machines: { known: 0, changed: 0 },
      groups: [{ group: "racks/installer", kind: "added", moreDestructive: true, changes: [{ sample: "rack=r9" }] }],
    });
  });

  it("is not a config that changes, nor an installer that ends", async () => {
    const wasInstalled = [profile("web", { effect: "Install" }), group("web", { zone: "b" }), node];
    const json = await report(wasInstalled, [...web, node]);
    expect(json).toMatchObject({ differs: true, machines: { changed: 1, moreDestructive: 0 } });
  });
});

describe("a text of a Secret", () => {
  const objects = (text: string) => [
    profile("web", { ...fromSecret, ...(text === "" ? { generic: { inline: "public\n" } } : {}) }),
    group("web", { mac }),
    ...(text === "" ? [] : [secret(text)]),
  ];

  it.each([
    ["that changes", `first ${planted}\n`, `second ${planted}\n`, "differs: not shown"],
    ["that replaces another text", "", `second ${planted}\n`, "the new text is from Secret"],
    ["that another text replaces", `first ${planted}\n`, "", "the old text was from Secret"],
  ])("%s shows as changed, without its bytes", async (_, before, after, note) => {
    const { code, output, errors } = await diff(objects(before), objects(after), "--exit-code");
    expect([code, output]).toEqual([1, expect.stringContaining(note)]);
    expect(output + errors).not.toContain(planted);
  });

  it.each(["json", "markdown"])("is in no report as %s", async (form) => {
    const { output } = await diff(objects(`first ${planted}\n`), objects(`second ${planted}\n`), "--output", form);
    expect(output).toContain("differs: not shown");
    expect(output).not.toContain(planted);
  });

  it("that prints another variable may differ", async () => {
    const text = `{{disk}} ${planted}\n`;
    const with_ = (disk: string) => [
      objects(text)[0] ?? {},
      group("web", { mac }, { metadata: { disk } }),
      secret(text),
    ];
    const { output } = await diff(with_("/dev/sda"), with_("/dev/sdb"));
    expect(output).toContain("is the same and its variables differ: it may differ, not shown");
    expect(output).not.toContain(planted);
  });

  it("that is not among the manifests counts as unchanged, and a note says so", async () => {
    const [first = {}, second = {}] = objects(planted);
    const { code, output } = await diff(objects(planted), [first, second], "--exit-code");
    expect([code, output]).toEqual([
      0,
      expect.stringContaining(
        "note: Profile racks/web, spec.generic: Secret racks/texts is not among the manifests: " +
          "its text is taken as unchanged\n",
      ),
    ]);
  });
});

it("an object that davit would not serve is named, and machines keep what they have", async () => {
  const node = machine("node", mac, { zone: "b" });
  const broken = [profile("web", { generic: { inline: "{{#if}}" } }), group("web", { zone: "b" }), node];
  const { output } = await diff([...web, node], broken);
  expect(output).toMatch(/note: Profile racks\/web is not ready: InvalidTemplate: /);
  expect(output).toContain("no differences for 1 machine\n");
});

it("objects that the manifests do not define are removed, or stay with --partial", async () => {
  const node = machine("node", mac, { zone: "b" });
  const more = [profile("db"), group("db", { zone: "c" })];
  expect(await report([...web, node], [...more, node])).toMatchObject({
    groups: [
      { group: "racks/db", kind: "added" },
      { group: "racks/web", kind: "removed" },
    ],
  });
  expect(await report([...web, node], more, "--partial")).toMatchObject({
    machines: { known: 1, changed: 0 },
    groups: [{ group: "racks/db", kind: "added" }],
  });
});

it("nothing of a manifest becomes markup of the comment, or a command of the terminal", async () => {
  const evil = "</details>\n```\n@everyone <img src=x> \u001b[2J";
  const before = [profile("web", { generic: { inline: "fine\n" } }), group("web", { mac })];
  const after = [profile("web", { generic: { inline: `${evil}\n` } }), group("web", { mac })];
  const { output } = await diff(before, after, "--output", "markdown");
  expect(output).toContain("````diff\n");
  expect(output.match(/<\/details>/g)).toHaveLength(2);
  expect((await diff(before, after)).output).not.toContain("\u001b");
  const named = [profile("web"), group("web", { rack: "\u009b2J\u202e" }, { metadata: { "\u001b[2J": 1 } })];
  const shown = (await diff(before, named)).output;
  expect(shown).toContain("\\u{9b}2J");
  for (const character of ["\u001b", "\u009b", "\u202e"]) expect(shown).not.toContain(character);
});
