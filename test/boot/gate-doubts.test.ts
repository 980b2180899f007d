/** Doubts that concern a machine with a permit: objects that are changing, and a Machine that was changed a moment ago. */

import { describe, expect, it } from "vitest";
import type { ProfileContent } from "../../src/model/objects/profile.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { answerOf, entry, gateWorld, grant, mac, machineDocument, machineTombstone, plan } from "./gate-world.ts";
import type { Documents } from "./open-index.ts";

const asMac = "mac=52-54-00-a1-9c-ae";
const content: Partial<ProfileContent> = {
  effect: "Install",
  install: plan,
  boot: { kind: "kernel", kernel: "/installer", initrd: [], args: [], efiInitrd: false },
  templates: { generic: { kind: "text", text: "{{davit.report}}", raw: false } },
};
const profile = profileDocument("lab/web", content);
const group = () => groupDocument("lab/node", { selector: { mac }, install: grant() });
const synced = syncedDocument();
const changed = ([path, text]: Documents[number]) => ({ path, text });
/** A selector that names no machine. */
const role = { selector: { role: "web" } };

describe("a machine with a permit", () => {
  it("gets neither its script again nor a config while objects are changing, after its claim", async () => {
    const { configs, ledger, index } = gateWorld([profile, group(), synced]);
    ledger.entries.push(entry({ state: "Claimed" }));
    const answers = () => Promise.all([answerOf(configs, asMac), answerOf(configs, asMac, "generic")]);
    expect(await answers()).not.toContainEqual(expect.stringMatching(/^changing/));
    index.changed([changed(syncedDocument({ changing: true }))]);
    expect((await answers()).map((each) => each.slice(0, 8))).toEqual(["changing", "changing"]);
  });

  it.each<[name: string, documents: Documents, answer: RegExp]>([
    [
      "its Machine has an open grant",
      [groupDocument("lab/node", role), machineDocument("lab/m", { install: grant() })],
      /^kernel/,
    ],
    ["its Group names it and has an open grant", [group()], /^kernel/],
    [
      "its Group has a grant and does not name it",
      [groupDocument("lab/node", { ...role, install: grant() })],
      /^doubtful/,
    ],
    [
      "no grant is open",
      [groupDocument("lab/node", role), machineDocument("lab/m", { install: grant(1, { ledger: "x" }) })],
      /^doubtful/,
    ],
  ])("after a change of its Machine, if %s", async (_, documents, answer) => {
    const stone = machineTombstone("lab/m", { identities: [`mac/${mac}`] });
    const { configs } = gateWorld([profile, ...documents, stone, synced]);
    const query = `${asMac}&role=web`;
    expect(await answerOf(configs, query)).toMatch(answer);
    expect(await answerOf(configs, query, "generic")).toMatch(answer.test("kernel") ? /report/ : answer);
  });
});
