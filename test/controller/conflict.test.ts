/** What a Group's status says of Groups of other namespaces that get its machines: only what is true. */

import fc from "fast-check";
import { expect, it } from "vitest";
import { explain } from "../../src/boot/explaining/explain.ts";
import { Ranking } from "../../src/controller/ranking/ranking.ts";
import { conflictOf } from "../../src/controller/reconcile/reconcile-group.ts";
import { type Group, matches, toGroup } from "../../src/model/objects/group.ts";
import { outranks, settle } from "../../src/model/selection/contest.ts";
import { groupSpec } from "./objects.ts";

interface Given {
  readonly priority?: number;
  readonly claimedAt?: number;
}

const admin = "infra";

function group(id: string, selector: Record<string, string>, { priority = 0, claimedAt = 0 }: Given = {}): Group {
  const [namespace = "", name = ""] = id.split("/");
  const spec = groupSpec({ selector, priority, profile: name });
  return toGroup(namespace, name, spec, { claimedAt, ...(namespace !== admin && { tenant: true as const }) });
}

function told(groups: readonly Group[]): string | undefined {
  const ranking = new Ranking();
  for (const each of groups) ranking.update(each.id, each);
  return groups[0] && conflictOf(groups[0], ranking.standingOf(groups[0])).message;
}

it.each<[why: string, groups: readonly Group[]]>([
  [
    "it comes first in the order between namespaces",
    [group("a/one", { role: "x" }, { claimedAt: 1 }), group("b/two", { role: "x", rack: "r" }, { claimedAt: 9 })],
  ],
  [
    "it comes first in the order between namespaces",
    [group("a/one", { role: "x" }, { claimedAt: 1 }), group(`${admin}/two`, { role: "x" }, { claimedAt: 9 })],
  ],
  [
    "its claim to them comes first",
    [group("a/one", { mac: "m1" }, { claimedAt: 9 }), group("b/two", { mac: "m1", rack: "r" }, { claimedAt: 1 })],
  ],
])("a Group of another namespace gets machines, and %s", (why, groups) => {
  const other = groups[1]?.id;
  expect(told(groups)).toBe(
    `Group "${other}" of another namespace selects machines of this Group, and ${why}: they do not get this Group`,
  );
});

it("is said of claims and of the order only where they decide between the two, in /preview too", () => {
  const labels = new Map(Object.entries({ mac: "m1", role: "x", rack: "r", os: "o" }));
  const selector = fc.subarray([...labels.keys()], { minLength: 1 });
  const someGroups = fc.uniqueArray(
    fc.record({
      id: fc.constantFrom("a/1", "a/2", "b/1", "c/1", `${admin}/1`),
      selector: selector.map((keys) => Object.fromEntries(keys.map((key) => [key, labels.get(key) ?? ""]))),
      priority: fc.constantFrom(0, 0, 1),
      claimedAt: fc.constantFrom(1, 2, 3),
    }),
    { selector: ({ id }) => id, minLength: 2 },
  );
  fc.assert(
    fc.property(someGroups, (all) => {
      const groups = all.map(({ id, selector, ...given }) => group(id, selector, given));
      const matching = groups.filter((each) => matches(each, labels));
      const { winner, rivals } = settle(matching, labels);
      if (winner === undefined || rivals.length > 0) return;
      const contenders = { matching, matchingCount: matching.length, nearest: [], otherCount: 0 };
      const snapshot = { chosen: winner, effect: undefined, refusal: undefined };
      const { losers } = explain(snapshot as never, labels, contenders as never);
      for (const { group: id, lost } of losers) {
        const loser = groups.find((each) => each.id === id);
        const [isClaim, isOrder] = [lost.includes("later claim"), lost.includes("order between namespaces")];
        if (loser === undefined || !(isClaim || isOrder)) continue;
        expect(outranks(winner, loser, labels)).toBe(true);
        expect(isClaim).toBe(
          outranks(winner, { ...loser, claimedAt: 4 }, labels) && !outranks(winner, { ...loser, claimedAt: 0 }, labels),
        );
      }
    }),
    { numRuns: 1_000 },
  );
});
