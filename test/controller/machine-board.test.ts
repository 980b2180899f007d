import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Sightings } from "../../src/controller/machines/sightings.ts";
import type { SourceObject } from "../../src/model/objects/source.ts";
import type { MachineSighting } from "../../src/model/sighting.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { FakeLedger } from "./fake-ledger.ts";
import { groupObject, machineObject, profileObject } from "./objects.ts";

const beganMs = new FakeClock().nowMs();
const mac = "mac/52:54:00:a1:9c:ae";
const grant = { generation: 1, ledger: "9f3c0a52", untilMs: beganMs + 3_600_000, scope: "NeverInstalled" } as const;
const installer = profileObject({ effect: "Install", install: { then: "exit", timeoutSeconds: 7_200 } });

describe("the status of a Machine", () => {
  let under: ControllerUnderTest;
  let ledger: FakeLedger;
  let sightings: Sightings;

  beforeEach(async () => {
    ledger = new FakeLedger(() => under.clock.nowMs());
    sightings = new Sightings();
    under = await ControllerUnderTest.start({ ledger, sightings });
  });

  afterEach(() => under.stop());

  async function listed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellListed();
    await under.synced;
    await under.settled();
  }

  async function saw(sighting: Partial<MachineSighting> = {}): Promise<void> {
    sightings.saw({
      identities: [mac],
      atMs: under.clock.nowMs(),
      address: "192.0.2.7",
      group: "default/node1",
      profile: "default/web",
      stage: "ipxe",
      result: "served",
      ...sighting,
    });
    await under.settled();
    await under.clock.advance(1_000);
  }

  async function entered(entry: Parameters<FakeLedger["put"]>[0]): Promise<void> {
    ledger.put(entry);
    await under.settled();
    await under.clock.advance(1_000);
  }

  const shown = (name = "node1") => under.statuses.machine(`Machine/${name}`);
  const conditions = () => under.statuses.conditions("Machine/node1");

  it("has a phase from its first list on", async () => {
    await listed(installer, groupObject(), machineObject());
    expect(shown()).toEqual({ phase: "Waiting" });
    expect(conditions()).toMatchObject({ Installed: "False NeverInstalled", Ready: "True Ready" });
    expect(await under.metrics.text()).toContain('davit_machines{phase="Waiting"} 1');
  });

  it("follows an install from the claim to the disk", async () => {
    await listed(installer, groupObject({ install: grant }), machineObject());
    await saw({ result: "noPermit" });
    expect(shown()).toMatchObject({ phase: "Permitted", group: "default/node1", profile: "default/web" });
    await entered({ state: "Claimed" });
    expect(shown()).toMatchObject({
      phase: "Installing",
      install: { generation: 1, state: "Claimed", claimedAt: expect.stringMatching(/^2026-01-01T00:00:0\dZ$/) },
    });
    expect(conditions().Installed).toBe("False Claimed");
    await entered({ state: "Installing", reported: { state: "progress", progress: 47, message: "copies", atMs: 0 } });
    expect(shown()?.reported).toEqual({ state: "progress", progress: 40, message: "copies" });
    await entered({ state: "Installed" });
    expect(shown()?.phase).toBe("Installed");
    expect(conditions().Installed).toBe("True Installed");
    await entered({ state: "Installed", reported: { state: "booted", atMs: 0 } });
    expect(shown()?.phase).toBe("Booted");
    expect(await under.metrics.text()).toContain('davit_machines{phase="Booted"} 1');
    expect(await under.metrics.text()).toContain('davit_machines{phase="Installing"} 0');
  });

  it.each([
    { state: "Failed", phase: "Failed", installed: "False Failed" },
    { state: "Unconfirmed", phase: "Unconfirmed", installed: "Unknown Unconfirmed" },
  ] as const)("shows an install that is $state", async ({ state, phase, installed }) => {
    await listed(installer, groupObject({ install: grant }), machineObject());
    await entered({ state });
    expect(shown()?.phase).toBe(phase);
    expect(conditions()).toMatchObject({ Installed: installed, Ready: "True Ready" });
  });

  it("waits without approval where the Group asks for it, and is permitted with it", async () => {
    await listed(installer, groupObject({ approval: "Required", install: grant }), machineObject());
    await saw({ result: "unapproved" });
    expect(shown()?.phase).toBe("Waiting");
    under.source.put(machineObject({ approved: true }));
    under.source.tellChanged(machineObject());
    await under.settled();
    expect(shown()?.phase).toBe("Permitted");
  });

  it("is Held by its own hold, and by that of its Group", async () => {
    await listed(profileObject(), groupObject(), machineObject());
    await saw();
    expect(shown()?.phase).toBe("Booted");
    under.source.put(groupObject({ hold: true }));
    under.source.tellChanged(groupObject());
    await under.settled();
    await under.clock.advance(1_000);
    expect(shown()?.phase).toBe("Held");
  });

  it("shows its own grant, which another generation may reopen", async () => {
    await listed(installer, groupObject(), machineObject({ install: grant }));
    expect(conditions().Permitted).toBe("True Open");
    await entered({ state: "Failed", spent: { "machine/default/node1": 1 } });
    expect(conditions().Permitted).toBe("False Spent");
    expect(under.statuses.message("Machine/node1", "Permitted")).toContain(
      'kubectl patch machines.davit.dev node1 -n default --type=merge -p \'{"spec":{"install":{"generation":2,',
    );
    await entered({ state: "Installed", spent: {} });
    expect(conditions().Permitted).toBe("False Installed");
    expect(under.statuses.message("Machine/node1", "Permitted")).not.toContain("kubectl");
  });

  it("shows when its grant ends, without another change", async () => {
    await listed(installer, groupObject(), machineObject({ install: grant }));
    await under.clock.advance(3_600_000 + 2_000);
    expect(conditions().Permitted).toBe("False Ended");
    expect(shown()?.phase).toBe("Waiting");
  });

  it("shows a new ledger", async () => {
    await listed(installer, groupObject(), machineObject({ install: grant }));
    ledger.id = "deadbeef";
    await under.clock.advance(2_000);
    expect(conditions().Permitted).toBe("False Asleep");
  });

  it("says when it was seen in steps of ten minutes, and is not written for each request", async () => {
    await listed(profileObject(), groupObject(), machineObject());
    await saw();
    expect(shown()).toMatchObject({ lastSeen: "2026-01-01T00:00:00Z", address: "192.0.2.7", boot: { stage: "ipxe" } });
    const { writes } = under.statuses;
    for (let at = 0; at < 60; at++) await saw({ stage: at % 2 === 0 ? "ipxe" : "ignition", address: `192.0.2.${at}` });
    expect(under.statuses.writes).toBe(writes);
    await under.clock.advance(600_000);
    await saw({ stage: "ignition" });
    expect(shown()).toMatchObject({ lastSeen: "2026-01-01T00:10:00Z", boot: { stage: "ignition", result: "served" } });
  });

  it("shows the digest of its last script, which adds no writes", async () => {
    const [first, second] = ["a".repeat(64), "b".repeat(64)];
    await listed(profileObject(), groupObject(), machineObject());
    await saw({ script: { sha256: first, atMs: under.clock.nowMs() } });
    expect(shown()).toMatchObject({ rendered: first });
    const { writes } = under.statuses;
    for (let at = 0; at < 30; at++)
      await saw({ script: { sha256: at % 2 === 0 ? first : second, atMs: under.clock.nowMs() } });
    await saw({ stage: "ignition" });
    expect(under.statuses.writes).toBe(writes);
    await under.clock.advance(600_000);
    await saw({ stage: "ignition" });
    expect(shown()).toMatchObject({ lastSeen: "2026-01-01T00:10:00Z", rendered: second });
  });

  it("names another Machine that a request mixed it up with, and stays ready", async () => {
    const uuid = "uuid/4c4c4544-0034-3510-8054-b4c04f4d4e32";
    await listed(profileObject(), groupObject(), machineObject(), machineObject({ identities: [uuid] }, "node2"));
    await saw({ identities: [uuid, mac], result: "ambiguous" });
    expect(conditions()).toMatchObject({ Identified: "False Ambiguous", Ready: "True Ready" });
    expect(under.statuses.message("Machine/node1", "Identified")).toContain("Machine default/node2");
    await saw();
    expect(conditions().Identified).toBe("True Identified");
  });

  it("shows nothing of a request that contradicts it, or has an identity of another Machine", async () => {
    const [uuid, other] = ["4c4c4544-0034", "4c4c4544-0035"].map((start) => `uuid/${start}-3510-8054-b4c04f4d4e32`);
    if (uuid === undefined || other === undefined) throw new Error("two uuids");
    await listed(profileObject(), groupObject(), machineObject({ identities: [uuid, mac] }));
    await saw({ identities: [uuid, mac], address: "192.0.2.7" });
    await under.clock.advance(600_000);
    await saw({ identities: [other, mac], address: "192.0.2.66", result: "ambiguous" });
    expect(shown()).toMatchObject({
      lastSeen: "2026-01-01T00:00:00Z",
      address: "192.0.2.7",
      boot: { result: "served" },
    });
    expect(conditions().Identified).toBe("False Ambiguous");
  });

  it("is written at a bounded rate when ten thousand machines ask at once", { timeout: 60_000 }, async () => {
    const hex = (at: number) =>
      `52:54:00:00:${(at >> 8).toString(16).padStart(2, "0")}:${(at & 255).toString(16).padStart(2, "0")}`;
    const machines = Array.from({ length: 2_000 }, (_, at) =>
      machineObject({ identities: [`mac/${hex(at)}`] }, `node-${at}`),
    );
    await listed(profileObject(), groupObject(), ...machines);
    await under.clock.advance(20_000);
    const { writes } = under.statuses;
    for (const { spec } of machines) {
      sightings.saw({ identities: spec.identities, atMs: under.clock.nowMs(), stage: "ipxe", result: "served" });
    }
    await under.clock.advance(10_000);
    expect(under.statuses.writes - writes).toBeLessThanOrEqual(500 + 10 * 50);
    await under.clock.advance(30_000);
    expect(under.statuses.writes - writes).toBe(2_000);
  });

  it("ends its work with the controller", async () => {
    await listed(profileObject(), groupObject(), machineObject());
    expect(ledger.listenerCount).toBe(1);
    await under.stop();
    expect(ledger.listenerCount).toBe(0);
    under = await ControllerUnderTest.start();
  });
});

describe("sightings", () => {
  it("keep the newest, and no more than their limit", () => {
    const sightings = new Sightings(4);
    for (let at = 0; at < 100; at++) {
      sightings.saw({ identities: [`mac/${at}`], atMs: at, stage: "ipxe", result: "served" });
    }
    expect(sightings.of(["mac/95"])).toBeUndefined();
    expect(sightings.of(["mac/96"])?.atMs).toBe(96);
    expect(sightings.of(["mac/97", "mac/98"])?.atMs).toBe(98);
  });
});
