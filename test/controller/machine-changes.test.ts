/** While Machines change, a machine is never installed by less than its objects say. Every answer in between counts. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { MachineSpec } from "../../src/model/objects/machine.ts";
import type { MachineObject, SourceObject } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, kernelBoot, machineObject, profileObject } from "./objects.ts";

const mac = "52:54:00:a1:9c:ae";
const node1 = { kind: "Machine", namespace: "default", name: "node1" } as const;
const disk = profileObject({ boot: { kind: "local", local: "exit" } }, "disk");
const installer = profileObject({ effect: "Install", boot: kernelBoot }, "installer");
const installed = { labels: { os: "installed" } } as const satisfies Partial<MachineSpec>;
const fallsToInstaller = "kernel /assets/vmlinuz";

describe("a machine whose Machine keeps it from the installer", () => {
  let under: ControllerUnderTest;
  let seen: readonly string[];

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
    await listed(
      disk,
      installer,
      groupObject({ profile: "disk", selector: { mac, os: "installed" } }, "n-disk"),
      groupObject({ profile: "installer", selector: { mac } }, "n-install"),
      machineObject(installed),
    );
    expect(under.boots({ mac })).toBe("local exit");
    seen = under.watchBoots({ mac });
  });

  afterEach(() => under.stop());

  async function listed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellListed();
    await under.synced;
    await under.settled();
  }

  async function changed(machine: MachineObject | undefined): Promise<void> {
    if (machine === undefined) under.source.drop(node1);
    else under.source.put(machine);
    under.source.tellChanged(node1);
    await under.settled();
  }

  /** The tombstone has ended by then. */
  const aMinute = () => under.clock.advance(61_000);

  it("waits when the label goes, and installs after the tombstone", async () => {
    await changed(machineObject());
    expect(under.boots({ mac })).toBe("doubtful");
    await under.clock.advance(50_000);
    expect(seen).not.toContain(fallsToInstaller);
    await aMinute();
    expect(under.boots({ mac })).toBe(fallsToInstaller);
  });

  it("is never installed while the Machine is deleted and created again", async () => {
    for (let round = 0; round < 5; round++) {
      await changed(undefined);
      expect(under.boots({ mac })).toBe("doubtful");
      await under.clock.advance(5_000);
      await changed({ ...machineObject(installed), uid: `uid-${round + 2}` });
      expect(under.boots({ mac })).toBe("local exit");
      await under.clock.advance(5_000);
    }
    await aMinute();
    expect(seen).not.toContain(fallsToInstaller);
  });

  it("is never installed while the Machine's identity moves to another one and back", async () => {
    await changed(machineObject({ ...installed, identities: ["mac/52:54:00:00:00:02"] }));
    expect(under.boots({ mac })).toBe("doubtful");
    await changed(machineObject(installed));
    expect(under.boots({ mac })).toBe("local exit");
    await aMinute();
    expect(seen).not.toContain(fallsToInstaller);
  });

  it("is never installed while the newest version is refused, whatever the source shows of it", async () => {
    const refusal = "spec.labels: must be an object";
    await changed({ ...machineObject(), refusal });
    await aMinute();
    under.source.refuse(node1, refusal);
    await changed(undefined);
    await aMinute();
    expect(under.boots({ mac })).toBe("local exit");
    under.source.refuse(node1, refusal, { uid: "uid-2" });
    await changed({ ...machineObject(), uid: "uid-2", refusal });
    await aMinute();
    expect(seen).not.toContain(fallsToInstaller);
  });

  it("is never installed while the Machine may be in a part that cannot be read", async () => {
    under.source.complete = false;
    under.source.tellListed();
    await changed(undefined);
    await under.clock.advance(600_000);
    expect(under.boots({ mac })).toBe("local exit");
    under.source.complete = true;
    under.source.tellListed();
    await under.settled();
    expect(under.boots({ mac })).toBe("doubtful");
    under.source.put(machineObject(installed));
    under.source.tellChanged(node1);
    await aMinute();
    expect(seen).not.toContain(fallsToInstaller);
  });

  it("is not installed while its Machine is leaving, though its Group stays the installer", async () => {
    await changed(machineObject({ labels: { os: "other" } }));
    await aMinute();
    expect(under.boots({ mac })).toBe(fallsToInstaller);
    under.source.withheld = [node1];
    under.source.tellChanged(node1);
    await under.settled();
    expect(under.boots({ mac })).toBe("doubtful");
  });

  it("is held at once", async () => {
    await changed(machineObject({ ...installed, hold: true }));
    expect(under.boots({ mac })).toBe("held");
  });
});

describe("a Group that asks for approval", () => {
  let under: ControllerUnderTest;

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
    under.source.put(disk, groupObject({ profile: "disk", selector: { mac }, approval: "Required" }));
    under.source.tellListed();
    await under.synced;
    await under.settled();
  });

  afterEach(() => under.stop());

  async function changed(...objects: readonly SourceObject[]): Promise<void> {
    under.source.put(...objects);
    under.source.tellChanged(...objects);
    await under.settled();
  }

  it("serves a machine from its approval until that is withdrawn, refused, or its Machine goes", async () => {
    expect(under.boots({ mac })).toBe("unapproved");
    await changed(machineObject());
    expect(under.boots({ mac })).toBe("unapproved");
    await changed(machineObject({ approved: true }));
    expect(under.boots({ mac })).toBe("local exit");
    await changed(machineObject());
    expect(under.boots({ mac })).toBe("unapproved");
    await changed(machineObject({ approved: true }));
    under.source.refuse(node1, "no").tellChanged(node1);
    await under.settled();
    expect(under.boots({ mac })).toBe("unapproved");
    under.source.refuse(node1, undefined).tellChanged(node1);
    await under.settled();
    expect(under.boots({ mac })).toBe("local exit");
    under.source.drop(node1).tellChanged(node1);
    await under.settled();
    expect(under.boots({ mac })).toBe("unapproved");
  });

  it("asks for it as soon as a refused version does", async () => {
    const group = groupObject({ profile: "disk", selector: { mac } });
    await changed(group);
    expect(under.boots({ mac })).toBe("local exit");
    const asking = { ...group.spec, approval: "Required" } as const;
    under.source.refuse({ kind: "Group", namespace: "default", name: "node1" }, "no", { standIns: [asking] });
    await changed(group);
    expect(under.boots({ mac })).toBe("unapproved");
  });

  it("serves nobody by two Machines with the same identity, and holds the machine if one of them is held", async () => {
    await changed(machineObject({ approved: true }), machineObject({ approved: true }, "node2"));
    expect(under.boots({ mac })).toBe("ambiguous");
    await changed(machineObject({ hold: true }, "node2"));
    expect(under.boots({ mac })).toBe("held");
  });
});

it("A machine that moves to the list of an installer's Group with a grant, in one step, is installed at once", async () => {
  const under = await ControllerUnderTest.start();
  const list = (name: string, profile: string, values: readonly string[], more: object = {}) =>
    groupObject({ profile, selector: {}, expressions: [{ key: "mac", operator: "In", values }], ...more }, name);
  const others = ["52:54:00:00:00:01", "52:54:00:00:00:02"];
  const install = { generation: 1, ledger: "l", untilMs: 1, scope: "NeverInstalled" } as const;
  under.source.put(disk, installer, list("a", "disk", [mac, ...others]), list("b", "installer", others, { install }));
  under.source.tellListed();
  await under.synced;
  await under.settled();
  const seen = under.watchBoots({ mac });
  under.source.put(list("a", "disk", others), list("b", "installer", [mac, ...others], { install }));
  under.source.tellChanged(
    { kind: "Group", namespace: "default", name: "a" },
    { kind: "Group", namespace: "default", name: "b" },
  );
  await under.settled();
  expect([under.boots({ mac }), seen.includes("bereft")]).toEqual([fallsToInstaller, false]);
  await under.stop();
});
