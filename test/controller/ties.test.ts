/** Groups that claim one machine alike, while it asks: a name never decides what it boots. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GroupSpec } from "../../src/model/objects/group.ts";
import type { GroupObject, ObjectName, ProfileObject } from "../../src/model/objects/source.ts";
import { storePath } from "../../src/store/core/node.ts";
import { ControllerUnderTest } from "./controller-under-test.ts";
import { groupObject, profileObject } from "./objects.ts";

const macs = Array.from({ length: 4 }, (_, at) => `52:54:00:00:00:0${at}`);
const [mac = "", second = "", third = ""] = macs;

function inNamespace<Entry extends GroupObject | ProfileObject>(namespace: string, object: Entry): Entry {
  return { ...object, namespace };
}

function own(spec: Partial<GroupSpec>, name: string, namespace = "default"): GroupObject {
  return inNamespace(namespace, groupObject(spec, name));
}

const list = (...values: string[]): Partial<GroupSpec> => ({
  selector: {},
  expressions: [{ key: "mac", operator: "In", values }],
});

let under: ControllerUnderTest;
afterEach(() => under.stop());

function profiles(namespace: string): readonly ProfileObject[] {
  return ["disk", "wipe"].map((name) =>
    inNamespace(namespace, profileObject({ displayName: `${namespace}/${name}` }, name)),
  );
}

function put(...objects: readonly (GroupObject | ProfileObject)[]): void {
  under.source.put(...objects).tellChanged(...objects);
}

function drop({ kind, namespace, name }: ObjectName): void {
  under.source.drop({ kind, namespace, name }).tellChanged({ kind, namespace, name });
}

/** What a machine is answered again and again, until nothing more happens, beside what each change of the store gives it. */
async function answers(machine: string, change: () => void): Promise<readonly string[]> {
  const seen: string[] = [];
  const look = () => {
    const answer = under.answer({ mac: machine });
    if (seen.at(-1) !== answer) seen.push(answer);
  };
  look();
  const unfollow = under.store.follow("/davit", { replaced: look, changed: look });
  change();
  for (let turn = 0; turn < 100; turn++) {
    look();
    await new Promise((resolve) => setImmediate(resolve));
  }
  unfollow();
  return seen;
}

/** What a Group says of the others, and whether it is ready. */
async function conflictOf(name: string): Promise<readonly (string | undefined)[]> {
  await under.clock.advance(5_000);
  const { Conflicted, Ready } = under.statuses.conditions(`Group/${name}`);
  return [Conflicted, Ready];
}

const tied = ["True SelectorTie", "False SelectorTie"];
const free = ["False NoConflict", "True Ready"];

describe("in one namespace", () => {
  const disk = own({ profile: "disk", selector: { mac } }, "fcos-3");
  const dup = own({ profile: "wipe", selector: { mac } }, "dup");

  beforeEach(async () => {
    under = await ControllerUnderTest.start();
    under.source.put(...profiles("default"), own({ profile: "wipe", selector: {}, matchAll: true }, "all"), disk);
    under.source.tellListed();
    await under.synced;
  });

  it("a Group of the same selector makes the machine wait, whatever its name", async () => {
    const before = "default/fcos-3 default/disk";
    expect(await answers(mac, () => put(dup))).toEqual([before, "tied"]);
    expect([await conflictOf("fcos-3"), await conflictOf("dup")]).toEqual([tied, tied]);
    expect(await answers(mac, () => drop(dup))).toEqual(["tied", before]);
    expect(await conflictOf("fcos-3")).toEqual(free);
  });

  it("a list that has the machine, too, makes it wait, and no other machine of the lists", async () => {
    put(own({ profile: "disk", ...list(second, third) }, "rack"));
    const before = "default/rack default/disk";
    expect(await answers(third, () => {})).toEqual(["default/all default/wipe", before]);
    expect(await answers(third, () => put(own({ profile: "wipe", ...list(third, "52:54:00:00:00:09") }, "a")))).toEqual(
      [before, "tied"],
    );
    expect(await answers(second, () => {})).toEqual([before]);
    expect([await conflictOf("rack"), await conflictOf("a")]).toEqual([tied, tied]);
  });

  it("a second catch-all makes everybody wait whom no other Group names", async () => {
    const other = own({ profile: "disk", selector: {}, matchAll: true }, "a");
    expect(await answers(third, () => put(other))).toEqual(["default/all default/wipe", "tied"]);
    expect(await answers(mac, () => {})).toEqual(["default/fcos-3 default/disk"]);
  });

  it("a Group that differs in nothing but hold holds the machine", async () => {
    const held = own({ profile: "disk", selector: { mac }, hold: true }, "z");
    expect(await answers(mac, () => put(held))).toEqual(["default/fcos-3 default/disk", "tied"]);
  });

  it("a rename by create and then delete never makes the machine wait", async () => {
    const renamed = own({ profile: "disk", selector: { mac } }, "renamed");
    const profileOf = (answer: string) => answer.split(" ")[1];
    const seen = [...(await answers(mac, () => put(renamed))), ...(await answers(mac, () => drop(disk)))];
    expect(new Set(seen.map(profileOf))).toEqual(new Set(["default/disk"]));
    expect(await conflictOf("renamed")).toEqual(free);
  });
});

describe("between namespaces", () => {
  const a = own({ profile: "disk", selector: { mac } }, "node-a", "team-a");
  const b = own({ profile: "wipe", selector: { mac } }, "node-b", "team-b");
  const ofA = "team-a/node-a team-a/disk";

  async function start(...objects: readonly GroupObject[]): Promise<void> {
    under = await ControllerUnderTest.start({ adminNamespace: "infra" });
    under.source.put(...["team-a", "team-b", "infra"].flatMap(profiles), ...objects);
    under.source.tellListed();
    await under.synced;
  }

  it("the Group that was accepted first keeps the machine, whatever becomes of the other one", async () => {
    await start(a);
    expect(await answers(mac, () => put(b))).toEqual([ofA]);
    const outclaimed = ["True ClaimedBefore", "False ClaimedBefore"];
    expect([await conflictOf("node-a"), await conflictOf("node-b")]).toEqual([free, outclaimed]);
    const edited = { ...a, generation: 2, spec: { ...a.spec, metadata: { edited: true } } };
    expect(await answers(mac, () => put(edited))).toEqual([ofA]);
    expect(await answers(mac, () => drop(b))).toEqual([ofA]);
  });

  it("a Group that widens to a machine of another one comes after it, and loses none of its own", async () => {
    await start(own({ profile: "disk", ...list(mac, second) }, "node-a", "team-a"));
    const later = own({ profile: "wipe", ...list(mac, third) }, "node-b", "team-b");
    expect(await answers(mac, () => put(later))).toEqual([ofA]);
    const widened = own({ profile: "disk", ...list(mac, second, third) }, "node-a", "team-a");
    expect(await answers(third, () => put(widened))).toEqual(["team-b/node-b team-b/wipe"]);
    expect(await answers(mac, () => {})).toEqual([ofA]);
    expect(await answers(second, () => {})).toEqual([ofA]);
  });

  it("a Group keeps its claim when it is deleted and created anew", async () => {
    await start(a);
    await answers(mac, () => put(b));
    const { namespace, name, kind } = a;
    const seen = [
      ...(await answers(mac, () => drop({ namespace, name, kind }))),
      ...(await answers(mac, () => put(a))),
    ];
    expect(seen.at(0)).toBe(ofA);
    expect(seen.at(-1)).toBe(ofA);
    await under.clock.advance(61_000);
    expect(under.answer({ mac })).toBe(ofA);
  });

  it.each<[name: string, namespaceOf: (turn: number) => string]>([
    ["one namespace", () => "team-c"],
    ["many namespaces", (turn) => `team-c${turn}`],
  ])("a Group keeps its claim while it is away, whatever Groups of %s come and go", async (_name, namespaceOf) => {
    const first = own({ profile: "disk", selector: { mac, os: "x" } }, "first", "team-d");
    await start(first);
    put(...profiles("team-d"));
    await answers(mac, () => put(a));
    for (const group of [first, a]) await answers(mac, () => drop(group));
    for (let turn = 0; turn < 20; turn++) {
      const namespace = namespaceOf(turn);
      const other = own({ profile: "disk", selector: { mac, [`try-${turn}`]: "x" } }, "other", namespace);
      await answers(mac, () => put(...profiles(namespace), other));
      await answers(mac, () => drop(other));
    }
    await answers(mac, () => put(b));
    await answers(mac, () => put(a));
    expect(under.answer({ mac })).toBe(ofA);
    // One at most of each namespace for one value.
    expect(under.stored("/davit/tombstones/").length).toBeLessThanOrEqual(22);
  });

  it.each(["one after the other", "in one step"])(
    "a renamed Group keeps the claim of its namespace, %s",
    async (how) => {
      await start(a);
      await answers(mac, () => put(b));
      const renamed = own({ profile: "disk", selector: { mac } }, "a-renamed", "team-a");
      const seen: string[] = [];
      if (how === "in one step") {
        seen.push(
          ...(await answers(mac, () => {
            under.source.put(renamed).drop(a);
            under.source.tellChanged(a, renamed);
          })),
        );
      } else seen.push(...(await answers(mac, () => put(renamed))), ...(await answers(mac, () => drop(a))));
      const ofRenamed = "team-a/a-renamed team-a/disk";
      expect(new Set(seen)).toEqual(new Set([ofA, ofRenamed]));
      expect(seen.at(-1)).toBe(ofRenamed);
    },
  );

  it("a Group of the admin namespace takes its machine, whenever it came", async () => {
    await start(a);
    const admin = own({ profile: "wipe", selector: { mac } }, "z", "infra");
    expect(await answers(mac, () => put(admin))).toEqual([ofA, "infra/z infra/wipe"]);
    expect(await conflictOf("node-a")).toEqual(["True ClaimedBefore", "False ClaimedBefore"]);
    expect(await conflictOf("z")).toEqual(free);
  });

  it("Groups that came together make the machine wait", async () => {
    await start(a, b);
    expect(await answers(mac, () => {})).toEqual(["tied"]);
    expect([await conflictOf("node-a"), await conflictOf("node-b")]).toEqual([tied, tied]);
  });

  it("a namespace that is heard late for the first time loses no machine by that", async () => {
    under = await ControllerUnderTest.start({ adminNamespace: "infra" });
    under.source.complete = false;
    const wipeA = own({ profile: "wipe", selector: { mac } }, "wipe-a", "team-a");
    under.source.put(
      ...["team-a", "team-b", "team-c"].flatMap(profiles),
      own({ profile: "disk", ...list(third) }, "x", "team-a"),
    );
    under.source.tellListed();
    await under.synced;
    await answers(mac, () => put(wipeA));
    const seen = await answers(mac, () => {
      under.source.complete = true;
      put(b);
      under.source.tellListed();
    });
    expect(seen.at(-1)).toBe("tied");
    const late = own({ profile: "wipe", selector: { mac: third } }, "late", "team-c");
    expect(await answers(third, () => put(late))).toEqual(["team-a/x team-a/disk"]);
    expect(await answers(mac, () => drop(b))).toEqual(["tied", "team-a/wipe-a team-a/wipe"]);
  });

  it("Groups that an older davit wrote claim as before, and before all that come", async () => {
    await start(a);
    const [text = ""] = under.stored("/davit/groups/team-a/");
    expect(JSON.parse(text)).toMatchObject({ claimedAt: expect.any(Number) });
    const { claimedAt: _, ...older } = JSON.parse(text) as Record<string, unknown>;
    await under.store.submit({
      kind: "set",
      path: storePath("/davit/groups/team-a/node-a"),
      value: JSON.stringify(older),
    });
    expect(await answers(mac, () => put(b))).toEqual([ofA]);
  });
});
