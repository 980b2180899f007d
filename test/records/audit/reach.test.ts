/** What counting machines costs: machines wait for their boot while a slice of it runs. */

import { expect, it } from "vitest";
import { type Group, toGroup } from "../../../src/model/objects/group.ts";
import { type Decisive, type KnownMachine, type Reach, reachOf } from "../../../src/records/audit/reach.ts";

/** More than a slice compares, and far less than one pass over all machines. */
const maxCompared = 20_000;
let compared = 0;

/** A Group that asks for a serial number, and counts how often it is compared. */
function groupFor(number: number): Group {
  const prefix = { key: "serial", operator: "Prefix", values: [`s${number}-`] } as const;
  const spec = { profile: "p", selector: {}, expressions: [prefix], matchAll: false, priority: 0, hold: false };
  const group = toGroup("lab", `g${number}`, { ...spec, metadata: {} });
  const expressions = group.expressions.map((expression) => ({
    ...expression,
    accepts: (value: string | undefined) => {
      compared++;
      return expression.accepts(value);
    },
  }));
  return { ...group, expressions };
}

const machines: readonly KnownMachine[] = Array.from({ length: 100 }, (_, number) => ({
  labels: new Map([["serial", `s${number * 10}-x`]]),
  group: undefined,
}));

/** Counts to the end. @returns the counts, and the most comparisons and the most entries of one slice. */
function count(objects: readonly Decisive[]) {
  const work = reachOf(objects, machines);
  let most = 0;
  for (;;) {
    compared = 0;
    const slice = work.next();
    most = Math.max(most, compared);
    if (slice.done === true) return { reaches: slice.value, most };
  }
}

const groups = Array.from({ length: 1_000 }, (_, number) => groupFor(number));
const reach: Reach = { before: 100, after: 100 };

it("compares few Groups in one slice, however many a Profile has", () => {
  const { reaches, most } = count([{ before: groups, after: groups }]);
  expect(reaches).toEqual([reach]);
  expect(most).toBeLessThan(maxCompared);
});

it("compares few Groups in one slice, however many change together", () => {
  const { reaches, most } = count(groups.map((group) => ({ before: [group], after: undefined })));
  expect(reaches.reduce((sum, { before }) => sum + before, 0)).toBe(100);
  expect(most).toBeLessThan(maxCompared);
});

it("counts once for a Profile that changes many times", () => {
  const one = count([{ before: groups, after: groups }]);
  const objects = Array.from({ length: 20 }, () => ({ before: groups, after: groups }));
  const many = count(objects);
  expect(many.reaches).toEqual(objects.map(() => reach));
  expect(many.most).toBeLessThanOrEqual(one.most);
});
