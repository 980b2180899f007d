import fc from "fast-check";
import { expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import { ExpiringSet, type Timer } from "../../src/store/tree/expiring-set.ts";

function timer(createdIndex: number, dueAtMs: number, ttlSeconds = 1): Timer {
  return { path: storePath("/a"), createdIndex, expiresAtMs: dueAtMs, ttlSeconds, dueAtMs, position: -1 };
}

const inOrder = (a: Timer, b: Timer) => a.dueAtMs - b.dueAtMs || a.createdIndex - b.createdIndex;

it("timers come out by time and then by createdIndex, whatever was removed before", () => {
  const anyDue = fc.array(fc.record({ dueAtMs: fc.nat(20), stays: fc.boolean() }));
  fc.assert(
    fc.property(anyDue, (entries) => {
      const set = new ExpiringSet();
      const all = entries.map(({ dueAtMs, stays }, at) => ({ stays, timer: timer(at, dueAtMs) }));
      for (const each of all) set.add(each.timer);
      for (const each of all) if (!each.stays) set.remove(each.timer);
      const kept = all.filter(({ stays }) => stays).map((each) => each.timer);
      expect(set.size).toBe(kept.length);
      expect(set.nextDueAtMs).toBe(Math.min(...kept.map(({ dueAtMs }) => dueAtMs)));
      expect(set.takeDue(20, Number.POSITIVE_INFINITY)).toEqual(kept.toSorted(inOrder));
      expect(set.size).toBe(0);
    }),
  );
});

it("no more is taken than is due, or than is asked for", () => {
  const set = new ExpiringSet();
  for (const dueAtMs of [5, 1, 3]) set.add(timer(dueAtMs, dueAtMs));
  expect(set.takeDue(0, 9)).toEqual([]);
  expect(set.takeDue(4, 1).map(({ dueAtMs }) => dueAtMs)).toEqual([1]);
  expect(set.takeDue(4, 9).map(({ dueAtMs }) => dueAtMs)).toEqual([3]);
  expect(set.nextDueAtMs).toBe(5);
});

it("adding twice and removing what is not there change nothing", () => {
  const set = new ExpiringSet();
  const only = timer(1, 1);
  set.remove(only);
  set.add(only);
  set.add(only);
  expect(set.size).toBe(1);
  set.remove(only);
  set.remove(only);
  expect(set.size).toBe(0);
});

it("a run whose clock is behind lets nothing live longer than it was asked to", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ ttlSeconds: fc.nat(50), setAtMs: fc.nat(50_000) })),
      fc.nat(60_000),
      (ends, now) => {
        const set = new ExpiringSet();
        for (const [at, { ttlSeconds, setAtMs }] of ends.entries()) {
          set.add(timer(at, setAtMs + ttlSeconds * 1_000, ttlSeconds));
        }
        set.beginRun(now);
        const taken = set.takeDue(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
        expect(taken).toEqual(taken.toSorted(inOrder));
        for (const { dueAtMs, expiresAtMs, ttlSeconds } of taken) {
          expect(dueAtMs).toBe(Math.min(expiresAtMs, now + ttlSeconds * 1_000));
        }
      },
    ),
  );
});
