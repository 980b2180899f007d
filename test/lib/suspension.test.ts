/** A proof from before the computer was suspended does not look new, though the monotonic clock stood still. */

import { expect, it } from "vitest";
import { Freshness } from "../../src/boot/selection/freshness.ts";
import { Suspensions } from "../../src/lib/suspension.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

it("makes a proof as old as the time that the monotonic clock missed, until there is a later proof", async () => {
  const clock = new FakeClock();
  const suspensions = new Suspensions(clock);
  const freshness = new Freshness({ clock, installMaxSourceAgeMs: 60_000 });
  let provenAtMs = 0;
  freshness.provenBy(() => suspensions.corrected(provenAtMs));
  await clock.advance(10_000);
  expect(freshness.staleness).toBeUndefined();
  clock.stepWallClock(30_000);
  expect(freshness.ageSeconds).toBe(40);
  expect(freshness.staleness).toBeUndefined();
  clock.stepWallClock(30_000);
  expect(freshness.ageSeconds).toBe(70);
  expect(freshness.staleness).toBe("stale");
  provenAtMs = 10_000;
  expect(freshness.staleness).toBeUndefined();
  expect(freshness.ageSeconds).toBe(0);
  await clock.advance(61_000);
  expect(freshness.staleness).toBe("stale");
});

it("does not make a proof older where the clock is set back, or corrected by less than a second", async () => {
  const clock = new FakeClock();
  const suspensions = new Suspensions(clock);
  expect(suspensions.corrected(undefined)).toBeUndefined();
  clock.stepWallClock(-3_600_000);
  expect(suspensions.corrected(0)).toBe(0);
  clock.stepWallClock(900);
  expect([suspensions.corrected(0), suspensions.missedMs]).toEqual([0, 0]);
});
