/** A permit is not spent while a file of the script is missing. Without a claim, davit checks no files. */

import { expect, it } from "vitest";
import type { BootConfigsOptions } from "../../src/boot/boot-configs.ts";
import type { ProfileContent } from "../../src/model/objects/profile.ts";
import type { DeskAsk } from "../../src/model/permits/permit-desk.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { answerOf, configsOver, entry, gateWorld, grant, mac, plan } from "./gate-world.ts";

const asMac = "mac=52-54-00-a1-9c-ae";
const boot = {
  kind: "kernel",
  kernel: "/assets/linux",
  initrd: ["/assets/initrd"],
  args: [],
  efiInitrd: false,
} as const;
const install: Partial<ProfileContent> = { effect: "Install", install: plan, boot, templates: {} };
const group = (spec: Parameters<typeof groupDocument>[1] = {}) =>
  groupDocument("lab/node", { selector: { mac }, install: grant(), ...spec });
const ungranted = groupDocument("lab/node", { selector: { mac } });
const synced = syncedDocument();
const kernel = "kernel /assets/linux";

/** The files that davit has, and each check of one. */
function shelf(...there: readonly string[]) {
  const looks: string[] = [];
  const files: BootConfigsOptions["files"] = {
    firstMissing: async (assets) => {
      looks.push(assets.map(({ location }) => location).join(" "));
      return assets.map(({ location }) => location).find((path) => !there.includes(path));
    },
  };
  return { files, looks };
}

const both = ["/assets/linux", "/assets/initrd"];

it.each(["ipxe", "grub"] as const)("no file, no claim at /%s; with the files, one", async (name) => {
  const empty = shelf("/assets/linux");
  const world = gateWorld([profileDocument("lab/web", install), group(), synced], empty);
  expect(await answerOf(world.configs, asMac, name)).toBe("assetMissing");
  expect([world.desk.asked, world.ledger.entries]).toEqual([[], []]);
  expect(empty.looks).toEqual([both.join(" ")]);
  const full = configsOver(world.index, { permits: world.desk, ...shelf(...both) });
  expect(await answerOf(full, asMac, name)).toContain("/assets/linux");
  expect(world.ledger.entries).toHaveLength(1);
});

it("checks no files without a claim", async () => {
  const { files, looks } = shelf();
  const claimed = gateWorld([profileDocument("lab/web", install), group(), synced], { files });
  claimed.ledger.entries = [entry()];
  expect(await answerOf(claimed.configs, asMac)).toBe(kernel);
  expect(await answerOf(claimed.configs, asMac, "generic")).toMatch(/^no/);
  claimed.ledger.entries = [];
  expect(await answerOf(claimed.configs, asMac, "ipxe", { mayClaim: false })).toMatch(/^noPermit/);
  claimed.ledger.entries = [entry({ state: "Installed" })];
  expect(await answerOf(claimed.configs, asMac)).toContain("sanboot");
  const closed = gateWorld([profileDocument("lab/web", install), ungranted, synced], { files });
  expect(await answerOf(closed.configs, asMac)).toMatch(/^noPermit/);
  // An installer without `install` spends nothing.
  const raw = { effect: "Install", boot, templates: {} } as const;
  const free = gateWorld([profileDocument("lab/web", raw), ungranted, synced], { files });
  expect(await answerOf(free.configs, asMac)).toBe(kernel);
  expect(looks).toEqual([]);
});

it("a Group that changes during the check gets no claim by its former grant", async () => {
  const world = gateWorld([profileDocument("lab/web", install), group(), synced]);
  const files = {
    firstMissing: async () => {
      world.index.changed([{ path: ungranted[0], text: ungranted[1] }]);
      return undefined;
    },
  };
  const configs = configsOver(world.index, { permits: world.desk, files });
  expect(await answerOf(configs, asMac)).toMatch(/^noPermit: no spec.install/);
  expect(world.ledger.entries).toEqual([]);
});

it("a desk elsewhere may know an open permit that this copy refuses: it claims only after the check", async () => {
  const documents = [profileDocument("lab/web", install), group(), synced];
  const writer = gateWorld(documents);
  const copy = gateWorld(documents);
  copy.ledger.entries = [entry({ state: "Failed" })];
  const asked: boolean[] = [];
  const ask = (question: DeskAsk) => {
    asked.push(question.mayClaim);
    return writer.desk.ask(question);
  };
  const permits = { isRemote: true, ask } as const;
  const empty = shelf();
  expect(await answerOf(configsOver(copy.index, { permits, ...empty }), asMac)).toBe("assetMissing");
  expect([asked, writer.ledger.entries]).toEqual([[false], []]);
  await answerOf(configsOver(copy.index, { permits, ...shelf(...both) }), asMac);
  expect([asked, writer.ledger.entries.length]).toEqual([[false, false, true], 1]);
  // A machine that waits costs one question and no check.
  writer.ledger.entries = [entry({ state: "Failed" })];
  const { files, looks } = shelf(...both);
  expect(await answerOf(configsOver(copy.index, { permits, files }), asMac)).toMatch(/^noPermit: .* has spent/);
  expect([asked.slice(3), looks]).toEqual([[false], []]);
});
