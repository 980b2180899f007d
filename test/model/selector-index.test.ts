import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { operators } from "../../src/model/labels/expression.ts";
import type { Labels } from "../../src/model/labels/labels.ts";
import { compareGroups, type Group, matches, toGroup } from "../../src/model/objects/group.ts";
import { settle } from "../../src/model/selection/contest.ts";
import { SelectorIndex } from "../../src/model/selection/selector-index.ts";
import { groupSpec } from "../boot/feed-documents.ts";
import { collectGarbage } from "../helpers/collect-garbage.ts";

// Few names and values, so that random groups share labels, tie and match.
const labelNames = fc.constantFrom("uuid", "mac", "serial", "role", "zone", "__proto__");
const labelValues = fc.constantFrom("1", "2", "3", "é");
const labelMaps = fc.uniqueArray(fc.tuple(labelNames, labelValues), { selector: ([name]) => name, maxLength: 4 });

const expressions = fc
  .record({
    key: labelNames,
    operator: fc.constantFrom(...operators),
    values: fc.uniqueArray(fc.constantFrom("1", "2", "3", "é", "*", "?"), { minLength: 1, maxLength: 3 }),
  })
  .map(({ key, operator, values }) => ({ key, operator, values: operator.endsWith("Exist") ? [] : values }));
const expressionLists = fc.oneof(
  { weight: 1, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: fc.array(expressions, { maxLength: 3 }) },
);

const groupLists = fc
  .array(
    fc.record({ selector: labelMaps, expressions: expressionLists, priority: fc.constantFrom(0, 0, 0, 1, 1000) }),
    { maxLength: 40 },
  )
  .map((specs) =>
    specs.map(({ selector, expressions, priority }, at) =>
      toGroup("ns", `g${at}`, groupSpec({ selector: Object.fromEntries(selector), expressions, priority })),
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

  it("finds by all values of a machine's labels what a search through all groups finds, and misses no rival", () => {
    const further = fc.uniqueArray(
      fc.tuple(fc.constantFrom("uuid", "mac"), fc.uniqueArray(labelValues, { minLength: 1, maxLength: 3 })),
      { selector: ([name]) => name, minLength: 1 },
    );
    const profiles = fc.array(fc.constantFrom("a", "b"), { minLength: 40, maxLength: 40 });
    let rivals = 0;
    fc.assert(
      fc.property(groupLists, profiles, labelMaps, further, (bare, names, pairs, others) => {
        const groups = bare.map((group, at) => ({ ...group, profileId: `ns/${names[at]}` }));
        const index = new SelectorIndex<Group>(groups);
        const labels: Labels = Object.assign(new Map(pairs), { further: new Map(others) });
        const first = naiveFind(groups, labels);
        expect(index.find(labels)?.id).toBe(first?.id);
        const matching = groups.filter((group) => matches(group, labels));
        const contest = settle(matching, labels);
        const found = index.settle(labels);
        expect([found.winner?.id, found.rivals.map(({ id }) => id).toSorted()]).toEqual([
          contest.winner?.id,
          contest.rivals.map(({ id }) => id).toSorted(),
        ]);
        const own = first && groups.find(({ id }) => id === first.id);
        if (own === undefined || (contest.rivals.length === 0 && contest.winner === first)) return;
        rivals += 1;
        expect(index.hasRival(own, labels)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
    expect(rivals).toBeGreaterThan(0);
  });

  it("removes a group of two patterns for one label, and no other", () => {
    const prefix = { key: "serial", operator: "Prefix", values: ["1"] } as const;
    const two = toGroup("ns", "two", groupSpec({ expressions: [prefix, { ...prefix, operator: "Glob" }] }));
    const one = toGroup("ns", "one", groupSpec({ expressions: [prefix] }));
    const index = new SelectorIndex([one]);
    index.add(two);
    index.remove(two);
    expect(index.find(new Map([["serial", "1"]]))?.id).toBe("ns/one");
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

  it("has every group that matches in a list for the labels, and each list in the order in which groups win", () => {
    fc.assert(
      fc.property(groupLists, labelMaps, (groups, entries) => {
        const labels = new Map(entries);
        const lists = new SelectorIndex(groups).listsFor(labels);
        for (const list of lists) expect(list).toEqual(list.toSorted(compareGroups));
        expect(lists.flat()).toEqual(expect.arrayContaining(groups.filter((group) => matches(group, labels))));
      }),
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

  it("is empty again when groups with expressions were removed", () => {
    const groups = [
      { expressions: [{ key: "mac", operator: "In", values: ["1", "2"] }] as const },
      { expressions: [{ key: "mac", operator: "In", values: ["2", "3"] }] as const, selector: { mac: "2" } },
      { expressions: [{ key: "serial", operator: "Prefix", values: ["S"] }] as const },
    ].map((spec, at) => toGroup("ns", `${at}`, groupSpec(spec)));
    const index = new SelectorIndex(groups);
    for (const group of groups) index.remove(group);
    expect(index.largestBucket).toBe(0);
    for (const group of groups) index.add(group);
    expect(index.find(new Map([["mac", "3"]]))).toBeUndefined();
    expect(index.find(new Map([["mac", "1"]]))).toBe(groups[0]);
    expect(index.find(new Map([["serial", "S1"]]))).toBe(groups[2]);
  });

  it("looks at one group for each of 5,000 machines that it lists, among lists of others", () => {
    const groups = Array.from({ length: 20 }, (_, list) => {
      const values = Array.from({ length: 5000 }, (_, at) => `${list}/${at}`);
      return toGroup("ns", `g${list}`, groupSpec({ expressions: [{ key: "mac", operator: "In", values }] }));
    });
    const index = new SelectorIndex(groups);
    expect(index.largestBucket).toBe(1);
    expect(index.find(new Map([["mac", "7/4999"]]))).toBe(groups[7]);
    expect(index.find(new Map([["mac", "7/5000"]]))).toBeUndefined();
  });

  it("lets a group go that was replaced, also where it was looked at beside many others that stay", async () => {
    const many = Array.from({ length: 20 }, (_, at) => {
      const pattern = { key: "serial", operator: "Prefix", values: [`${at}-`] } as const;
      return toGroup("ns", `p${at}`, groupSpec({ expressions: [pattern] }));
    });
    const index = new SelectorIndex<Group>(many);
    const catchAll = () => toGroup("ns", "all", groupSpec({ selector: {}, matchAll: true }));
    const replaced = (() => {
      const group = catchAll();
      index.add(group);
      expect(index.hasRival(group, new Map([["serial", "x"]]))).toBe(false);
      index.remove(group);
      return new WeakRef(group);
    })();
    index.add(catchAll());
    await expect
      .poll(() => {
        collectGarbage();
        return replaced.deref() === undefined;
      })
      .toBe(true);
    expect(index.find(new Map([["serial", "x"]]))?.id).toBe("ns/all");
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
