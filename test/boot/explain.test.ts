import { describe, expect, it } from "vitest";
import { BootSnapshot } from "../../src/boot/explaining/boot-snapshot.ts";
import { findContenders } from "../../src/boot/explaining/contenders.ts";
import { type Explanation, explain } from "../../src/boot/explaining/explain.ts";
import { BootIndex } from "../../src/boot/selection/boot-index.ts";
import { inSlices } from "../../src/lib/slices.ts";
import { labelsFromQuery } from "../../src/model/labels/labels.ts";
import { encodeDocument, tombstonePath } from "../../src/model/objects/documents.ts";
import { silentLog } from "../helpers/test-store.ts";
import { groupDocument, outdated, profileDocument, syncedDocument } from "./feed-documents.ts";

type Documents = readonly (readonly [string, string])[];

const zoneA = groupDocument("lab/a", { selector: { zone: "a" } });
const web = profileDocument("lab/web");

async function explained(documents: Documents, query: string, limit = 10): Promise<Explanation> {
  const index = new BootIndex({ log: silentLog });
  index.replaced([syncedDocument(), ...documents]);
  index.open();
  const labels = labelsFromQuery(query);
  const moment = new BootSnapshot(index, labels);
  return explain(moment, labels, await inSlices(findContenders({ groups: moment.groups, labels, limit })));
}

describe("a Group that matches loses", () => {
  it.each([
    {
      by: "priority",
      winner: groupDocument("lab/w", { selector: { zone: "a" }, priority: 7 }),
      loser: groupDocument("lab/l", { selector: { zone: "a", rack: "1" } }),
      lost: "lower priority: 0, the winner has 7",
    },
    {
      by: "number of labels",
      winner: groupDocument("lab/w", { selector: { zone: "a", rack: "1" } }),
      loser: groupDocument("lab/l", { selector: { zone: "a" } }),
      lost: "fewer labels: 1, the winner has 2",
    },
    {
      by: "selector",
      winner: groupDocument("lab/w", { selector: { zone: "a" } }),
      loser: groupDocument("lab/l", { selector: { rack: "1" } }),
      lost: "as many labels; then the selector that sorts last wins",
    },
    {
      by: "name, which gives the same",
      winner: groupDocument("lab/w", { selector: { zone: "a" } }),
      loser: groupDocument("lab/x", { selector: { zone: "a" } }),
      lost: "same selector and priority, and gives the same",
    },
  ])("by $by", async ({ winner, loser, lost }) => {
    const { chosen, losers, refused } = await explained([web, loser, winner], "zone=a&rack=1");
    expect([chosen?.group, refused]).toEqual(["lab/w", undefined]);
    expect(losers.map((each) => each.lost)).toEqual([lost]);
  });
});

describe("a Profile's effect", () => {
  const install = profileDocument("lab/web", { effect: "Install" });

  it.each<[effect: "Install" | "Boot" | undefined]>([["Install"], ["Boot"], [undefined]])(
    "is told: %s",
    async (effect) => {
      const explanation = await explained([profileDocument("lab/web", effect && { effect }), zoneA], "zone=a");
      expect([explanation.effect, explanation.refused]).toEqual([effect, undefined]);
    },
  );

  it.each<[doubt: string, documents: Documents]>([
    ["the Group's newest version is refused", [install, outdated(zoneA)]],
    ["a config of its Profile fails: spec.generic: x", [install, outdated(zoneA, { flaw: "spec.generic: x" })]],
    ["the Profile's newest version is refused", [outdated(install), zoneA]],
    ["part of the source cannot be read", [install, zoneA, syncedDocument({ half: true })]],
    ["objects are changing", [install, zoneA, syncedDocument({ changing: true })]],
    [
      "another Group of this priority names the machine",
      [
        install,
        groupDocument("lab/serial", { selector: { serial: "1", zone: "a" } }),
        groupDocument("lab/host", { selector: { hostname: "node" }, profile: "disk" }),
      ],
    ],
  ])("has its doubt told: %s", async (doubt, documents) => {
    const { effect, refused } = await explained(documents, "zone=a&serial=1&hostname=node");
    expect([effect, refused?.reason]).toEqual(["Install", expect.stringMatching(/^(doubtful|changing)$/)]);
    expect(refused?.doubt).toContain(doubt);
  });

  it("is told with the doubt of a source that is silent, and since when", () => {
    const freshness = { staleness: "stale", ageSeconds: 93.4 } as const;
    const index = new BootIndex({ log: silentLog, freshness });
    index.replaced([syncedDocument(), install, zoneA]);
    index.open();
    const labels = labelsFromQuery("zone=a");
    const none = { matching: [], matchingCount: 1, nearest: [], otherCount: 0, selectorLabels: new Set<string>() };
    const { refused } = explain(new BootSnapshot(index, labels), labels, none);
    expect(refused?.doubt).toBe("the last confirmation by the source is older than --install-max-source-age: 93 s ago");
  });

  it("is told of a Group that is held, too", async () => {
    const held = groupDocument("lab/a", { selector: { zone: "a" }, hold: true });
    const { effect, refused } = await explained([install, held], "zone=a");
    expect([effect, refused?.reason, refused?.doubt]).toEqual(["Install", "held", undefined]);
  });
});

it("a Group that does not match says what it wants", async () => {
  const own = groupDocument("lab/own", { selector: { mac: "52:54:00:00:00:01", zone: "b", role: "web" } });
  const { nearest, moreOthers } = await explained([web, zoneA, own], "mac=52-54-00-00-00-01&zone=a");
  expect(nearest).toEqual([
    {
      group: "lab/own",
      profile: "lab/web",
      selector: "mac=52:54:00:00:00:01,role=web,zone=b",
      priority: 0,
      misses: ["wants zone=b, request has zone=a", "wants role=web, request has no role"],
    },
  ]);
  expect(moreOthers).toBe(0);
});

describe("a refusal names the Group that wins", () => {
  it.each([
    { reason: "held", documents: [web, groupDocument("lab/a", { selector: { zone: "a" }, hold: true })] },
    { reason: "refused", documents: [web, groupDocument("lab/a", { selector: { zone: "a" } }, true)] },
    { reason: "noProfile", documents: [zoneA] },
    {
      reason: "bereft",
      documents: [
        web,
        zoneA,
        [
          tombstonePath("mac", "52:54:00:00:00:01"),
          encodeDocument({ labels: [{ mac: "52:54:00:00:00:01" }] }),
        ] as const,
      ],
    },
    { reason: "withheld", documents: [web, zoneA, syncedDocument({ complete: false })] },
  ])("when it is $reason", async ({ reason, documents }) => {
    const { chosen, refused } = await explained(documents, "mac=52-54-00-00-00-01&zone=a");
    expect([chosen?.group, refused?.reason]).toEqual(["lab/a", reason]);
  });
});

it("without a Group that matches there is none, and why", async () => {
  const { chosen, refused, losers, nearest } = await explained([web, zoneA], "zone=b");
  expect([chosen, losers]).toEqual([undefined, []]);
  expect(refused).toEqual({ reason: "noMatch", meaning: "no Group matches" });
  expect(nearest.map(({ group }) => group)).toEqual(["lab/a"]);
});

it("more Groups than are told are counted", async () => {
  const groups = ["b", "c", "d"].map((name) => groupDocument(`lab/${name}`, { selector: { zone: "a" } }));
  const others = ["e", "f", "g"].map((name) => groupDocument(`lab/${name}`, { selector: { zone: name } }));
  const { losers, moreLosers, nearest, moreOthers } = await explained([web, zoneA, ...groups, ...others], "zone=a", 2);
  expect([losers.length, moreLosers, nearest.length, moreOthers]).toEqual([1, 2, 2, 1]);
});

it("a catch-all is called matchAll, and a selector without an end is cut", async () => {
  const all = groupDocument("lab/all", { matchAll: true });
  const long = groupDocument("lab/long", { selector: { zone: "x".repeat(253) } });
  const { chosen, nearest } = await explained([web, all, long], "");
  expect(chosen?.selector).toBe("matchAll");
  expect(nearest.map(({ selector }) => selector.length)).toEqual([131]);
});
