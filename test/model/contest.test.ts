import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { operators } from "../../src/model/labels/expression.ts";
import { type Group, type GroupState, matches, toGroup } from "../../src/model/objects/group.ts";
import { settle } from "../../src/model/selection/contest.ts";
import { SelectorIndex } from "../../src/model/selection/selector-index.ts";
import { groupSpec } from "../boot/feed-documents.ts";

type Spec = Parameters<typeof groupSpec>[0];

function group(id: string, spec: Spec, state: GroupState = {}): Group {
  const [namespace = "", name = ""] = id.split("/");
  return toGroup(namespace, name, groupSpec(spec), state);
}

const mac = { mac: "m1" };
const list = (...values: string[]) => [{ key: "mac", operator: "In", values } as const];
const wipe = { profile: "wipe" };

/** The winner for a machine, or the ids of all between whom nobody decides. */
function outcome(groups: readonly Group[], machine: Readonly<Record<string, string>> = mac): string {
  const labels = new Map(Object.entries(machine));
  const { winner, rivals } = settle(
    groups.filter((each) => matches(each, labels)),
    labels,
  );
  return rivals.length === 0
    ? (winner?.id ?? "none")
    : `tie: ${[winner, ...rivals]
        .map((each) => each?.id)
        .toSorted()
        .join(" ")}`;
}

describe("a contest within a namespace", () => {
  it.each<[name: string, a: Spec, b: Spec, outcome: string]>([
    ["of one selector and another Profile", { selector: mac }, { selector: mac, ...wipe }, "tie: lab/a lab/b"],
    [
      "of one selector and other metadata",
      { selector: mac },
      { selector: mac, metadata: { os: "x" } },
      "tie: lab/a lab/b",
    ],
    ["of one selector and other arguments", { selector: mac }, { selector: mac, args: ["wipe"] }, "tie: lab/a lab/b"],
    ["of one selector, one of them held", { selector: mac }, { selector: mac, hold: true }, "tie: lab/a lab/b"],
    ["of one selector that gives the same", { selector: mac }, { selector: mac }, "lab/a"],
    ["of two catch-alls", { matchAll: true }, { matchAll: true, ...wipe }, "tie: lab/a lab/b"],
    [
      "of lists that share the machine",
      { expressions: list("m1", "m2") },
      { expressions: list("m1", "m3"), ...wipe },
      "tie: lab/a lab/b",
    ],
    [
      "of prefixes that the machine has",
      { expressions: [{ key: "mac", operator: "Prefix", values: ["m"] }] },
      { expressions: [{ key: "mac", operator: "Prefix", values: ["m1"] }], ...wipe },
      "tie: lab/a lab/b",
    ],
    ["of another priority", { selector: mac }, { selector: mac, ...wipe, priority: 1 }, "lab/b"],
    ["of a label and a list", { selector: mac }, { expressions: list("m1"), ...wipe }, "lab/a"],
    ["of other labels", { selector: mac }, { selector: { role: "x" }, ...wipe }, "lab/b"],
    ["of more labels", { selector: { ...mac, role: "x" } }, { selector: mac, ...wipe }, "lab/a"],
  ])("%s", (_name, a, b, expected) => {
    const groups = [group("lab/a", a), group("lab/b", b)];
    expect(outcome(groups, { ...mac, role: "x" })).toBe(expected);
    expect(outcome(groups.toReversed(), { ...mac, role: "x" })).toBe(expected);
  });
});

describe("a contest between namespaces", () => {
  const claimed = (id: string, claimedAt?: number, spec: Spec = {}) =>
    group(id, { selector: mac, ...spec }, claimedAt === undefined ? {} : { claimedAt });

  it.each<[name: string, groups: readonly Group[], outcome: string]>([
    ["is won by the first claim", [claimed("b/x", 5), claimed("a/x", 7)], "b/x"],
    ["is won by a claim of before claims were recorded", [claimed("b/x"), claimed("a/x", 7)], "b/x"],
    ["is won by nobody where the claims are as old", [claimed("b/x", 7), claimed("a/x", 7)], "tie: a/x b/x"],
    ["is won by nobody where no claim is known", [claimed("b/x"), claimed("a/x")], "tie: a/x b/x"],
    [
      "is won by the admin namespace",
      [group("a/x", { selector: mac }, { claimedAt: 5, tenant: true }), claimed("z-admin/x", 9)],
      "z-admin/x",
    ],
    [
      "is decided in the namespace by its own order",
      [claimed("b/x", 5), claimed("b/dup", 9, wipe), claimed("a/x", 7)],
      "tie: b/dup b/x",
    ],
    [
      "leaves the Groups of a namespace as they were without the other one",
      [
        group("a/host", { selector: { hostname: "h" } }, { claimedAt: 1 }),
        group("a/list", { expressions: list("m1", "m2") }, { claimedAt: 3 }),
        group("b/list", { expressions: list("m1", "m3") }, { claimedAt: 9 }),
      ],
      "a/host",
    ],
  ])("%s", (_name, groups, expected) => {
    expect(outcome(groups, { ...mac, hostname: "h" })).toBe(expected);
    expect(outcome(groups.toReversed(), { ...mac, hostname: "h" })).toBe(expected);
  });

  it("counts values of a list from when they were added", () => {
    const added = { claimedAt: 3, claimedLater: [{ at: 9, label: "mac", values: ["m2"] }] };
    const a = group("a/list", { expressions: list("m1", "m2") }, added);
    const b = group("b/list", { expressions: list("m1", "m2", "m3") }, { claimedAt: 5 });
    expect(outcome([a, b], { mac: "m1" })).toBe("a/list");
    expect(outcome([a, b], { mac: "m2" })).toBe("b/list");
  });

  it.each<[what: string, selector: Record<string, string>, name: string]>([
    ["a label that names no machine", { mac: "m1", os: "x" }, "os"],
    ["a second name of the machine", { mac: "m1", serial: "s1" }, "serial"],
  ])("stays with a Group that gets %s", (_, selector, name) => {
    const labels = { mac: "m1", os: "x", serial: "s1" };
    const later = { at: 9, label: name, values: [selector[name] ?? ""], isName: true as const };
    const a = group("a/narrower", { selector }, { claimedAt: 3, claimedLater: [later] });
    const b = group("b/later", { selector }, { claimedAt: 7 });
    expect(outcome([a, b], labels)).toBe("a/narrower");
  });

  it("is of the moment when a Group of many machines named this one, whatever else it asks for", () => {
    const later = { at: 9, label: "mac", values: ["m1"], isName: true as const };
    const selector = { mac: "m1", os: "x" };
    const a = group("a/narrower", { selector }, { claimedAt: 3, claimedLater: [later] });
    const b = group("b/earlier", { selector }, { claimedAt: 7 });
    expect(outcome([a, b], { mac: "m1", os: "x" })).toBe("b/earlier");
  });
});

const label = fc.constantFrom("uuid", "mac", "serial", "role");
const value = fc.constantFrom("1", "2", "12");
const selectors = fc.uniqueArray(fc.tuple(label, value), { selector: ([name]) => name, maxLength: 2 });
const expressions = fc
  .record({
    key: label,
    operator: fc.constantFrom(...operators, "In" as const, "In" as const),
    values: fc.uniqueArray(value, { minLength: 1, maxLength: 3 }).map((values) => values.toSorted()),
  })
  .map(({ key, operator, values }) => ({ key, operator, values: operator.endsWith("Exist") ? [] : values }));
const someGroups = fc
  .tuple(
    fc.boolean(),
    fc.array(
      fc.record({
        namespace: fc.constantFrom("a", "b", "c"),
        selector: selectors,
        expressions: fc.array(expressions, { maxLength: 2 }),
        profile: fc.constantFrom("web", "wipe"),
        priority: fc.constantFrom(0, 0, 0, 5),
        claimedAt: fc.constantFrom(1, 2),
      }),
      { maxLength: 25 },
    ),
  )
  .map(([hasAdmin, all]) =>
    all.map(({ namespace, selector, claimedAt, priority, ...spec }, at) => {
      const tenant = hasAdmin && namespace !== "a" && { tenant: true as const };
      const own = { ...spec, priority: tenant ? 0 : priority, selector: Object.fromEntries(selector) };
      return group(`${namespace}/g${at}`, own, { claimedAt, ...tenant });
    }),
  );

it("the index finds who has a rival, whatever came and went: its winner is that of a look at all Groups", () => {
  fc.assert(
    fc.property(
      someGroups,
      fc.array(selectors, { minLength: 1, maxLength: 8 }),
      fc.nat(10),
      (groups, machines, count) => {
        const index = new SelectorIndex(groups.slice(count));
        for (const each of groups.slice(0, count)) index.add(each);
        const gone = groups.slice(0, count / 2);
        for (const each of gone) index.remove(each);
        // Twice, since what was found of a full list is remembered.
        for (const machine of [...machines, ...machines]) {
          const labels = new Map(machine);
          const there = groups.slice(gone.length).filter((each) => matches(each, labels));
          const expected = settle(there, labels);
          const first = index.find(labels);
          const found =
            first !== undefined && index.hasRival(first, labels) ? index.settle(labels) : { winner: first, rivals: [] };
          expect([found.winner?.id, found.rivals.map(({ id }) => id)]).toEqual([
            expected.winner?.id,
            expected.rivals.map(({ id }) => id),
          ]);
        }
      },
    ),
    { numRuns: 500 },
  );
});

it("thousands of Groups of one selector that give the same are compared once, until one of them changes", () => {
  let reads = 0;
  const counted = Array.from({ length: 5_000 }, (_, at): Group => {
    const each = group(`lab/${at}`, { selector: { role: "web" } });
    const { profileId } = each;
    return Object.defineProperty({ ...each }, "profileId", {
      get() {
        reads++;
        return profileId;
      },
    });
  });
  const index = new SelectorIndex(counted);
  const labels = new Map([["role", "web"]]);
  const ask = () => {
    const first = index.find(labels);
    return first !== undefined && index.hasRival(first, labels);
  };
  expect(ask()).toBe(false);
  const once = reads;
  for (let at = 0; at < 100; at++) expect(ask()).toBe(false);
  expect(reads).toBe(once);
  index.add(group("lab/dup", { selector: { role: "web" }, profile: "wipe" }));
  expect(ask()).toBe(true);
});
