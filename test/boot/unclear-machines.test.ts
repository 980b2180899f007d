/** Requests that may be of one machine or of another: nothing installs, and an installed machine boots its disk. */

import { describe, expect, it } from "vitest";
import type { LedgerEntry } from "../../src/model/permits/permit.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { answerOf, entry, type GateWorld, gateWorld, grant, mac, machineDocument, plan, uuid } from "./gate-world.ts";
import type { Documents } from "./open-index.ts";

const disk = "sanboot --no-describe --drive 0x80 || exit";
const installer = "kernel /installer";
const otherMac = "52:54:00:00:00:02";
const otherUuid = uuid.replace("4c4c", "4c4d");
const boot = { kind: "kernel", kernel: "/installer", initrd: [], args: [], efiInitrd: false } as const;
const profile = profileDocument("lab/web", { effect: "Install", install: plan, boot });
const node = groupDocument("lab/node", { matchAll: true, install: grant(2, { scope: "All" }) });
const whole = [`uuid/${uuid}`, `mac/${mac}`];

function worldOf(entries: readonly Partial<LedgerEntry>[], documents: Documents = []): GateWorld {
  const world = gateWorld([profile, node, syncedDocument(), ...documents]);
  world.ledger.entries = entries.map((each, at) => entry({ id: `${at}`.repeat(16), identities: whole, ...each }));
  return world;
}

describe("a request that contradicts its Machine", () => {
  const machine = machineDocument("lab/m", { identities: whole });

  it.each<[name: string, state: LedgerEntry["state"] | undefined, query: string, answer: string]>([
    ["an installed machine with another card boots its disk", "Installed", `uuid=${uuid}&mac=${otherMac}`, disk],
    ["an installed machine with another board boots its disk", "Installed", `uuid=${otherUuid}&mac=${mac}`, disk],
    ["one that ended without a report boots its disk", "Unconfirmed", `uuid=${uuid}&mac=${otherMac}`, disk],
    ["a failed one waits", "Failed", `uuid=${uuid}&mac=${otherMac}`, "ambiguous"],
    ["one that installs waits", "Installing", `uuid=${uuid}&mac=${otherMac}`, "ambiguous"],
    ["an unknown one waits", undefined, `uuid=${uuid}&mac=${otherMac}`, "ambiguous"],
    ["without a contradiction the grant is open", "Installed", `uuid=${uuid}&mac=${mac}`, installer],
  ])("%s", async (_, state, query, answer) => {
    const { configs, desk } = worldOf(state === undefined ? [] : [{ state }], [machine]);
    expect(await answerOf(configs, query)).toBe(answer);
    // What was asked cannot claim anything.
    if (answer !== installer) expect(desk.asked.every(({ grants }) => grants.length === 0)).toBe(true);
  });

  it("gets no config and no metadata, and waits for a Group without a plan or with a hold", async () => {
    const { configs, index } = worldOf([{ state: "Installed" }], [machine]);
    const query = `uuid=${uuid}&mac=${otherMac}`;
    expect(await answerOf(configs, query, "generic")).toBe("ambiguous");
    expect(await answerOf(configs, query, "metadata")).toBe("ambiguous");
    for (const spec of [{ profile: "live" }, { hold: true }]) {
      const own = groupDocument("lab/own", { selector: { mac: otherMac }, ...spec });
      index.replaced([profile, profileDocument("lab/live", { boot }), node, own, machine, syncedDocument()]);
      expect(await answerOf(configs, query)).toBe("ambiguous");
    }
  });

  it("boots its disk while two Machines list it", async () => {
    const { configs } = worldOf([{ state: "Installed" }], [machine, machineDocument("lab/n")]);
    expect(await answerOf(configs, `mac=${mac}`)).toBe(disk);
    expect(await answerOf(configs, `mac=${mac}`, "generic")).toBe("ambiguous");
  });

  it("waits for a Group with approval until one of its Machines is approved", async () => {
    const guarded = groupDocument("lab/node", { matchAll: true, approval: "Required" });
    const approved = machineDocument("lab/m", { identities: whole, approved: true });
    const query = `uuid=${uuid}&mac=${otherMac}`;
    expect(await answerOf(worldOf([{ state: "Installed" }], [guarded, machine]).configs, query)).toBe("ambiguous");
    expect(await answerOf(worldOf([{ state: "Installed" }], [guarded, approved]).configs, query)).toBe(disk);
  });

  it("waits if its Machine is held", async () => {
    const held = machineDocument("lab/m", { identities: whole, hold: true });
    const { configs } = worldOf([{ state: "Installed" }], [held]);
    expect(await answerOf(configs, `uuid=${uuid}&mac=${otherMac}`)).toBe("held");
  });
});

describe("an Install with a permit", () => {
  const labelled = (value: string) => ({ labels: { role: { value } }, state: "Installed" as const });
  const entries = [
    { identities: [`mac/${mac}`], ...labelled("worker") },
    { identities: [`mac/${otherMac}`], ...labelled("db") },
  ];

  it("waits while another identity of the Machine has reported another label", async () => {
    const identities = [`mac/${mac}`, `mac/${otherMac}`];
    const machine = (labels = {}) => machineDocument("lab/m", { identities, labels });
    const { configs, index, ledger, desk } = worldOf(entries, [machine()]);
    ledger.reported.set("role", "worker");
    expect(await answerOf(configs, `mac=${mac}`)).toMatch(/^doubtful: the ledger knows a label/);
    expect(desk.asked).toEqual([]);
    index.replaced([profile, node, syncedDocument(), machine({ role: "worker" })]);
    expect(await answerOf(configs, `mac=${mac}`)).toBe(installer);
  });

  it("does not wait for what its own entry has reported", async () => {
    const { configs, ledger } = worldOf([{ identities: [`mac/${mac}`], ...labelled("worker") }]);
    ledger.reported.set("role", "worker");
    expect(await answerOf(configs, `mac=${mac}`)).toBe(installer);
  });
});
