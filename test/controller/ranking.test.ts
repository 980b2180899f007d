import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { conflictOf } from "../../src/controller/conflict.ts";
import { Ranking } from "../../src/controller/ranking.ts";
import type { Expression } from "../../src/model/expression.ts";
import { compareGroups, type Group, matches, toGroup } from "../../src/model/group.ts";
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

function rankingOf(groups: readonly Group[], tiesAcrossNamespaces = false): Ranking {
  const ranking = new Ranking({ tiesAcrossNamespaces });
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
      "one with its selector and priority that comes first by name",
      [own, group("lab/a", { role: "web", mac: "m1" })],
      'Group "lab/a" has the same selector and priority, and the first name wins',
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
          const [winner] = groups
            .filter((other) => matches(other, new Map(Object.entries(each.selector))))
            .toSorted(compareGroups);
          const standing = ranking.standingOf(each);
          expect(standing).toEqual(winner === each ? { kind: "free" } : { kind: "shadowed", by: winner });
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
        const labels = new Map(Object.entries(machine));
        const [winner] = groups.filter((each) => matches(each, labels)).toSorted(compareGroups);
        const standing = winner === undefined ? { kind: "free" } : rankingOf(groups).standingOf(winner);
        expect(standing).toEqual({ kind: "free" });
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
    expect(reads).toBeLessThan(100 * patterns.length);
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
      fc.property(someGroups, someGroups, fc.boolean(), (before, after, tiesAcrossNamespaces) => {
        expectChangedNamed(rankingOf(before, tiesAcrossNamespaces), before, after);
      }),
    );
  });

  it("are nobody after an update that changes neither selector nor priority", () => {
    const ranking = rankingOf([group("lab/node", { mac: "m1" })]);
    ranking.takeAffected();
    ranking.update("lab/node", { ...group("lab/node", { mac: "m1" }), profileId: "lab/other" });
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

/** Who ties with a Group, by a look at all of them. */
function tiedAmong(all: readonly Group[], { id, selectorText, priority }: Group): readonly string[] {
  const alike = all.filter((other) => other.selectorText === selectorText && other.priority === priority);
  const ids = alike.map((other) => other.id);
  const isTie = new Set(ids.map((each) => each.split("/", 1)[0])).size > 1;
  return isTie ? ids.filter((each) => each !== id).toSorted() : [];
}

describe("Groups of several namespaces with one selector and priority", () => {
  const [a, b, c] = [group("a/x", { mac: "m1" }), group("b/x", { mac: "m1" }), group("b/y", { mac: "m1" })];

  it("tie, all of them", () => {
    const ranking = rankingOf([a, b, c], true);
    expect([a, b, c].map((each) => ranking.tiedWith(each))).toEqual([
      ["b/x", "b/y"],
      ["a/x", "b/y"],
      ["a/x", "b/x"],
    ]);
    expect(conflictOf(a, ranking.standingOf(a))).toMatchObject({
      status: "True",
      reason: "SelectorTie",
      message:
        'Of several namespaces, Group "b/x", Group "b/y" and this Group have the same selector and priority: ' +
        "their machines are answered 500 until one of them changes",
    });
  });

  it("do not tie within one namespace, with another priority, or where names decide", () => {
    expect(rankingOf([b, c], true).standingOf(c)).toMatchObject({ kind: "shadowed", by: b });
    const first = group("a/x", { mac: "m1" }, 5);
    expect(rankingOf([first, b], true).standingOf(b)).toMatchObject({ kind: "shadowed", by: first });
    expect(rankingOf([a, b], false).tiedWith(b)).toEqual([]);
  });

  it("are shadowed together by one that wins over all", () => {
    const first = group("a/first", { mac: "m1" }, 5);
    expect(rankingOf([a, b, first], true).standingOf(a)).toEqual({ kind: "shadowed", by: first });
  });

  it("are those that a look at all Groups finds, after whatever came and went", () => {
    fc.assert(
      fc.property(someGroups, someGroups, (before, after) => {
        const ranking = rankingOf(before, true);
        const gone = before.filter(({ id }) => !after.some((each) => each.id === id));
        for (const { id } of gone.slice(0, 2)) ranking.update(id, undefined);
        for (const each of after) ranking.update(each.id, each);
        const all = [...after, ...gone.slice(2)];
        for (const each of all) expect(ranking.tiedWith(each)).toEqual(tiedAmong(all, each));
      }),
      { numRuns: 1000 },
    );
  });

  it("are found without a look at all of them", () => {
    let reads = 0;
    const counted = Array.from({ length: 10_000 }, (_, at): Group => {
      const each = group(`n${at % 100}/${at}`, { role: "web" });
      const { priority } = each;
      return Object.defineProperty({ ...each }, "priority", {
        get() {
          reads++;
          return priority;
        },
      });
    });
    const ranking = rankingOf(counted, true);
    const [first] = counted;
    reads = 0;
    for (const each of counted) expect(ranking.tiedWith(each)).toHaveLength(6);
    expect(first && ranking.tiedWith(first)).toEqual(["n0/100", "n0/1000", "n0/1100", "n0/1200", "n0/1300", "n0/1400"]);
    expect(reads).toBeLessThan(10 * counted.length);
  });

  it("are named five at most", () => {
    const many = ["b", "c", "d", "e", "f", "g"].map((namespace) => group(`${namespace}/x`, { mac: "m1" }));
    const { message } = conflictOf(a, rankingOf([a, ...many], true).standingOf(a));
    expect(message).toContain('Group "f/x", others and this Group');
  });
});
