/** What a team can do to machines of another one, where there is an admin namespace: nothing. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Expression } from "../../src/model/labels/expression.ts";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { GroupObject } from "../../src/model/objects/source.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

const mac = "52:54:00:a1:9c:ae";
const machine = {
  mac,
  uuid: "4c4c4544-0042-3510-8052-b4c04f4e4a32",
  serial: "SN-1",
  arch: "x86_64",
  hostname: "web-1",
};

const own = (namespace: string, spec: Partial<GroupSpec>): GroupObject => ({ ...groupObject(spec, "node"), namespace });
const by = (key: string, operator: Expression["operator"], ...values: string[]): Expression => ({
  key,
  operator,
  values,
});
const without = (...expressions: Expression[]): Partial<GroupSpec> => ({ selector: {}, expressions });

let under: ControllerUnderTest;
beforeEach(async () => {
  under = await ControllerUnderTest.start({ adminNamespace: "infra" });
  for (const namespace of ["infra", "team-a", "team-b"]) {
    under.source.put({ ...profileObject({ displayName: namespace }), namespace });
  }
});
afterEach(() => under.stop());

/** Every answer of the machine from before the Group comes until all is quiet. */
async function answersTo(first: readonly GroupObject[], attack: GroupObject): Promise<ReadonlySet<string>> {
  under.source.put(...first).tellListed();
  await under.synced;
  const seen = new Set([under.answer(machine)]);
  under.source.put(attack).tellChanged(attack);
  for (let turn = 0; turn < 100; turn++) {
    seen.add(under.answer(machine));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return seen;
}

const vacuous = by("nothing", "DoesNotExist");
const digits = by("mac", "Prefix", ..."0123456789abcdef");

describe("a team keeps the machine that its Group named first", () => {
  it.each<[name: string, attack: Partial<GroupSpec>]>([
    ["the same address and an expression that nothing fails", { selector: { mac }, expressions: [vacuous] }],
    ["the same address and labels that its machine sends", { selector: { mac, arch: "x86_64", hostname: "web-1" } }],
    ["the same address and its serial number", { selector: { mac, serial: "SN-1" } }],
    ["another name of the machine", { selector: { uuid: machine.uuid } }],
    ["a list of one address", without(by("mac", "In", mac), by("serial", "Exists"), by("arch", "NotIn", "arm64"))],
    ["an address and all of its patterns", { selector: { mac }, expressions: [digits, by("serial", "Prefix", "SN")] }],
    ["patterns alone", without(by("mac", "Prefix", "52:54:00"), by("hostname", "Glob", "web*"))],
    ["every first digit of an address", without(digits)],
  ])("whatever comes by %s", async (_name, attack) => {
    const first = own("team-a", { selector: { mac } });
    expect(await answersTo([first], own("team-b", attack))).toEqual(new Set(["team-a/node team-a"]));
  });

  it.each<[name: string, list: Partial<GroupSpec>]>([
    ["the address", { selector: { mac } }],
    ["one that comes after it", { selector: { uuid: machine.uuid } }],
  ])("by a list, whatever comes by %s", async (_name, attack) => {
    const first = own("team-a", without(by("mac", "In", mac, "52:54:00:00:00:01")));
    expect(await answersTo([first], own("team-b", attack))).toEqual(new Set(["team-a/node team-a"]));
  });
});

it.each<[name: string, wide: Partial<GroupSpec>, narrow: Partial<GroupSpec>]>([
  ["a vendor's prefix", without(by("mac", "Prefix", "52:54:00")), { selector: { mac } }],
  [
    "a vendor's prefix that stays",
    without(by("mac", "Prefix", "52:54:00")),
    { selector: { mac }, expressions: [by("mac", "Prefix", "52:54:00")] },
  ],
  ["an architecture", { selector: { arch: "x86_64" } }, { selector: { mac, arch: "x86_64" } }],
])("who has had %s for long claims a machine when its Group names it", async (_name, wide, narrow) => {
  under.source.put(own("team-b", wide)).tellListed();
  await under.synced;
  const first = own("team-a", { selector: { mac } });
  under.source.put(first).tellChanged(first);
  await under.settled();
  expect(under.answer(machine)).toBe("team-a/node team-a");
  const attack = { ...own("team-b", narrow), generation: 2 };
  expect(await answersTo([], attack)).toEqual(new Set(["team-a/node team-a"]));
});

it("16 prefixes of one digit take no machine at all", async () => {
  expect(await answersTo([], own("team-b", without(digits)))).toEqual(new Set(["noMatch"]));
  await under.clock.advance(5_000);
  expect(under.statuses.conditions("Group/node")).toMatchObject({ Accepted: "False NotPermitted" });
});

describe("the admin namespace", () => {
  it.each<[name: string, admin: Partial<GroupSpec>, attack: Partial<GroupSpec>]>([
    ["the same address", { selector: { mac } }, { selector: { mac } }],
    ["an expression that nothing fails", { selector: { mac } }, { selector: { mac }, expressions: [vacuous] }],
    ["many of them", { selector: { arch: "x86_64", mac } }, { selector: { mac }, expressions: [vacuous, digits] }],
    [
      "a short pattern beside a label",
      { selector: { mac } },
      { selector: { mac }, expressions: [by("serial", "Glob", "S*")] },
    ],
    ["another name of it", { selector: { mac } }, { selector: { serial: "SN-1" } }],
    [
      "another name of it, and a label",
      { selector: { mac, arch: "x86_64" } },
      { selector: { serial: "SN-1", hostname: "web-1" } },
    ],
    ["short patterns, by matchAll", { selector: {}, matchAll: true }, without(digits)],
  ])("keeps its machine from a team that comes by %s", async (_name, admin, attack) => {
    expect(await answersTo([own("infra", admin)], own("team-b", attack))).toEqual(new Set(["infra/node infra"]));
  });

  it("still loses to a team that asks for more values", async () => {
    const seen = await answersTo(
      [own("infra", { selector: { mac } })],
      own("team-b", { selector: { mac, arch: "x86_64" } }),
    );
    expect([...seen].at(-1)).toBe("team-b/node team-b");
  });
});

it("within a team's namespace expressions count as everywhere", async () => {
  const disk = { ...own("team-a", { selector: { mac }, expressions: [by("done", "DoesNotExist")] }), name: "install" };
  under.source.put(own("team-a", { selector: { mac } }), disk).tellListed();
  await under.synced;
  expect(under.answer({ mac })).toBe("team-a/install team-a");
  expect(under.answer({ mac, done: "1" })).toBe("team-a/node team-a");
});
