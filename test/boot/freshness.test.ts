import { expect, it } from "vitest";
import { Freshness } from "../../src/boot/selection/freshness.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

it("is unconfirmed until something was proven, and stale once that is too long ago", async () => {
  const clock = new FakeClock();
  await clock.advance(5_000);
  const freshness = new Freshness({ clock, installMaxSourceAgeMs: 60_000 });
  expect(freshness.staleness).toBe("unconfirmed");
  let provenAtMs: number | undefined;
  freshness.provenBy(() => provenAtMs);
  await clock.advance(10_000);
  expect([freshness.staleness, freshness.ageSeconds]).toEqual(["unconfirmed", 10]);
  provenAtMs = 12_000;
  expect([freshness.staleness, freshness.ageSeconds]).toEqual([undefined, 3]);
  await clock.advance(57_000);
  expect(freshness.staleness).toBeUndefined();
  await clock.advance(1);
  expect(freshness.staleness).toBe("stale");
  provenAtMs = 60_000;
  expect(freshness.staleness).toBeUndefined();
});

it("does not go by a wall clock that is set", async () => {
  const clock = new FakeClock();
  const freshness = new Freshness({ clock, installMaxSourceAgeMs: 60_000 });
  freshness.provenBy(() => 0);
  await clock.advance(59_000);
  clock.stepWallClock(86_400_000);
  expect(freshness.staleness).toBeUndefined();
  clock.stepWallClock(-2 * 86_400_000);
  await clock.advance(2_000);
  expect(freshness.staleness).toBe("stale");
});

it("never is either where there is no limit", async () => {
  const clock = new FakeClock();
  const freshness = new Freshness({ clock, installMaxSourceAgeMs: 0 });
  expect(freshness.staleness).toBeUndefined();
  freshness.provenBy(() => 0);
  await clock.advance(86_400_000);
  expect([freshness.staleness, freshness.ageSeconds]).toEqual([undefined, 86_400]);
});
