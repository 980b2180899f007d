/** Texts of Secrets that are encrypted in the store, and what machines get of them. */

import { describe, expect, it } from "vitest";
import { BootConfigs, type ConfigName } from "../../src/boot/boot-configs.ts";
import { BootError } from "../../src/boot/core/boot-error.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { secretPath } from "../../src/model/objects/documents.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ProfileContent } from "../../src/model/objects/profile.ts";
import { ChangingTexts, textKey } from "../helpers/text-keys.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { answerOf, entry, gateWorld, grant, mac, plan } from "./gate-world.ts";
import { type Documents, log, refusal } from "./open-index.ts";

const text = "join-token-4711";
const [first, second] = [1, 2];
const writer = new ChangingTexts(first);
const path = secretPath("lab", "web", writer.nameOf(text));
const node = groupDocument("lab/node", { selector: { serial: "1" } });

const generic = { kind: "secret", name: "s", key: "k", sha256: writer.nameOf(text), raw: true } as const;

function profile(content: Partial<ProfileContent> = {}): Documents[number] {
  const boot = { kind: "kernel", kernel: "/vmlinuz", initrd: [], args: [], efiInitrd: false } as const;
  return profileDocument("lab/web", { boot, templates: { generic }, ...content });
}

function indexOf(documents: Documents, secretReader = new ChangingTexts(first)) {
  const index = new BootIndex({ log, secretReader });
  index.replaced([...documents, node, syncedDocument()]);
  index.open();
  return index;
}

function config(index: BootIndex, name: ConfigName = "generic"): string {
  const configs = new BootConfigs({
    index,
    authority: "192.0.2.1:8080",
    grub: { separator: "auto", commands: "auto" },
  });
  try {
    const request = { labels: labelsFromQuery("serial=1"), rawQuery: "serial=1", userAgent: "" };
    return configs.render(name, request).rendered.body;
  } catch (error) {
    if (error instanceof BootError) return `${error.reason}: ${error.problem}`;
    throw error;
  }
}

const stored: Documents[number] = [path, writer.encode(path, text)];

describe("an encrypted text", () => {
  it("is served with its key, wherever the key is in the file", () => {
    expect(config(indexOf([profile(), stored]))).toBe(text);
    expect(config(indexOf([profile(), stored], new ChangingTexts(second, first)))).toBe(text);
  });

  it.each<[name: string, keys: readonly number[]]>([
    ["any key", []],
    ["its key", [second]],
  ])("makes its machines wait without %s, and the reason names the key and the option", (_, keys) => {
    const index = indexOf([profile(), stored], new ChangingTexts(...keys));
    const problem =
      `spec.generic: it is encrypted with key ${textKey(first).id}, which is not here: ` +
      "put this key into the file of --secrets-key-file";
    expect(config(index)).toBe(`undecryptable: ${problem}`);
    expect(index.undecryptable).toEqual([`Profile lab/web: ${problem}`]);
    // What needs no Secret is served.
    expect(config(index, "ipxe")).toContain("kernel /vmlinuz");
  });

  it("makes its machines wait if a byte of it was changed", () => {
    const bytes = Buffer.from(stored[1], "base64");
    for (const at of bytes.keys()) {
      const changed = Buffer.from(bytes).fill((bytes[at] ?? 0) ^ 0x80, at, at + 1);
      expect(config(indexOf([profile(), [path, changed.toString("base64")]]))).toContain("undecryptable: ");
    }
    for (const other of ["", text, stored[1].slice(0, 40)])
      expect(config(indexOf([profile(), [path, other]]))).toContain("undecryptable: ");
  });

  it("makes its machines wait if it is the text of another path: of a Profile, or of an older version", () => {
    const ofOther = secretPath("lab", "other", writer.nameOf(text));
    const ofOlder = secretPath("lab", "web", writer.nameOf("older"));
    const moved = [writer.encode(ofOther, text), writer.encode(ofOlder, "older")];
    for (const each of moved) expect(config(indexOf([profile(), [path, each]]))).toContain("undecryptable: ");
  });

  it("makes its machines wait if a later davit encrypted it", () => {
    const name = `encrypted-2-${"0".repeat(80)}`;
    const index = indexOf([
      profile({ templates: { generic: { ...generic, sha256: name } } }),
      [secretPath("lab", "web", name), "{}"],
    ]);
    expect(config(index)).toBe("undecryptable: spec.generic: a later davit encrypted it: start that davit");
  });

  it("is served as soon as its key comes, and no longer once its key goes", () => {
    const keys = new ChangingTexts();
    const index = indexOf([profile(), stored], keys);
    const answers = [[first], [second], [second, first], []].map((numbers) => {
      keys.change(...numbers);
      index.keysChanged();
      return config(index).split(":")[0];
    });
    expect(answers).toEqual([text, "undecryptable", text, "undecryptable"]);
  });
});

it("An Install waits as a whole while one of its texts cannot be decrypted, and no other Profile waits", () => {
  const keys = new ChangingTexts();
  const other = [
    profileDocument("lab/other", { effect: "Install" }),
    groupDocument("lab/b", { selector: { serial: "2" }, profile: "other" }),
  ];
  const index = indexOf([profile({ effect: "Install" }), stored, ...other], keys);
  expect([refusal(index, "serial=1"), refusal(index, "serial=2")]).toEqual(["undecryptable", undefined]);
  keys.change(first);
  index.keysChanged();
  expect(refusal(index, "serial=1")).toBeUndefined();
});

describe("an install that needs a permit, with a text that cannot be decrypted", () => {
  const install = { effect: "Install", install: plan } as const;
  const granted = { selector: { mac }, install: grant() };
  const asked = `mac=${mac}`;

  function world(group: Partial<GroupSpec> = granted) {
    const keys = new ChangingTexts();
    const documents = [profile(install), stored, groupDocument("lab/node", group), syncedDocument()];
    return { keys, ...gateWorld(documents, {}, { secretReader: keys }) };
  }

  it("spends no permit, and is granted when the key comes", async () => {
    const { keys, index, configs, ledger, desk } = world();
    for (const name of ["ipxe", "grub", "generic"] as const)
      expect(await answerOf(configs, asked, name)).toContain("undecryptable: ");
    expect([desk.asked, ledger.entries]).toEqual([[], []]);
    keys.change(first);
    index.keysChanged();
    expect(await answerOf(configs, asked)).toContain("kernel");
    expect(await answerOf(configs, asked, "generic")).toBe(text);
    expect(ledger.entries).toHaveLength(1);
  });

  it("stays held by its Group, and boots from its disk once it is over", async () => {
    expect(await answerOf(world({ ...granted, hold: true }).configs, asked)).toBe("held");
    const { configs, ledger } = world();
    ledger.entries = [entry({ state: "Installed" })];
    expect(await answerOf(configs, asked)).toContain("sanboot");
  });
});

it("A text of another source is served while the text of a Secret cannot be decrypted", () => {
  const cloudConfig = { kind: "text", text: "#cloud-config\n", raw: true } as const;
  const index = indexOf([profile({ templates: { generic, cloudConfig } }), stored], new ChangingTexts());
  expect([config(index, "cloud"), config(index)]).toEqual([
    "#cloud-config\n",
    expect.stringContaining("undecryptable: "),
  ]);
});
