import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ranking } from "../../src/controller/ranking/ranking.ts";
import { conflictOf } from "../../src/controller/reconcile/reconcile-group.ts";
import type { Expression } from "../../src/model/labels/expression.ts";
import { type Group, matches, toGroup } from "../../src/model/objects/group.ts";
import { isRival, settle } from "../../src/model/selection/contest.ts";
import { groupSpec } from "./objects.ts";

function group(id: string, selector: Record<string, string>, priority = 0): Group {
  const [namespace = "", name = ""] = id.split("/");
  return toGroup(namespace, name, groupSpec({ selector, priority, matchAll: Object.keys(selector).length === 0 }));
}

/** With expressions in place of labels. */
function expressed(id: string, expressions: readonly Expression[], selector: Record<string, string> = {}): Group {
  const [namespace = "", name = ""] = id.split("/");
  return toGroup(namespace, name, groupSpec({ selector, expressions }));
}

function rankingOf(groups: readonly Group[]): Ranking {
  const ranking = new Ranking();
  for (const each of groups) ranking.update(each.id, each);
  return ranking;
}

function standings(ranking: Ranking, groups: readonly Group[]): ReadonlyMap<string, string> {
  return new Map(groups.map((each) => [each.id, JSON.stringify(ranking.standingOf(each))]));
}

const values = fc.uniqueArray(fc.constantFrom("m1", "m2", "m3"), { minLength: 1 });
const someExpressions = fc.array(
  fc.oneof(
    fc.record({ key: fc.constantFrom("mac", "role"), operator: fc.constantFrom("In", "NotIn", "Prefix"), values }),
    fc.record({
      key: fc.constantFrom("mac", "role", "os"),
      operator: fc.constantFrom("Exists", "DoesNotExist"),
      values: fc.constant([]),
    }),
  ),
  { minLength: 1, maxLength: 2 },
);
const mixedGroups = fc
  .uniqueArray(
    fc.record({
      id: fc.constantFrom("a/1", "a/2", "a/3", "b/1", "b/2", "c/1"),
      selector: fc.record({ mac: fc.constantFrom("m1", "m2"), os: fc.constantFrom("i") }, { requiredKeys: [] }),
      expressions: fc.option(someExpressions, { nil: [] }),
      priority: fc.constantFrom(0, 0, 5),
    }),
    { selector: ({ id }) => id },
  )
  .map((all) =>
    all.map(({ id, selector, expressions, priority }) => {
      const [namespace = "", name = ""] = id.split("/");
      return toGroup(namespace, name, groupSpec({ selector: { ...selector }, expressions, priority }));
    }),
  );

const someGroups = fc
  .uniqueArray(
    fc.record({
      id: fc.constantFrom("a/1", "a/2", "a/3", "b/1", "b/2", "c/1"),
      selector: fc.record(
        { mac: fc.constantFrom("m1", "m2"), role: fc.constantFrom("x", "y"), os: fc.constantFrom("i") },
        { requiredKeys: [] },
      ),
      priority: fc.constantFrom(0, 0, 5, 10),
    }),
    { selector: ({ id }) => id },
  )
  .map((all) =>
    all.map(({ id, selector, priority }) =>
      group(id, { ...selector }, Object.keys(selector).length === 0 ? 0 : priority),
    ),
  );

/** What a machine with these labels gets, and whether it is nothing because of this Group and another one. */
function contestFor(group: Group, groups: readonly Group[], machine: Readonly<Record<string, string>>) {
  const labels = new Map(Object.entries(machine));
  const matching = groups.filter((other) => matches(other, labels));
  const { winner, rivals } = settle(matching, labels);
  const contenders = winner === undefined || rivals.length === 0 ? [] : [winner, ...rivals];
  return { winner, isTied: matching.includes(group) && contenders.some((other) => isRival(group, other)) };
}

describe("a Group's standing", () => {
  const general = group("lab/workers", { role: "web" }, 5);
  const own = group("lab/node", { mac: "m1", role: "web" });

  it.each<[name: string, groups: readonly Group[], message: string | undefined]>([
    ["nobody else", [own], undefined],
    ["a general one without priority", [own, group("lab/workers", { role: "web" })], undefined],
    ["a more special one", [own, group("lab/own", { mac: "m1", role: "web", os: "i" }, 9)], undefined],
    ["one of other machines", [own, group("lab/other", { mac: "m2" }, 9)], undefined],
    [
      "a general one with a priority",
      [own, general],
      'Group "lab/workers" selects every machine that this one selects and has a higher priority',
    ],
    [
      "one with its selector and a higher priority",
      [own, group("lab/z", { role: "web", mac: "m1" }, 1)],
      'Group "lab/z" has the same selector and a higher priority',
    ],
    [
      "one with its selector and priority that gives the same",
      [own, group("lab/a", { role: "web", mac: "m1" })],
      'Group "lab/a" has the same selector and priority, and gives the same',
    ],
  ])("among %s", (_name, groups, message) => {
    const condition = conflictOf(own, rankingOf(groups).standingOf(own));
    if (message === undefined) expect(condition).toMatchObject({ status: "False", reason: "NoConflict" });
    else expect(condition).toMatchObject({ status: "True", message: `${message}: no machine gets this Group` });
  });

  it("among several catch-alls is that of the first name", () => {
    const [first, second] = [group("lab/a", {}), group("lab/b", {})];
    const ranking = rankingOf([second, first]);
    expect(ranking.standingOf(first)).toEqual({ kind: "free" });
    expect(ranking.standingOf(second)).toMatchObject({ kind: "shadowed", by: first });
  });

  it("is shadowed exactly if no machine at all would get it", () => {
    fc.assert(
      fc.property(someGroups, (groups) => {
        const ranking = rankingOf(groups);
        for (const each of groups) {
          // A machine with more labels than the selector has only more Groups that match.
          const { winner, isTied } = contestFor(each, groups, each.selector);
          const { kind } = ranking.standingOf(each);
          expect(kind).toBe(isTied ? "tied" : winner === each ? "free" : "shadowed");
        }
      }),
    );
  });
});

describe("the standing of a Group with expressions", () => {
  const list = expressed("lab/list", [{ key: "mac", operator: "In", values: ["m1", "m2"] }]);

  it.each<[name: string, group: Group, other: Group, shadowed: boolean]>([
    ["a label for one of its machines", list, group("lab/node", { mac: "m1" }), false],
    [
      "a label for its only machine",
      expressed("lab/x", [{ key: "mac", operator: "In", values: ["m1"] }]),
      group("lab/node", { mac: "m1" }),
      true,
    ],
    [
      "one that also lists all of its machines, with more expressions",
      list,
      expressed("lab/o", [
        { key: "mac", operator: "In", values: ["m1", "m2", "m3"] },
        { key: "mac", operator: "Exists", values: [] },
      ]),
      true,
    ],
    ["one for machines without an os", list, group("lab/none", { role: "x" }, 5), false],
  ])("among %s", (_name, each, other, shadowed) => {
    expect(rankingOf([each, other]).standingOf(each).kind).toBe(shadowed ? "shadowed" : "free");
  });

  it("is told with the reason why the other one wins", () => {
    const node = group("lab/node", { mac: "m1" });
    const own = expressed("lab/x", [{ key: "mac", operator: "In", values: ["m1"] }]);
    expect(conflictOf(own, rankingOf([own, node]).standingOf(own)).message).toBe(
      'Group "lab/node" selects every machine that this one selects and comes first in the order of Groups: ' +
        "no machine gets this Group",
    );
  });

  it("is shadowed only if no machine at all gets it", () => {
    const machines = fc.record(
      {
        mac: fc.constantFrom("m1", "m2", "m3", "m4", ""),
        role: fc.constantFrom("m1", "x", ""),
        os: fc.constantFrom("i", ""),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(mixedGroups, machines, (groups, machine) => {
        for (const each of groups) {
          const { winner, isTied } = contestFor(each, groups, machine);
          const { kind } = rankingOf(groups).standingOf(each);
          if (winner === each || isTied) expect(kind).not.toBe("shadowed");
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe("Groups of many patterns for one label", () => {
  const anyValue: readonly Expression[] = [{ key: "a", operator: "Exists", values: [] }];
  const pattern = (at: number, name = `${at}`) =>
    expressed(`lab/${name}`, [{ key: "a", operator: "Glob", values: [`*0-${at}*`, `?${at}*`] }]);
  const patterns = Array.from({ length: 10_000 }, (_, at) => pattern(at));

  it("are compared a bounded number of times, not each with each", () => {
    let reads = 0;
    const counted = patterns.map((each): Group => {
      const { expressions } = each;
      return Object.defineProperty({ ...each }, "expressions", {
        get() {
          reads++;
          return expressions;
        },
      });
    });
    const ranking = rankingOf(counted);
    ranking.takeAffected();
    for (const each of counted) expect(ranking.standingOf(each)).toEqual({ kind: "free" });
    expect(reads).toBeLessThan(200 * patterns.length);
  });

  it("lose to a copy under a smaller name, however many others there are", () => {
    const copies = [0, 5_000, 9_999].map((at) => pattern(at, `copy-${at}`));
    const ranking = rankingOf([...patterns, ...copies]);
    const standing = copies.map((copy) => ranking.standingOf(copy));
    expect(standing).toMatchObject(["lab/0", "lab/5000", "lab/9999"].map((id) => ({ kind: "shadowed", by: { id } })));
  });

  it("are named again when the Group goes that they were told to lose to, and only then", () => {
    const ranking = rankingOf(patterns);
    const whole = toGroup("lab", "whole", groupSpec({ selector: {}, expressions: anyValue, priority: 5 }));
    ranking.update(whole.id, whole);
    const told = patterns.slice(-20);
    for (const each of told) expect(ranking.standingOf(each)).toEqual({ kind: "shadowed", by: whole });
    ranking.takeAffected();
    ranking.update("lab/7", undefined);
    const others = ranking.takeAffected().others;
    expect(told.filter(({ id }) => others.has(id))).toEqual([]);
    ranking.update(whole.id, undefined);
    expect([...ranking.takeAffected().others]).toEqual(expect.arrayContaining(told.map(({ id }) => id)));
    for (const each of told) expect(ranking.standingOf(each)).toEqual({ kind: "free" });
  });
});

/** Those whose standing is another than before are named when one set of Groups takes the place of another. */
function expectChangedNamed(ranking: Ranking, before: readonly Group[], after: readonly Group[]): void {
  ranking.takeAffected();
  const standingBefore = standings(ranking, before);
  for (const { id } of before) ranking.update(id, undefined);
  for (const each of after) ranking.update(each.id, each);
  const changed = [...standings(ranking, after)].filter(([id, text]) => standingBefore.get(id) !== text);
  const { siblings, others } = ranking.takeAffected();
  expect([...siblings, ...others]).toEqual(expect.arrayContaining(changed.map(([id]) => id)));
}

describe("Groups that changed", () => {
  it("name everyone with expressions whose standing is another than before", () => {
    fc.assert(
      fc.property(mixedGroups, mixedGroups, (before, after) => {
        expectChangedNamed(rankingOf(before), before, after);
      }),
      { numRuns: 300 },
    );
  });

  it("name everyone whose standing is another than before", () => {
    fc.assert(
      fc.property(someGroups, someGroups, (before, after) => {
        expectChangedNamed(rankingOf(before), before, after);
      }),
    );
  });

  it("are nobody after an update that changes nothing", () => {
    const ranking = rankingOf([group("lab/node", { mac: "m1" })]);
    ranking.takeAffected();
    ranking.update("lab/node", group("lab/node", { mac: "m1" }));
    expect(ranking.takeAffected()).toEqual({ siblings: new Set(), others: new Set() });
  });

  it("cost no more among 10,000 Groups, each of its own machine", () => {
    const groups = Array.from({ length: 10_000 }, (_, at) => group(`lab/${at}`, { mac: `m${at}`, role: "web" }, 10));
    const ranking = rankingOf(groups);
    ranking.takeAffected();
    ranking.update("lab/7", group("lab/7", { mac: "m8", role: "web" }, 10));
    expect(ranking.takeAffected()).toEqual({
      siblings: new Set(["lab/8", "lab/7"]),
      others: new Set(["lab/8", "lab/7"]),
    });
  });
});

/** A Group of machines by their addresses, and what it gives them. */
function giving(id: string, macs: readonly string[], { profile = "web", at = 0, role = false } = {}): Group {
  const [namespace = "", name = ""] = id.split("/");
  const [mac = ""] = macs;
  const list: readonly Expression[] = [{ key: "mac", operator: "In", values: macs }];
  const labels = role ? { role: "x" } : {};
  const selector = macs.length === 1 ? { mac, ...labels } : labels;
  const expressions = macs.length === 1 ? [] : list;
  return toGroup(namespace, name, groupSpec({ selector, expressions, profile }), { claimedAt: at });
}

describe("Groups that match machines alike and give something else", () => {
  const told = (groups: readonly Group[], group = groups[0]) =>
    group && conflictOf(group, rankingOf(groups).standingOf(group));

  it.each<[name: string, groups: readonly Group[]]>([
    ["of one selector", [giving("lab/a", ["m1"]), giving("lab/dup", ["m1"], { profile: "wipe" })]],
    [
      "with lists that share a machine",
      [giving("lab/a", ["m1", "m2"]), giving("lab/b", ["m2", "m3"], { profile: "wipe" })],
    ],
    ["of several namespaces, accepted together", [giving("a/x", ["m1"], { at: 7 }), giving("b/x", ["m1"], { at: 7 })]],
  ])("%s tie", (_name, groups) => {
    for (const each of groups) {
      const other = groups.find((candidate) => candidate !== each);
      const message = `Group "${other?.id}" selects machines of this Group by the same keys and operators`;
      expect(told(groups, each)).toMatchObject({ status: "True", reason: "SelectorTie" });
      expect(told(groups, each)?.message).toContain(message);
    }
    expect(told(groups)?.message).toContain("To rename a Group, create it under its new name");
  });

  it.each<[name: string, groups: readonly Group[]]>([
    ["the same of the Profile", [giving("lab/a", ["m1"]), giving("lab/b", ["m1"])]],
    [
      "lists without a machine in common",
      [giving("lab/a", ["m1", "m2"]), giving("lab/b", ["m3", "m4"], { profile: "wipe" })],
    ],
    ["a list that a label is before", [giving("lab/a", ["m1"]), giving("lab/b", ["m1", "m2"], { profile: "wipe" })]],
    [
      "lists with a machine in common that gets another Group",
      [giving("lab/a", ["m1", "m2"]), giving("lab/b", ["m2", "m3"], { profile: "wipe" }), giving("lab/own", ["m2"])],
    ],
    ["more labels", [giving("lab/a", ["m1"], { role: true }), giving("lab/b", ["m1"], { profile: "wipe" })]],
  ])("but not with %s", (_name, groups) => {
    expect(told(groups)).toMatchObject({ status: "False" });
  });

  it("of several namespaces lose to the one that was accepted first", () => {
    const groups = [giving("a/x", ["m1", "m2"], { at: 7 }), giving("b/x", ["m1", "m3"], { at: 5 })];
    expect(told(groups)).toMatchObject({
      reason: "ClaimedBefore",
      message:
        'Group "b/x" of another namespace selects machines of this Group, and its claim to them comes first: they do ' +
        "not get this Group",
    });
    expect(told(groups, groups[1])).toMatchObject({ status: "False" });
  });

  it("are told exactly where some machine is answered 503 for it", () => {
    const macs = fc.uniqueArray(fc.constantFrom("m1", "m2", "m3"), { minLength: 1, maxLength: 3 });
    const someLists = fc.uniqueArray(
      fc.record({
        id: fc.constantFrom("a/1", "a/2", "a/3", "b/1", "b/2", "c/1"),
        macs: macs.map((all) => all.toSorted()),
        profile: fc.constantFrom("web", "wipe"),
        at: fc.constantFrom(1, 2, 2),
        role: fc.boolean(),
      }),
      { selector: ({ id }) => id },
    );
    fc.assert(
      fc.property(someLists, (all) => {
        const groups = all.map(({ id, macs, ...given }) => giving(id, macs, given));
        const ranking = rankingOf(groups);
        const machines = ["m1", "m2", "m3"].flatMap((mac) => [{ mac }, { mac, role: "x" }]);
        for (const each of groups) {
          const isTied = machines.some((machine) => contestFor(each, groups, machine).isTied);
          const gets = machines.some((machine) => contestFor(each, groups, machine).winner === each);
          const { kind } = ranking.standingOf(each);
          // What gets no machine at all says so, and not that it would tie.
          if (kind === "shadowed") expect(gets).toBe(false);
          else expect(kind === "tied").toBe(isTied);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it("are found among 10,000 of one selector without a look at each for each", () => {
    const groups = Array.from({ length: 10_000 }, (_, at) => giving(`lab/${at}`, ["m1"]));
    const dup = giving("lab/dup", ["m1"], { profile: "wipe" });
    let reads = 0;
    const counted = groups.map((each): Group => {
      const { metadata } = each;
      return Object.defineProperty({ ...each }, "metadata", {
        get() {
          reads++;
          return metadata;
        },
      });
    });
    const ranking = rankingOf([...counted, dup]);
    reads = 0;
    for (const each of [...counted, dup]) expect(ranking.standingOf(each).kind).toBe("tied");
    expect(reads).toBeLessThan(200 * counted.length);
  });
});
