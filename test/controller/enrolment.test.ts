import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { MachineMaker } from "../../src/controller/core/controller-ports.ts";
import { Sightings } from "../../src/controller/machines/sightings.ts";
import type { SourceObject } from "../../src/model/objects/source.ts";
import type { MachineSighting } from "../../src/model/sighting.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, machineObject, profileObject } from "./objects.ts";

const dayMs = 24 * 3_600_000;
const uuid = "uuid/4c4c4544-0034-3510-8054-b4c04f4d4e32";
const enrolling = groupObject({ selector: {}, matchAll: true, enroll: true });

function macOf(at: number): string {
  const hex = at.toString(16).padStart(6, "0");
  return `mac/52:54:00:${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4)}`;
}

/** Stands for the API server: it puts what davit creates into the source. */
class FakeMaker implements MachineMaker {
  readonly created: string[] = [];
  readonly deleted: string[] = [];
  isAway = false;
  readonly #under: () => ControllerUnderTest;

  constructor(under: () => ControllerUnderTest) {
    this.#under = under;
  }

  create({ namespace, name, identity }: Parameters<MachineMaker["create"]>[0]): Promise<"created"> {
    if (this.isAway) return Promise.reject(new Error("no API server"));
    this.created.push(name);
    const { uuid: own, macs = [] } = identity;
    const identities = [...(own === undefined ? [] : [`uuid/${own}`]), ...macs.map((mac) => `mac/${mac}`)];
    const machine = { ...machineObject({ identities }, name), namespace };
    this.#under().source.put(machine);
    this.#under().source.tellChanged(machine);
    return Promise.resolve("created");
  }

  deleteUntouched({ namespace, name }: Parameters<MachineMaker["deleteUntouched"]>[0]): Promise<string> {
    this.deleted.push(name);
    const id = { kind: "Machine", namespace, name } as const;
    this.#under().source.drop(id);
    this.#under().source.tellChanged(id);
    return Promise.resolve("deleted");
  }
}

describe("enrolment", () => {
  let under: ControllerUnderTest;
  let sightings: Sightings;
  let maker: FakeMaker;

  beforeEach(async () => {
    sightings = new Sightings();
    maker = new FakeMaker(() => under);
    under = await ControllerUnderTest.start({ sightings, machineMaker: maker });
  });

  afterEach(() => under.stop());

  async function listed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellListed();
    await under.synced;
    await under.settled();
  }

  function saw(identities: readonly string[], sighting: Partial<MachineSighting> = {}): void {
    const atMs = under.clock.nowMs();
    sightings.saw({ identities, atMs, group: "default/node1", stage: "ipxe", result: "unapproved", ...sighting });
  }

  async function metric(text: string): Promise<void> {
    expect(await under.metrics.text()).toContain(text);
  }

  it("creates a Machine for an unknown machine, once, with all of its identities", async () => {
    await listed(profileObject(), enrolling);
    saw([uuid, macOf(1)]);
    saw([uuid, macOf(1)]);
    await under.settled();
    saw([macOf(1)]);
    saw([uuid]);
    await under.settled();
    expect(maker.created).toEqual(["mac-525400000001"]);
    expect(under.statuses.conditions("Machine/mac-525400000001")).toMatchObject({ Approved: "False NotApproved" });
    expect(under.stored("/davit/machines/default/")[0]).toContain(uuid);
  });

  it("names a machine without a MAC address by its uuid", async () => {
    await listed(profileObject(), enrolling);
    saw([uuid]);
    await under.settled();
    expect(maker.created).toEqual(["uuid-4c4c4544-0034-3510-8054-b4c04f4d4e32"]);
  });

  it("creates nothing for a known machine, without enroll, or for a Group that is refused", async () => {
    await listed(profileObject(), enrolling, groupObject({}, "node2"), machineObject({ identities: [macOf(7)] }));
    saw([macOf(7)]);
    saw([macOf(8)], { group: "default/node2" });
    saw([macOf(8)], { group: "default/none" });
    sightings.saw({ identities: [macOf(8)], atMs: 0, stage: "ipxe", result: "notFound" });
    under.source.refuse({ kind: "Group", namespace: "default", name: "node1" }, "no", { standIns: [enrolling.spec] });
    under.source.tellChanged(enrolling);
    await under.settled();
    saw([macOf(9)]);
    await under.settled();
    expect(maker.created).toEqual([]);
  });

  it("creates 50 at once, then 5 a second, and counts the others", async () => {
    await listed(profileObject(), enrolling);
    for (let at = 0; at < 200; at++) saw([macOf(at)]);
    await under.settled();
    expect(maker.created).toHaveLength(50);
    await metric('davit_enrolments_refused_total{reason="rate"} 150');
    await under.clock.advance(2_000);
    for (let at = 0; at < 200; at++) saw([macOf(at)]);
    await under.settled();
    expect(maker.created).toHaveLength(60);
  });

  it("creates no more than 1,000 that wait, in whatever time", async () => {
    await listed(profileObject(), enrolling);
    for (let at = 0; at < 2_000; at++) {
      saw([macOf(at)]);
      if (at % 50 === 49) await under.clock.advance(10_000);
    }
    expect(maker.created).toHaveLength(1_000);
    await metric("davit_pending_machines 1000");
    await metric('davit_enrolments_refused_total{reason="full"} 1000');
    const touched = machineObject({ identities: [macOf(0)], approved: true }, "mac-525400000000");
    under.source.put({ ...touched, generation: 2 });
    under.source.tellChanged(touched);
    await under.clock.advance(60_000);
    saw([macOf(5_000)]);
    await under.settled();
    expect(maker.created).toHaveLength(1_001);
  });

  it.each([
    { name: "one address", address: () => "192.0.2.66" },
    { name: "addresses of one network", address: (at: number) => `2001:db8::${at.toString(16)}` },
  ])("creates a Machine for a newcomer while $name invents machines", async ({ address }) => {
    await listed(profileObject(), enrolling);
    for (let second = 0; second < 300; second++) {
      for (let at = 0; at < 20; at++) saw([macOf(second * 20 + at)], { address: address(at) });
      await under.clock.advance(1_000);
    }
    expect(maker.created.length).toBeLessThanOrEqual(501);
    for (let at = 0; at < 20; at++) saw([macOf(10_000 + at)], { address: address(at) });
    saw([macOf(20_000)], { address: "192.0.2.1" });
    await under.settled();
    expect(maker.created).toContain("mac-525400004e20");
  });

  it("deletes after a day what nobody touched, and nothing else", async () => {
    const own = [
      machineObject({ identities: [macOf(2)], approved: true }, "mac-525400000002"),
      { ...machineObject({ identities: [macOf(3)] }, "mac-525400000003"), generation: 2 },
      machineObject({ identities: [macOf(4)], labels: { rack: "7" } }, "mac-525400000004"),
      machineObject({ identities: [macOf(5)] }, "rack7-5"),
    ];
    await listed(profileObject(), enrolling, ...own);
    saw([macOf(1)]);
    await under.clock.advance(dayMs - 120_000);
    expect(maker.deleted).toEqual([]);
    await under.clock.advance(240_000);
    expect(maker.deleted).toEqual(["mac-525400000001"]);
  });

  it("counts those of an earlier run, and deletes them a day after the start", async () => {
    await listed(profileObject(), enrolling, machineObject({ identities: [macOf(1)] }, "mac-525400000001"));
    await under.clock.advance(60_000);
    await metric("davit_pending_machines 1");
    await under.clock.advance(dayMs);
    expect(maker.deleted).toEqual(["mac-525400000001"]);
  });

  it("tries again when the API server was away", async () => {
    await listed(profileObject(), enrolling);
    maker.isAway = true;
    saw([macOf(1)]);
    await under.settled();
    saw([macOf(2)]);
    await under.settled();
    await metric('davit_enrolments_refused_total{reason="failed"} 2');
    expect(under.logLines.filter((line) => line.includes("cannot create a Machine"))).toHaveLength(1);
    maker.isAway = false;
    saw([macOf(1)]);
    await under.settled();
    expect(maker.created).toHaveLength(1);
  });

  it("only lists machines where there is no place for Machines", async () => {
    await under.stop();
    under = await ControllerUnderTest.start({ sightings });
    await listed(profileObject(), enrolling);
    saw([macOf(1)]);
    saw([macOf(2)]);
    await under.settled();
    const firstSeenAtMs = under.clock.nowMs();
    expect(under.pendingMachines()).toEqual([
      { identities: [macOf(1)], group: "default/node1", firstSeenAtMs },
      { identities: [macOf(2)], group: "default/node1", firstSeenAtMs },
    ]);
    const known = machineObject({ identities: [macOf(1)] });
    under.source.put(known);
    under.source.tellChanged(known);
    await under.settled();
    expect(under.pendingMachines()).toHaveLength(1);
    await under.clock.advance(dayMs + 60_000);
    expect(under.pendingMachines()).toEqual([]);
  });
});
