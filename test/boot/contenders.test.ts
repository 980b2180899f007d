import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Contenders, findContenders, unmetWants } from "../../src/boot/explaining/contenders.ts";
import { type Labels, labelsFromQuery } from "../../src/model/labels/labels.ts";
import { compareGroups, type Group, matches, toGroup } from "../../src/model/objects/group.ts";
import { SelectorIndex } from "../../src/model/selection/selector-index.ts";
import { groupSpec } from "./feed-documents.ts";

function group(name: string, selector: Readonly<Record<string, string>>, priority = 0): Group {
  return toGroup("lab", name, groupSpec({ selector, priority }));
}

/** Looks to the end, and counts the slices that ended before. */
function look(groups: readonly Group[], labels: Labels, limit = 10): Contenders<Group> & { readonly yields: number } {
  const work = findContenders({ groups, labels, limit });
  let yields = 0;
  for (;;) {
    const slice = work.next();
    if (slice.done === true) return { ...slice.value, yields };
    yields += 1;
  }
}

function names(groups: readonly Group[]): readonly string[] {
  return groups.map(({ id }) => id.replace("lab/", ""));
}

const mac = "52:54:00:00:00:0a";

describe("the nearest Group", () => {
  it.each([
    {
      name: "names this machine, before one that has more of what it has",
      groups: [group("more", { zone: "a", rack: "1", os: "x" }), group("own", { mac, zone: "b", os: "y" })],
      order: ["own", "more"],
    },
    {
      name: "has something of the machine, before one that has nothing of it",
      groups: [group("nothing", { zone: "b" }), group("something", { rack: "1", zone: "b" })],
      order: ["something", "nothing"],
    },
    {
      name: "names a machine whose address hardly differs, before one of another label",
      groups: [group("other", { zone: "b" }), group("slip", { mac: "52:54:00:00:00:a0" })],
      order: ["slip", "other"],
    },
    {
      name: "names no machine, before one that names another",
      groups: [group("another", { mac: "52:54:00:12:34:56" }), group("zone", { zone: "b" })],
      order: ["zone", "another"],
    },
    {
      name: "of machines by name is no slip of the pen",
      groups: [group("neighbour", { hostname: "node2" }), group("zone", { zone: "b" })],
      order: ["zone", "neighbour"],
    },
    {
      name: "lacks less",
      groups: [group("two", { zone: "b", os: "y" }), group("one", { zone: "b" })],
      order: ["one", "two"],
    },
    {
      name: "has more, where they lack as much",
      groups: [group("one", { zone: "b", rack: "1" }), group("two", { zone: "b", rack: "1", row: "7" })],
      order: ["two", "one"],
    },
    {
      name: "would win, where all else is equal",
      groups: [group("low", { zone: "b" }), group("high", { zone: "b" }, 5)],
      order: ["high", "low"],
    },
  ])("$name", ({ groups, order }) => {
    const labels = labelsFromQuery(`mac=${mac}&hostname=node1&zone=a&rack=1&row=7`);
    expect(names(look(groups, labels).nearest)).toEqual(order);
    expect(names(look(groups.toReversed(), labels).nearest)).toEqual(order);
  });
});

const someLabels = fc.dictionary(fc.constantFrom("mac", "zone", "rack", "os"), fc.constantFrom("a", "b"), {
  maxKeys: 4,
});
const someGroups = fc
  .array(fc.record({ selector: someLabels, priority: fc.nat(1) }), { maxLength: 40 })
  .map((specs) => specs.map(({ selector, priority }, at) => group(`g${at}`, selector, priority)));

it("whatever the Groups, the first that matches is the one that selection finds, and all are counted", () => {
  fc.assert(
    fc.property(someGroups, someLabels, fc.integer({ min: 1, max: 5 }), (groups, given, limit) => {
      const labels = new Map(Object.entries(given));
      const found = look(groups, labels, limit);
      const matching = groups.filter((each) => matches(each, labels)).toSorted(compareGroups);
      expect(found.matching).toEqual(matching.slice(0, limit));
      expect(found.matching[0]).toBe(new SelectorIndex(groups).find(labels));
      expect([found.matchingCount, found.otherCount]).toEqual([matching.length, groups.length - matching.length]);
      expect(found.nearest).toHaveLength(Math.min(limit, groups.length - matching.length));
      expect(found.nearest.filter((each) => unmetWants(each, labels).length === 0)).toEqual([]);
      expect(found.selectorLabels).toEqual(new Set(groups.flatMap(({ selector }) => Object.keys(selector))));
    }),
  );
});

it("a look at many Groups has a pause after each thousand", () => {
  const groups = Array.from({ length: 5_500 }, (_, at) => group(`g${at}`, { serial: `s${at}` }));
  expect(look(groups, labelsFromQuery("serial=x")).yields).toBe(5);
});
