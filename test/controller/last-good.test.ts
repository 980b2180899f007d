/** How far the last good version of an object goes, and what its machines get beyond that: at every moment. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ProfileCaution, ProfileSpec, TemplateSource } from "../../src/model/objects/profile.ts";
import type { OwnName } from "../../src/model/objects/source.ts";
import { parseTemplate } from "../../src/render/template/template.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, groupSpec, kernelBoot, profileObject } from "./objects.ts";

const profile = { kind: "Profile", namespace: "default", name: "web" } as const satisfies OwnName;
const group = { kind: "Group", namespace: "default", name: "node1" } as const satisfies OwnName;
const machine = { mac: "52:54:00:a1:9c:ae" };
const missing: TemplateSource = { kind: "configMap", name: "missing", key: "k", raw: false };
const disk = { boot: { kind: "local", local: "exit" } } as const satisfies Partial<ProfileSpec>;

let under: ControllerUnderTest;
let boots: readonly string[];

beforeEach(async () => {
  under = await ControllerUnderTest.start({
    checkTemplate: (text) => {
      if (text.includes("trap")) throw new TypeError("trapped");
      return parseTemplate(text);
    },
  });
  under.source.put(profileObject(installing("/assets/wipe")), groupObject());
  under.source.put(profileObject(installing("/assets/wipe-all"), "catch-all"));
  under.source.put(groupObject({ profile: "catch-all", selector: {}, matchAll: true }, "everything"));
  under.source.tellListed();
  await under.synced;
  expect(under.boots(machine)).toBe("kernel /assets/wipe");
  boots = under.watchBoots(machine);
});

afterEach(() => under.stop());

function installing(kernel: string): Partial<ProfileSpec> {
  return { boot: { ...kernelBoot, kernel } };
}

/** Waits for the status of a version. */
async function told(name: string, reason: string): Promise<void> {
  await under.settled();
  expect(under.statuses.ready(name)).toBe(reason);
}

describe("a Group whose expressions an older CRD hides", () => {
  const role = { role: "a" };
  const expression = { key: "os", operator: "Exists", values: [] } as const;
  const narrow = { selector: role, expressions: [expression] };
  const put = (spec: Partial<GroupSpec>, generation: number, name = "narrow") => {
    under.source.put({ ...groupObject(spec, name), generation });
    under.source.tellChanged({ kind: "Group", namespace: "default", name });
  };
  beforeEach(async () => {
    put(narrow, 7);
    await told("Group/narrow", "Ready");
  });

  it("takes no machine by the rest of its selector", async () => {
    const others = under.watchBoots(role);
    put({ selector: role }, 7);
    await told("Group/narrow", "Refused");
    expect(new Set(others)).toEqual(new Set(["kernel /assets/wipe-all"]));
    expect(under.boots({ ...role, os: "x" })).toBe("refused");
    put(narrow, 7);
    await told("Group/narrow", "Ready");
    expect(under.boots({ ...role, os: "x" })).toBe("kernel /assets/wipe");
  });

  it("takes its machines when a later version has none", async () => {
    put({ selector: role }, 8);
    await under.settled();
    expect(under.boots(role)).toBe("kernel /assets/wipe");
  });
});

describe("a Profile that was deleted and created anew in one step", () => {
  const newProfile = (spec: Partial<ProfileSpec>) => ({ ...profileObject(spec), uid: "uid-2" });

  it("and is broken in a part gives its machines nothing of the one that is gone", async () => {
    under.source.put(newProfile({ ...disk, templates: { ignition: missing } }));
    under.source.tellChanged(profile);
    await told("Profile/web", "TemplateNotFound");
    expect(boots).toEqual(["kernel /assets/wipe", "local exit"]);
  });

  it("and is refused has its machines wait", async () => {
    under.source.drop(profile).refuse(profile, "spec.bot: unknown", { uid: "uid-2" });
    under.source.tellChanged(profile);
    await told("Profile/web", "Refused");
    expect(boots).toEqual(["kernel /assets/wipe", "failed"]);
  });

  it("and is not known as a whole yet has its machines wait until it is", async () => {
    under.source.drop(profile).pending = { ...newProfile(disk) };
    under.source.tellChanged(profile);
    await under.settled();
    expect(boots).toEqual(["kernel /assets/wipe", "failed"]);
    under.source.pending = undefined;
    under.source.put(newProfile(disk)).tellChanged(profile);
    await under.settled();
    expect(boots).toEqual(["kernel /assets/wipe", "failed", "local exit"]);
    await told("Group/node1", "Ready");
  });

  it("and makes davit fail has its machines wait", async () => {
    under.source.put(newProfile({ templates: { generic: { kind: "inline", text: "trap", raw: false } } }));
    under.source.tellChanged(profile);
    await told("Profile/web", "InternalError");
    expect(boots).toEqual(["kernel /assets/wipe", "failed"]);
  });
});

describe("a Profile whose newest version is not known as a whole yet", () => {
  it("installs no machine by what is stored of it, and does again when that is the newest", async () => {
    const install = profileObject({ ...installing("/assets/wipe"), effect: "Install" });
    under.source.put(install).tellChanged(profile);
    await under.settled();
    expect(under.boots(machine)).toBe("kernel /assets/wipe");
    under.source.drop(profile).pending = { ...profileObject(installing("/assets/newer")), generation: 2 };
    under.source.tellChanged(profile);
    await under.settled();
    expect(under.answer(machine)).toBe("doubtful");
    under.source.pending = undefined;
    under.source.put(install).tellChanged(profile);
    await under.settled();
    expect(under.boots(machine)).toBe("kernel /assets/wipe");
  });

  it("boots machines from disk when that version does", async () => {
    under.source.drop(profile).pending = { ...profileObject(disk), generation: 2 };
    under.source.tellChanged(profile);
    await under.settled();
    expect(boots).toEqual(["kernel /assets/wipe", "local exit"]);
  });
});

describe("a Group that was deleted and created anew in one step", () => {
  it("and is refused has its machines wait, whatever selector it has", async () => {
    const refusal = "spec.hodl: unknown";
    under.source.put({ ...groupObject(), uid: "uid-2", refusal }).refuse(group, refusal, { uid: "uid-2" });
    under.source.tellChanged(group);
    await told("Group/node1", "Refused");
    expect(boots).toEqual(["kernel /assets/wipe", "refused"]);
  });

  it("and has a selector that cannot be read has the machines of the one that is gone wait", async () => {
    under.source.drop(group).refuse(group, "spec.selector: unknown", { uid: "uid-2" });
    under.source.tellChanged(group);
    await told("Group/node1", "Refused");
    expect(boots).toEqual(["kernel /assets/wipe", "refused"]);
  });
});

describe("while the newest version of a Group is refused", () => {
  const other = { mac: "52:54:00:00:00:02" };
  const refuse = (spec: Partial<GroupSpec> | undefined, uid = "uid-1") => {
    const standIns = [spec && groupSpec(spec)];
    under.source.refuse(group, "spec.args: unknown", { uid, standIns }).tellChanged(group);
  };
  const repair = async (spec: Partial<GroupSpec>) => {
    under.source.refuse(group, undefined).put(groupObject(spec)).tellChanged(group);
    await told("Group/node1", "Ready");
  };

  it("and agrees on machines and Profile, the version before stays", async () => {
    refuse({ metadata: { new: 1 }, priority: 7 });
    await told("Group/node1", "Refused");
    expect(boots).toEqual(["kernel /assets/wipe"]);
    expect(under.statuses.conditions("Group/node1").Synced).toBe("False ServingLastGood");
    expect(under.stored("/davit/groups/default/node1")).toEqual([expect.stringContaining('"outdated":true')]);
  });

  it("and holds its machines, they are held, until a version does not", async () => {
    refuse({ hold: true });
    await told("Group/node1", "Refused");
    refuse({ hold: false });
    await under.settled();
    expect(boots).toEqual(["kernel /assets/wipe", "held", "kernel /assets/wipe"]);
  });

  it("and releases its machines, they stay held", async () => {
    under.source.put(groupObject({ hold: true })).tellChanged(group);
    await under.settled();
    expect(boots.at(-1)).toBe("held");
    refuse({ hold: false });
    await told("Group/node1", "Refused");
    expect(boots).toEqual(["kernel /assets/wipe", "held"]);
  });

  it.each([
    ["names another Profile", { profile: "catch-all" }],
    ["names a Profile that cannot be read", { profile: "" }],
    ["has a selector that cannot be read", undefined],
  ])("and %s, its machines wait, also after a restart of the source", async (_what, spec) => {
    refuse(spec);
    await told("Group/node1", "Refused");
    under.source.drop(group).tellChanged(group);
    await under.clock.advance(1_000);
    expect(boots).toEqual(["kernel /assets/wipe", "refused"]);
    expect(under.statuses.conditions("Group/node1")).toMatchObject({
      Accepted: "False Refused",
      ResolvedRefs: "True Resolved",
      Synced: "False NotServed",
    });
    await repair({});
    expect(boots).toEqual(["kernel /assets/wipe", "refused", "kernel /assets/wipe"]);
  });

  it("and has another selector, the machines of both wait, whatever comes, until one is accepted", async () => {
    const others = under.watchBoots(other);
    const both = under.watchBoots({ ...other, role: "new" });
    refuse({ selector: other, priority: 3 });
    await under.settled();
    expect(under.boots(other)).toBe("refused");
    refuse({ selector: { ...other, role: "new" } });
    await under.settled();
    expect(under.boots({ ...other, role: "new" })).toBe("refused");
    await under.settled();
    expect(under.boots(other)).toBe("kernel /assets/wipe-all");
    expect(boots).toEqual(["kernel /assets/wipe", "refused"]);
    under.source
      .put(groupObject({ profile: "web", selector: { role: "new" } }, "low"))
      .tellChanged({ ...group, name: "low" });
    await told("Group/low", "Ready");
    await repair({ selector: { ...other, role: "new" } });
    expect(under.stored("/davit/groups/default/node1")).toHaveLength(1);
    expect(both).toEqual(["kernel /assets/wipe-all", "refused", "kernel /assets/wipe"]);
    expect(others).toEqual(["kernel /assets/wipe-all", "refused", "kernel /assets/wipe-all"]);
    expect(boots).toEqual(["kernel /assets/wipe", "refused", "bereft"]);
  });

  it("and is repaired to what it was, all is as it was", async () => {
    refuse({ selector: other });
    await under.settled();
    expect(under.boots(other)).toBe("refused");
    await told("Group/node1", "Refused");
    await repair({});
    expect(boots).toEqual(["kernel /assets/wipe", "refused", "kernel /assets/wipe"]);
    await under.settled();
    expect(under.boots(other)).toBe("kernel /assets/wipe-all");
    expect(under.stored("/davit/groups/")).toHaveLength(2);
  });

  it("and is removed, its twin goes with it, and the machines of both wait for it to come back", async () => {
    const others = under.watchBoots(other);
    refuse({ selector: other });
    await under.settled();
    expect(under.boots(other)).toBe("refused");
    under.source.refuse(group, undefined).drop(group).tellChanged(group);
    await under.settled();
    expect(under.boots(other)).toBe("bereft");
    expect(under.stored("/davit/groups/")).toHaveLength(1);
    expect(boots).toEqual(["kernel /assets/wipe", "refused", "bereft"]);
    await under.clock.advance(60_000);
    expect(others).toEqual(["kernel /assets/wipe-all", "refused", "bereft", "kernel /assets/wipe-all"]);
  });

  it("and is replaced, the machines of the refused version wait all the time", async () => {
    const others = under.watchBoots(other);
    refuse({ selector: other });
    await under.settled();
    expect(under.boots(other)).toBe("refused");
    under.source.refuse(group, undefined).drop(group).tellChanged(group);
    await under.settled();
    expect(under.boots(other)).toBe("bereft");
    refuse({ selector: other }, "uid-2");
    await under.settled();
    expect(under.boots(other)).toBe("refused");
    expect(others).toEqual(["kernel /assets/wipe-all", "refused", "bereft", "refused"]);
  });
});

describe("a Profile whose new version is broken in a part", () => {
  it("and boots from disk does so at once, and keeps the last good configs", async () => {
    const generic: TemplateSource = { kind: "inline", text: "good", raw: false };
    under.source.put(profileObject({ ...installing("/assets/wipe"), templates: { generic } })).tellChanged(profile);
    await told("Profile/web", "Ready");
    under.source.put(profileObject({ ...disk, templates: { generic: missing } })).tellChanged(profile);
    await told("Profile/web", "TemplateNotFound");
    expect(boots).toEqual(["kernel /assets/wipe", "local exit"]);
    const [stored = ""] = under.stored("/davit/profiles/default/web");
    expect(JSON.parse(stored).content.templates).toEqual({ generic: { kind: "text", text: "good", raw: false } });
    under.source.put(profileObject({ ...installing("/assets/wipe"), templates: { generic: missing } }));
    under.source.tellChanged(profile);
    await under.clock.advance(1_000);
    expect(boots).toEqual(["kernel /assets/wipe", "local exit"]);
  });
});

describe("while the newest version of a Profile is refused", () => {
  const refuse = (caution: ProfileCaution) =>
    under.source.refuse(profile, "spec.bot: unknown", { caution }).tellChanged(profile);

  it.each(["in view", "out of view"])(
    "and boots from disk, that counts at once, with the version before %s",
    async (where) => {
      if (where === "out of view") under.source.drop(profile);
      refuse({ local: "exit" });
      await told("Profile/web", "Refused");
      expect(boots).toEqual(["kernel /assets/wipe", "local exit"]);
    },
  );

  it.each(["in view", "out of view"])("and installs, its machines wait, with the version before %s", async (where) => {
    if (where === "out of view") under.source.drop(profile);
    refuse({ isInstall: true });
    await told("Profile/web", "Refused");
    refuse({ isInstall: true, local: "exit" });
    await under.settled();
    expect(boots).toEqual(["kernel /assets/wipe", "doubtful", "local exit"]);
  });
});

it("a Profile that newly installs, and is broken in a part, has its machines wait", async () => {
  const broken = { ...installing("/assets/new"), effect: "Install", templates: { generic: missing } } as const;
  under.source.put(profileObject(broken)).tellChanged(profile);
  await told("Profile/web", "TemplateNotFound");
  expect(boots).toEqual(["kernel /assets/wipe", "doubtful"]);
});
