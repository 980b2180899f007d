/** A Profile whose newest version is not taken over: the answers of Groups that come later, until it is ready. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { ProfileSpec } from "../../src/model/objects/profile.ts";
import type { OwnName } from "../../src/model/objects/source.ts";
import { parseTemplate } from "../../src/render/template/template.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { web } from "./fleet.ts";
import { groupObject, kernelBoot, profileObject } from "./objects.ts";

const installs: Partial<ProfileSpec> = { boot: { ...kernelBoot, args: ["install_dev=/dev/sda"] } };
const disk = (root: string): Partial<ProfileSpec> => ({ boot: { ...kernelBoot, args: [`root=${root}`] } });
const name = (group: string) => ({ kind: "Group", namespace: "default", name: group }) as const satisfies OwnName;

let under: ControllerUnderTest;
/** davit fails on Groups with the argument "odd". */
let isFailing: boolean;
/** What the machines got of the Group from the start, and of the one that came later. */
let first: readonly string[];
let later: readonly string[];

beforeEach(async () => {
  isFailing = false;
  const checkTemplate = (text: string) => {
    if (isFailing && text === "odd") throw new Error("a mistake of davit");
    return parseTemplate(text);
  };
  under = await ControllerUnderTest.start({ checkTemplate });
  under.source.put(profileObject(installs), group("first"));
  under.source.tellListed();
  await under.synced;
  first = under.watchConfig("ipxe", { serial: "first" });
  later = under.watchConfig("ipxe", { serial: "later" });
});

afterEach(() => under.stop());

function group(serial: string, spec: Partial<GroupSpec> = {}) {
  return groupObject({ selector: { serial }, ...spec }, serial);
}

/** Waits until a status says so, and until everything that was told is done. */
async function told(object: string, reason: string): Promise<void> {
  await under.settled();
  expect(under.statuses.ready(object)).toBe(reason);
  await under.clock.advance(2_000);
}

/** Puts the Profile's newest version, which lacks a variable for the first Group. */
async function keepOld(): Promise<void> {
  under.source.put(profileObject(disk("{{root}}"))).tellChanged(web);
  await told("Profile/web", "UndefinedVariable");
}

/** A Group comes while the older version is served. */
async function comeLater(): Promise<void> {
  await keepOld();
  under.source.put(group("later", root)).tellChanged(name("later"));
  await told("Group/later", "ProfileOutdated");
}

function expectNoInstall(): void {
  expect(first).toHaveLength(1);
  expect(later.filter((text) => text.includes("install_dev"))).toEqual([]);
}

const root = { metadata: { root: "/dev/sda1" } };

describe("a Group that comes later than the version of its Profile that is served", () => {
  it.each<[what: string, newest: Partial<ProfileSpec>, reason: string]>([
    ["lacks a variable for another Group", disk("{{root}}"), "UndefinedVariable"],
    ["is never valid for another Group", disk('{{default root "a b\u0007"}}'), "RenderFailed"],
    ["cannot be parsed", disk("{{#if}"), "InvalidTemplate"],
    [
      "names what is not there",
      { templates: { generic: { kind: "configMap", name: "no", key: "k", raw: false } } },
      "TemplateNotFound",
    ],
  ])("waits while the newest one %s, and gets what follows", async (_what, newest, reason) => {
    under.source.put(profileObject(newest)).tellChanged(web);
    await told("Profile/web", reason);
    under.source.put(group("later", root)).tellChanged(name("later"));
    await told("Group/later", "ProfileOutdated");
    expect(under.config("ipxe", { serial: "later" })).toBe("oldProfile");
    expectNoInstall();
    expect(under.statuses.conditions("Group/later").Synced).toBe("False NotServed");
    under.source.put(profileObject(disk('{{default root "none"}}'))).tellChanged(web);
    await told("Group/later", "Ready");
    expect(later.at(-1)).toContain("root=/dev/sda1");
    expect(first.at(-1)).toContain("root=none");
    expect(later.filter((text) => text.includes("install_dev"))).toEqual([]);
  });

  it("waits while the newest one is refused", async () => {
    under.source.refuse(web, "spec.bot: unknown").tellChanged(web);
    await told("Profile/web", "Refused");
    under.source.put(group("later")).tellChanged(name("later"));
    await told("Group/later", "ProfileOutdated");
    expectNoInstall();
  });

  it("in the same step waits as well, and gets the newest version once the first Group can have it", async () => {
    under.source.put(profileObject(disk("{{root}}")), group("later", root)).tellChanged(web, name("later"));
    await told("Group/later", "ProfileOutdated");
    expectNoInstall();
    under.source.put(group("first", root)).tellChanged(name("first"));
    await told("Group/later", "Ready");
    expect(later.at(-1)).toContain("root=/dev/sda1");
    expect(later.filter((text) => text.includes("install_dev"))).toEqual([]);
  });

  it.each<[what: string, changed: Partial<GroupSpec>]>([
    ["comes from another Profile", {}],
    ["was created anew", {}],
    ["takes other machines", { selector: { serial: "later" } }],
  ])("waits when it %s", async (what, changed) => {
    const before: Partial<GroupSpec> = what.startsWith("comes")
      ? { profile: "other" }
      : what.startsWith("takes")
        ? { selector: { serial: "elsewhere" } }
        : { hold: true };
    under.source.put(profileObject({ boot: { kind: "local", local: "exit" } }, "other"));
    under.source.put(group("later", { ...root, ...before })).tellChanged({ ...web, name: "other" }, name("later"));
    await under.settled();
    expect(under.statuses.ready("Group/later")).toMatch(/Ready|Held/);
    await keepOld();
    const uid = what.startsWith("was") ? "uid-2" : "uid-1";
    under.source.put({ ...group("later", { ...root, ...changed }), uid }).tellChanged(name("later"));
    await told("Group/later", "ProfileOutdated");
    await under.clock.advance(70_000);
    expect(under.config("ipxe", { serial: "later" })).toBe("oldProfile");
    expectNoInstall();
  });

  it("and had it before gets it again once it takes no other machines", async () => {
    await keepOld();
    const both = [{ key: "serial", operator: "In" as const, values: ["first", "later"] }];
    under.source.put(group("first", { selector: {}, expressions: both })).tellChanged(name("first"));
    await under.settled();
    expect(under.config("ipxe", { serial: "first" })).toBe("oldProfile");
    await under.clock.advance(20 * 60_000);
    expect(under.config("ipxe", { serial: "later" })).toBe("oldProfile");
    expect(under.statuses.message("Group/first")).toMatch(
      /"root" is not defined.*; The newest version of Profile "web"/,
    );
    under.source.put(group("first", { metadata: {} })).tellChanged(name("first"));
    await told("Group/first", "UndefinedVariable");
    expect(later.filter((text) => text.includes("install_dev"))).toEqual([]);
    expect(first.at(-1)).toContain("install_dev=/dev/sda");
  });

  it("waits on, also where davit looks at everything again", async () => {
    await comeLater();
    await under.clock.advance(20 * 60_000);
    expect(under.config("ipxe", { serial: "later" })).toBe("oldProfile");
    under.source.put(group("later", { ...root, priority: 3 })).tellChanged(name("later"));
    await under.settled();
    expect(under.stored("/davit/groups/default/later").join()).toContain('"priority":3');
    expect(under.config("ipxe", { serial: "later" })).toBe("oldProfile");
    expectNoInstall();
  });

  it("waits on while its newest version is refused, and after it", async () => {
    await comeLater();
    under.source.refuse(name("later"), "spec.selector: unknown", { uid: "uid-1", standIns: [undefined] });
    under.source.tellChanged(name("later"));
    await told("Group/later", "Refused");
    under.source.refuse(name("later"), undefined).tellChanged(name("later"));
    await told("Group/later", "ProfileOutdated");
    await under.clock.advance(70_000);
    expect(under.config("ipxe", { serial: "later" })).toBe("oldProfile");
    expectNoInstall();
  });

  it("waits on when it was refused once and davit fails on it, and gets what follows", async () => {
    await keepOld();
    const odd = group("later", { ...root, args: ["odd"] });
    under.source.put(odd).tellChanged(name("later"));
    await told("Group/later", "ProfileOutdated");
    under.source.refuse(name("later"), "a mistake", { standIns: [odd.spec] }).tellChanged(name("later"));
    await told("Group/later", "Refused");
    isFailing = true;
    under.source.refuse(name("later"), undefined).tellChanged(name("later"));
    await under.settled();
    expect(under.statuses.conditions("Group/later").Synced).toBe("False InternalError");
    expect(under.config("ipxe", { serial: "later" })).toBe("oldProfile");
    isFailing = false;
    under.source.tellChanged(name("later"));
    await told("Group/later", "ProfileOutdated");
    under.source.put(group("first", root)).tellChanged(name("first"));
    await told("Group/later", "Ready");
    expect(later.at(-1)).toContain("root=/dev/sda1");
    expect(later.filter((text) => text.includes("install_dev"))).toEqual([]);
  });

  it("does not keep its Profile's newest version back once it was refused", async () => {
    await keepOld();
    under.source.put(group("later")).tellChanged(name("later"));
    await told("Group/later", "ProfileOutdated");
    under.source.refuse(name("later"), "a mistake", { standIns: [group("later").spec] }).tellChanged(name("later"));
    await told("Group/later", "Refused");
    under.source.refuse(name("later"), undefined);
    under.source.put(group("first", root)).tellChanged(name("later"), name("first"));
    await under.settled();
    expect(first.at(-1)).toContain("root=/dev/sda1");
    expect(later.filter((text) => text.includes("install_dev"))).toEqual([]);
  });
});
