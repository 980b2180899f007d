/** One of two Groups that keep each other from a machine goes: the other one, an Install, waits for its tombstone. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ObjectName } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { inline } from "./fleet.ts";
import { groupObject, profileObject } from "./objects.ts";

const mac = "52:54:00:a1:9c:ae";
const otherMac = "52:54:00:a1:9c:bb";
const uuid = "4c4c4544-0042-3510-8052-b4c04f4e4a32";
const machine = { mac, uuid, role: "db" };

const name = (group: string): ObjectName => ({ kind: "Group", namespace: "default", name: group });
const listed = (key: string, ...values: readonly string[]) => ({ key, operator: "In" as const, values });
const many = Array.from({ length: 20 }, (_, at) => (at === 0 ? uuid : uuid.replace(/..$/, `${at + 40}`)));

/** Selectors of an installer and of the Group that keeps it from the machine, and why the machine waits. */
const pairs: readonly (readonly [name: string, wipe: Partial<GroupSpec>, disk: Partial<GroupSpec>, why: string])[] = [
  ["tie", { selector: { mac } }, { selector: { mac } }, "tied"],
  ["tie, one of them with a hold", { selector: { mac } }, { selector: { mac }, hold: true, profile: "wipe" }, "tied"],
  [
    "tie by lists",
    { selector: {}, expressions: [listed("mac", mac, otherMac)] },
    { selector: {}, expressions: [listed("mac", mac)] },
    "tied",
  ],
  [
    "tie by two lists, one of them long",
    { selector: {}, expressions: [listed("mac", mac, otherMac), listed("uuid", ...many)] },
    { selector: {}, expressions: [listed("mac", mac), listed("uuid", ...many)] },
    "tied",
  ],
  ["tie by a role", { selector: { role: "db" } }, { selector: { role: "db" } }, "tied"],
  ["tie for all machines", { selector: {}, matchAll: true }, { selector: {}, matchAll: true }, "tied"],
  ["name it by other labels", { selector: { uuid } }, { selector: { mac } }, "doubtful"],
  ["name it by other labels, one held", { selector: { uuid } }, { selector: { mac }, hold: true }, "doubtful"],
  ["name it by more labels", { selector: { uuid, role: "db" } }, { selector: { mac } }, "doubtful"],
];

describe("a machine of two Groups, one of which installs,", () => {
  let under: ControllerUnderTest;

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
    under.source.put(
      profileObject({ displayName: "wipe", effect: "Install" }, "wipe"),
      profileObject({ displayName: "disk", effect: "Boot" }, "disk"),
    );
  });

  afterEach(() => under.stop());

  async function settled(): Promise<void> {
    await under.clock.advance(1_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Both Groups, until what a start makes wait is over. @returns what the machine is answered from then on. */
  async function begin(wipe: Partial<GroupSpec>, disk: Partial<GroupSpec>): Promise<readonly string[]> {
    under.source.put(
      groupObject({ profile: "wipe", ...wipe }, "wipe"),
      groupObject({ profile: "disk", ...disk }, "disk"),
    );
    under.source.tellListed();
    await under.synced;
    await settled();
    await under.clock.advance(70_000);
    await settled();
    return under.watchAnswers(machine);
  }

  async function put(disk: Partial<GroupSpec>, group = "disk", generation = 1): Promise<void> {
    const object = groupObject({ profile: "disk", ...disk }, group);
    under.source.put({ ...object, uid: `${group}-${generation}`, generation }).tellChanged(name(group));
    await settled();
  }

  async function drop(group = "disk"): Promise<void> {
    under.source.drop(name(group)).tellChanged(name(group));
    await settled();
  }

  it.each(pairs)("is not installed while the other one is replaced: they %s", async (_name, wipe, disk, why) => {
    const seen = await begin(wipe, disk);
    await drop();
    await put(disk);
    expect(seen).toEqual([why, "bereft", why]);
  });

  it.each(pairs)("is installed once the tombstone has ended: they %s", async (_name, wipe, disk, why) => {
    const seen = await begin(wipe, disk);
    await drop();
    // Many values leave many tombstones, whose time begins anew once.
    for (let turn = 0; turn < 3; turn++) {
      await under.clock.advance(30_000);
      await settled();
    }
    expect(seen).toEqual([why, "bereft", "default/wipe wipe"]);
  });

  it.each(pairs)("waits for the other one where both are replaced: they %s", async (_name, wipe, disk) => {
    const seen = await begin(wipe, disk);
    for (const group of ["wipe", "disk"]) await drop(group);
    await put({ profile: "wipe", ...wipe }, "wipe");
    await put(disk);
    expect(seen.join()).not.toContain("default/wipe");
  });

  it("is not installed by a slip of the pen in the other one's address", async () => {
    const seen = await begin({ selector: { uuid } }, { selector: { mac } });
    await put({ selector: { mac: otherMac } }, "disk", 2);
    expect(seen).toEqual(["doubtful", "bereft"]);
  });

  it.each(pairs.filter(([, , disk]) => disk.hold !== true))(
    "is installed at once where its only Group is created again as an installer: selectors that %s",
    async (_name, _wipe, disk) => {
      const seen = await begin({ selector: { serial: "other" } }, disk);
      await drop();
      await put({ ...disk, profile: "wipe" }, "disk", 2);
      expect(seen.slice(0, 1)).toEqual(["default/disk disk"]);
      expect(seen.at(-1)).toBe("default/disk wipe");
    },
  );

  it("boots its disk at once where the installer goes", async () => {
    const seen = await begin({ selector: { mac } }, { selector: { mac } });
    await drop("wipe");
    expect(seen).toEqual(["tied", "default/disk disk"]);
  });

  it.each(pairs)("never waits while its installer is renamed: selectors that %s", async (_name, wipe) => {
    const seen = await begin({ selector: { serial: "other" } }, { ...wipe, profile: "wipe" });
    await put({ ...wipe, profile: "wipe" }, "renamed");
    await drop();
    await settled();
    expect(seen).toEqual(["default/disk wipe", "default/renamed wipe"]);
  });

  it.each([16, 17, 40])("waits for %i Groups that went, however little the oldest tombstones tell", async (count) => {
    const groups = Array.from({ length: count }, (_, at) => name(`disk-${at}`));
    const asks = { selector: { mac, role: "db" } };
    under.source.put(
      ...groups.map(({ name: group }) =>
        groupObject({ profile: "disk", selector: { ...asks.selector, os: group } }, group),
      ),
    );
    await begin(asks, { selector: { serial: "other" } });
    const seen = under.watchAnswers({ ...machine, os: "disk-0" });
    under.source.drop(...groups).tellChanged(...groups);
    await settled();
    expect(seen).toEqual(["default/disk-0 disk", "bereft"]);
  });

  it.each([
    ["tied", { mac }],
    ["named otherwise", { uuid }],
  ])("has its configs wait, too, though it boots from the disk by now: %s", async (_name, selector) => {
    const [wipe, disk] = [inline("wipe"), inline("disk")];
    const boot = { kind: "local", local: "exit" } as const;
    under.source.put(
      profileObject({ effect: "Install", boot, templates: { generic: wipe } }, "wipe"),
      profileObject({ effect: "Boot", templates: { generic: disk } }, "disk"),
    );
    await begin({ selector: { mac } }, { selector });
    const seen = under.watchConfig("generic", machine);
    await drop();
    expect(seen.join()).not.toContain("wipe");
  });
});
