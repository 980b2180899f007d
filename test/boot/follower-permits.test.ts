import { describe, expect, it } from "vitest";
import { permitAnswers } from "../../src/boot/follower-permits.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { PermitQuestion } from "../../src/model/permits/permit-wire.ts";
import { groupDocument, profileDocument, syncedDocument } from "./feed-documents.ts";
import { entry, type GateWorld, gateWorld, grant, mac, plan } from "./gate-world.ts";
import type { Documents } from "./open-index.ts";

const rawQuery = "mac=52-54-00-a1-9c-ae";
const asked = { rawQuery, purpose: "script", mayClaim: true } as const;
const profile = profileDocument("lab/web", { effect: "Install", install: plan });
const group = (spec: Partial<GroupSpec> = {}) =>
  groupDocument("lab/node", { selector: { mac }, install: grant(), ...spec });
const chosen = { group: "lab/node", profile: "lab/web" };
const changed = ([path, text]: Documents[number]) => ({ path, text });

const permit = ({ index, desk }: GateWorld, question: PermitQuestion) =>
  permitAnswers({ index, desk: { ask: (each) => desk.ask(each), report: async () => "late" } }).permit(question);

describe("the question of a follower", () => {
  it("is decided by the writer's objects and its ledger", async () => {
    const world = gateWorld([profile, group(), syncedDocument()]);
    expect(await permit(world, { ...asked, mayClaim: false })).toMatchObject({
      kind: "refused",
      ...chosen,
    });
    expect(await permit(world, { ...asked, address: "192.0.2.9" })).toMatchObject({
      kind: "granted",
      ...chosen,
    });
    expect(world.desk.asked.at(-1)).toMatchObject({ address: "192.0.2.9", mayClaim: true, rawQuery });
    world.ledger.entries = [entry({ state: "Installed" })];
    expect(await permit(world, asked)).toEqual({ kind: "disk", ...chosen });
  });

  it.each<[name: string, documents: Documents, query: string]>([
    ["a held Group", [profile, group({ hold: true })], rawQuery],
    ["no Group", [profile], rawQuery],
    ["a Profile without a plan", [profileDocument("lab/web", { effect: "Install" }), group()], rawQuery],
    ["half a view", [profile, group(), syncedDocument({ half: true })], rawQuery],
    ["objects that are changing", [profile, group(), syncedDocument({ changing: true })], rawQuery],
    ["too many labels", [profile, group()], Array.from({ length: 300 }, (_, at) => `l${at}=`).join("&")],
  ])("is late for %s, and spends nothing", async (_, documents, query) => {
    const world = gateWorld([syncedDocument(), ...documents]);
    expect(await permit(world, { ...asked, rawQuery: query })).toEqual({ kind: "late" });
    expect(world.desk.asked).toEqual([]);
  });

  it("is late if the objects change meanwhile", async () => {
    const world = gateWorld([profile, group(), syncedDocument()]);
    world.desk.meanwhile = () => world.index.changed([changed(group({ hold: true }))]);
    expect(await permit(world, asked)).toEqual({ kind: "late" });
  });
});
