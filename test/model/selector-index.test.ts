import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareGroups, type Group, matches, toGroup } from "../../src/model/group.ts";
import type { Labels } from "../../src/model/labels.ts";
import { SelectorIndex } from "../../src/model/selector-index.ts";
import { groupSpec } from "../boot/feed-documents.ts";

// Few names and values, so that random groups share labels, tie and match.
const labelNames = fc.constantFrom("uuid", "mac", "serial", "role", "zone", "__proto__");
const labelValues = fc.constantFrom("1", "2", "3", "é");
const labelMaps = fc.uniqueArray(fc.tuple(labelNames, labelValues), { selector: ([name]) => name, maxLength: 4 });

const groupLists = fc
  .array(fc.record({ selector: labelMaps, priority: fc.constantFrom(0, 0, 0, 1, 1000) }), { maxLength: 40 })
  .map((specs) =>
    specs.map(({ selector, priority }, at) =>
      toGroup("ns", `g${at}`, groupSpec({ selector: Object.fromEntries(selector), priority })),
    ),
  );

/** What the index promises, said as plainly as possible. */
function naiveFind(groups: readonly Group[], labels: Labels): Group | undefined {
  return groups.filter((group) => matches(group, labels)).toSorted(compareGroups)[0];
}

describe("SelectorIndex", () => {
  it("finds what a search through all groups finds", () => {
    fc.assert(
      fc.property(groupLists, fc.array(labelMaps, { maxLength: 10 }), (groups, machines) => {
        const index = new SelectorIndex(groups);
        for (const machine of machines) {
          const labels = new Map(machine);
          expect(index.find(labels)?.id).toBe(naiveFind(groups, labels)?.id);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("finds the same whatever the order in which groups came and went", () => {
    const orders = groupLists.chain((groups) =>
      fc.record({
        kept: fc.constant(groups),
        order: fc.shuffledSubarray(groups, { minLength: groups.length }),
        passing: groupLists.map((others) => others.map((group) => ({ ...group, id: `other/${group.id}` }))),
        machine: labelMaps,
      }),
    );
    fc.assert(
      fc.property(orders, ({ kept, order, passing, machine }) => {
        const index = new SelectorIndex<Group>(passing);
        for (const group of order) index.add(group);
        for (const group of passing) index.remove(group);
        const labels = new Map(machine);
        expect(index.find(labels)?.id).toBe(naiveFind(kept, labels)?.id);
      }),
      { numRuns: 300 },
    );
  });

  it("is empty again when every group was removed", () => {
    const groups = ["1", "2"].map((value) =>
      toGroup("ns", value, groupSpec({ selector: { role: "web", serial: value } })),
    );
    const index = new SelectorIndex(groups);
    for (const group of groups) index.remove(group);
    expect(
      index.find(
        new Map([
          ["role", "web"],
          ["serial", "1"],
        ]),
      ),
    ).toBeUndefined();
    expect(index.largestBucket).toBe(0);
  });

  it("passes over the removal of a group that it never had", () => {
    const index = new SelectorIndex<Group>();
    index.remove(toGroup("ns", "g", groupSpec({ selector: { role: "web" } })));
    expect(index.find(new Map([["role", "web"]]))).toBeUndefined();
  });

  it.each<[name: string, selectorOf: (at: number) => Record<string, string>]>([
    ["machines of one role", (at) => ({ role: "worker", serial: `s${at}` })],
    ["one uuid that cheap boards share", (at) => ({ uuid: "00000000-0000-0000-0000-000000000000", mac: `m${at}` })],
    ["racks and slots", (at) => ({ rack: `r${Math.floor(at / 50)}`, slot: `${at % 50}`, role: "worker" })],
  ])("keeps buckets small for %s, loaded at once or one by one", (_name, selectorOf) => {
    const groups = Array.from({ length: 5000 }, (_, at) =>
      toGroup("ns", `g${at}`, groupSpec({ selector: selectorOf(at) })),
    );
    const grown = new SelectorIndex<Group>();
    for (const group of groups) grown.add(group);
    expect(new SelectorIndex(groups).largestBucket).toBeLessThanOrEqual(50);
    expect(grown.largestBucket).toBeLessThanOrEqual(50);
  });
});
