import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  decodeMachine,
  decodeMachineTombstone,
  type MachineDocument,
  type MachineSpec,
} from "../../src/model/objects/machine.ts";
import type { OwnName, Refusal, SourceObject } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { machineObject } from "./objects.ts";

const node1 = { kind: "Machine", namespace: "default", name: "node1" } as const satisfies OwnName;
const install = { generation: 1, ledger: "9f3c0a52", untilMs: Date.UTC(2026, 0, 2), scope: "NeverInstalled" } as const;
const mac = "mac/52:54:00:a1:9c:ae";
const otherMac = "mac/52:54:00:00:00:02";

describe("the controller and Machines", () => {
  let under: ControllerUnderTest;

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
  });

  afterEach(() => under.stop());

  const stored = (): MachineDocument | undefined =>
    decodeMachine(under.stored("/davit/machines/default/node1")[0] ?? "");
  const tombstone = () =>
    decodeMachineTombstone(under.stored("/davit/tombstones/machine/default/node1")[0] ?? "")?.identities;

  async function listed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellListed();
    await under.synced;
    await under.settled();
  }

  async function changed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellChanged(...objects);
    await under.settled();
  }

  /** @param shown what the source shows of the refused version: see `refusedMachine`. */
  async function refused(shown?: Partial<MachineSpec>, read: Partial<Refusal> = {}): Promise<void> {
    const message = "spec.labels: must be an object";
    if (shown !== undefined) under.source.put({ ...machineObject(shown), refusal: message });
    under.source.refuse(node1, message, read);
    under.source.tellChanged(node1);
    await under.settled();
  }

  it("stores a Machine as its object says, and removes it when the object goes", async () => {
    await listed(machineObject({ approved: true, labels: { rack: "7" }, install }));
    expect(stored()).toMatchObject({ uid: "uid-1", spec: { approved: true, labels: { rack: "7" }, install } });
    expect(stored()).not.toHaveProperty("refused");
    under.source.drop(node1);
    under.source.tellChanged(node1);
    await under.settled();
    expect(stored()).toBeUndefined();
  });

  describe("whose newest version is refused", () => {
    it("approves and grants nothing, and keeps the labels of the last accepted version", async () => {
      await listed(machineObject({ approved: true, labels: { os: "installed" }, install }));
      await refused({ identities: [mac, otherMac] });
      const { spec, refused: isRefused } = stored() ?? {};
      expect(isRefused).toBe(true);
      expect(spec).toMatchObject({ approved: false, labels: { os: "installed" }, identities: [mac, otherMac] });
      expect(spec).not.toHaveProperty("install");
      expect(under.statuses.conditions("Machine/node1")).toMatchObject({
        Accepted: "False Refused",
        Approved: "False NotApproved",
        Ready: "False Refused",
        Stalled: "True Refused",
      });
    });

    it("is held if either version sets hold", async () => {
      await listed(machineObject());
      await refused({ hold: true });
      expect(stored()?.spec.hold).toBe(true);
    });

    it("approves nothing after a restart that sees only the refusal", async () => {
      await listed(machineObject({ approved: true, labels: { os: "installed" } }));
      await refused({ labels: {} });
      expect(stored()).toMatchObject({ refused: true, spec: { approved: false, labels: { os: "installed" } } });
    });

    it("keeps nothing of an object that was created again, except its identities' doubt", async () => {
      await listed(machineObject({ approved: true, install }));
      under.source.drop(node1);
      await refused(undefined, { uid: "uid-2" });
      expect(stored()).toMatchObject({ refused: true, spec: { approved: false, identities: [mac] } });
      expect(stored()?.spec).not.toHaveProperty("install");
    });

    it("approves again when the object is corrected", async () => {
      await listed(machineObject({ approved: true, install }));
      await refused();
      under.source.refuse(node1, undefined);
      await changed(machineObject({ approved: true, install }));
      expect(stored()).toMatchObject({ spec: { approved: true, install } });
      expect(stored()).not.toHaveProperty("refused");
    });
  });

  describe("in a source that can be read only in part", () => {
    it("stays without its grant while it may be in the unreadable part", async () => {
      await listed(machineObject({ approved: true, labels: { os: "installed" }, install }));
      under.source.complete = false;
      under.source.drop(node1);
      under.source.tellListed();
      under.source.tellChanged(node1);
      await under.settled();
      expect(stored()).toMatchObject({ leaving: true, spec: { approved: true, labels: { os: "installed" } } });
      expect(stored()?.spec).not.toHaveProperty("install");
      expect(tombstone()).toBeUndefined();
      expect(under.attention).toEqual([expect.stringContaining("Machine default/node1")]);
    });

    it("goes when the whole source is read, and leaves a tombstone", async () => {
      await listed(machineObject());
      under.source.complete = false;
      under.source.drop(node1);
      under.source.tellListed();
      await under.settled();
      under.source.complete = true;
      under.source.tellListed();
      await under.settled();
      expect(stored()).toBeUndefined();
      expect(tombstone()).toEqual([mac]);
    });

    it("approves nothing in a lost namespace", async () => {
      await listed(machineObject({ approved: true, install }));
      under.source.unheard.add("default");
      under.source.tellListed();
      await under.settled();
      expect(stored()).toMatchObject({ refused: true, spec: { approved: false } });
      under.source.unheard.clear();
      under.source.tellListed();
      await under.settled();
      expect(stored()).toMatchObject({ spec: { approved: true, install } });
    });
  });

  describe("leave a tombstone", () => {
    it("when the object goes, which expires", async () => {
      await listed(machineObject({ identities: ["uuid/4c4c4544-0034-3510-8054-b4c04f4d4e32", mac] }));
      under.source.drop(node1);
      under.source.tellChanged(node1);
      await under.settled();
      expect(tombstone()).toEqual(["uuid/4c4c4544-0034-3510-8054-b4c04f4d4e32", mac]);
      await under.clock.advance(61_000);
      expect(tombstone()).toBeUndefined();
    });

    it("when a label goes or changes", async () => {
      await listed(machineObject({ labels: { os: "installed", rack: "7" } }));
      await changed(machineObject({ labels: { rack: "7" } }));
      expect(tombstone()).toEqual([mac]);
      await under.clock.advance(61_000);
      await changed(machineObject({ labels: { rack: "8" } }));
      expect(tombstone()).toEqual([mac]);
    });

    it("when an identity goes, for all identities of every earlier version", async () => {
      await listed(machineObject({ identities: [mac] }));
      await changed(machineObject({ identities: [otherMac] }));
      expect(tombstone()).toEqual([mac]);
      await changed(machineObject({ identities: ["mac/52:54:00:00:00:03"] }));
      expect(tombstone()).toEqual([otherMac, mac]);
    });

    it("not when labels and identities are only added, or anything else changes", async () => {
      await listed(machineObject({ labels: { rack: "7" } }));
      await changed(machineObject({ labels: { rack: "7", role: "web" }, identities: [mac, otherMac], approved: true }));
      await changed(machineObject({ labels: { role: "web", rack: "7" }, identities: [otherMac, mac], install }));
      expect(tombstone()).toBeUndefined();
    });

    it("when the object is deleted and created again, and keep it", async () => {
      await listed(machineObject({ labels: { os: "installed" } }));
      under.source.drop(node1);
      under.source.tellChanged(node1);
      await under.settled();
      await changed({ ...machineObject({ labels: { os: "installed" } }), uid: "uid-2" });
      expect(stored()?.uid).toBe("uid-2");
      expect(tombstone()).toEqual([mac]);
    });
  });

  describe("report a status", () => {
    it("that is ready without approval", async () => {
      await listed(machineObject());
      expect(under.statuses.conditions("Machine/node1")).toEqual({
        Accepted: "True Valid",
        Synced: "True Synced",
        Identified: "True Identified",
        Approved: "False NotApproved",
        Ready: "True Ready",
      });
    });

    it("that is not ready while held", async () => {
      await listed(machineObject({ hold: true, approved: true }));
      expect(under.statuses.conditions("Machine/node1")).toMatchObject({
        Approved: "True Approved",
        Ready: "False Held",
      });
    });

    it("that names the other Machine with the same identity, until one of them goes", async () => {
      await listed(machineObject(), machineObject({ identities: [otherMac, mac] }, "node2"));
      for (const name of ["node1", "node2"]) {
        expect(under.statuses.conditions(`Machine/${name}`)).toMatchObject({
          Identified: "False Conflicted",
          Stalled: "True Conflicted",
        });
      }
      expect(under.statuses.message("Machine/node1")).toBe(
        "Machine default/node2 lists its mac 52:54:00:a1:9c:ae, too: remove it from one of the two",
      );
      under.source.drop({ ...node1, name: "node2" });
      under.source.tellChanged({ ...node1, name: "node2" });
      await under.settled();
      expect(under.statuses.ready("Machine/node1")).toBe("Ready");
    });
  });

  it("marks Machines outside the admin namespace, which cannot put others into conflict", async () => {
    await under.stop();
    under = await ControllerUnderTest.start({ adminNamespace: "infra" });
    await listed({ ...machineObject(), namespace: "infra" }, machineObject({}, "node2"));
    const tenant = decodeMachine(under.stored("/davit/machines/default/node2")[0] ?? "");
    expect(tenant?.tenant).toBe(true);
    expect(decodeMachine(under.stored("/davit/machines/infra/node1")[0] ?? "")).not.toHaveProperty("tenant");
    expect(under.statuses.ready("Machine/node1")).toBe("Ready");
    expect(under.statuses.ready("Machine/node2")).toBe("Conflicted");
  });
});
