/** Objects whose newest version is refused: what their users read, and that nothing of the version before is lost. */

import { hash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Documents } from "../../src/controller/core/documents.ts";
import { Planner } from "../../src/controller/planner.ts";
import { clearTexts } from "../../src/model/objects/secret-texts.ts";
import type { ObjectName, ObjectStatus, OwnName } from "../../src/model/objects/source.ts";
import type { Store } from "../../src/store/store.ts";
import { openStore } from "../helpers/test-store.ts";
import { FakeSource } from "./fake-source.ts";
import { groupObject, groupSpec, profileObject } from "./objects.ts";

const profile = { kind: "Profile", namespace: "default", name: "web" } as const satisfies OwnName;
const group = { kind: "Group", namespace: "default", name: "node1" } as const satisfies OwnName;
const message = "spec.boot: set exactly one of kernel, local and script, or grubScript alone";

let store: Store;
let documents: Documents;
let source: FakeSource;
let planner: Planner;

beforeEach(async () => {
  store = await openStore();
  documents = new Documents(store);
  documents.start();
  source = new FakeSource();
  restart();
});

afterEach(async () => {
  documents.stop();
  await store.stop();
});

function restart(): void {
  const sha256 = (text: string) => hash("sha256", text, "hex");
  const log = { error: () => undefined };
  const pure = { sha256, secretTexts: clearTexts(sha256), checkTemplate: () => undefined };
  planner = new Planner({ source, documents, log, ...pure, tombstoneTtlSeconds: 60 });
}

/** Reconciles some names, or everything; what is told of each, by kind. */
async function step(names: Iterable<ObjectName> = planner.names()) {
  const { planned, writes, alsoLookAt } = planner.plan(names);
  await documents.write(writes);
  const told = Object.fromEntries(planned.map(({ name, status }) => [name.kind, status && summary(status)]));
  return { told, writes: writes.map(({ path }) => path), alsoLookAt };
}

function summary({ observedGeneration, conditions }: ObjectStatus) {
  const reasons = conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]);
  const ready = conditions.find(({ type }) => type === "Ready");
  return { observedGeneration, ...Object.fromEntries(reasons), message: ready?.message };
}

const servingLastGood = {
  observedGeneration: 7,
  Accepted: "False Refused",
  ResolvedRefs: "True Resolved",
  Synced: "False ServingLastGood",
  Ready: "False Refused",
  message,
};
const neverAccepted = { ...servingLastGood, ResolvedRefs: "Unknown NotAccepted", Synced: "False NotServed" };

describe("a refused version", () => {
  it.each([profile, group])("of a $kind shows, while the version before stays", async (name) => {
    source.put(profileObject(), groupObject());
    await step();
    source.refuse(name, message, { standIns: [groupSpec()] });
    const { told } = await step();
    expect(told[name.kind]).toMatchObject(servingLastGood);
    const documentOf = {
      Profile: documents.profile("default", "web").document,
      Group: documents.group("default", "node1"),
    };
    expect(documentOf[name.kind]).toMatchObject({ outdated: true });
    source.refuse(name, undefined);
    expect((await step()).told[name.kind]).toMatchObject({ observedGeneration: 1, Ready: "True Ready" });
  });

  it("of a Profile shows after a restart, when the store alone knows the one before", async () => {
    source.put(profileObject(), groupObject());
    await step();
    restart();
    source.drop(profile).refuse(profile, message);
    const { told } = await step();
    expect(told.Profile).toMatchObject({ ...servingLastGood, ResolvedRefs: "Unknown NotAccepted" });
    expect(documents.profile("default", "web").document).toMatchObject({ outdated: true });
    expect((await step()).writes).toEqual([]);
  });

  it("of a Group of which not even the selector can be read has the machines of the one before wait", async () => {
    source.put(profileObject(), groupObject());
    await step();
    restart();
    source.drop(group).refuse(group, message);
    expect((await step()).told.Group).toMatchObject({ ...neverAccepted, ResolvedRefs: "True Resolved" });
    expect(documents.group("default", "node1")).toMatchObject({ refused: true });
    expect((await step()).writes).toEqual([]);
  });

  it("of a Profile that never was accepted shows, and its machines wait", async () => {
    source.refuse(profile, message);
    expect((await step()).told).toMatchObject({ Profile: neverAccepted });
    expect(documents.profile("default", "web").document).toMatchObject({ failed: true });
    source.refuse(profile, undefined);
    await step();
    expect(documents.profile("default", "web").document).toBeUndefined();
  });

  it("of a Group that never was accepted and has no selector shows, and nothing is stored", async () => {
    source.refuse(group, message);
    const { told, writes } = await step();
    expect(told).toMatchObject({ Group: neverAccepted });
    expect(writes).toEqual([]);
  });

  it("of a Profile is what its Groups say, and they are looked at again when it comes and goes", async () => {
    source.put(groupObject()).refuse(profile, message);
    const { told } = await step();
    expect(told.Group?.message).toBe('Profile "web" is refused, see its status: its machines are answered 503');
    source.refuse(profile, undefined);
    expect((await step([profile])).alsoLookAt).toEqual([group]);
    expect((await step([group])).told.Group?.message).toContain('Profile "web" does not exist');
    source.refuse(profile, message);
    expect((await step([profile])).alsoLookAt).toEqual([group]);
    expect((await step([profile])).alsoLookAt).toEqual([]);
  });

  it("of an object that is gone is told no more", async () => {
    source.refuse(profile, message);
    await step();
    source.refuse(profile, undefined);
    expect((await step([profile])).told).toStrictEqual({ Profile: undefined });
  });
});
