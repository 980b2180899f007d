import { expect, it } from "vitest";
import { StoreClock } from "../../src/follow/store-clock.ts";

/** Of a store whose clock shows 5,000 when ours shows 100,000. */
const asked = () => new StoreClock(100_000, 5_000);

it("puts a time of the store no later than the store was asked", () => {
  expect(asked().localTime(5_000)).toBe(100_000);
  expect(asked().localTime(3_000)).toBe(98_000);
});

it("goes on with both clocks", () => {
  const clock = asked();
  clock.hear(15_000, 110_040);
  expect(clock.localTime(15_000)).toBeGreaterThanOrEqual(110_000);
  expect(clock.localTime(15_000)).toBeLessThan(110_040);
});

it("does not take a line that was held back for a fresh one", () => {
  const clock = asked();
  clock.hear(15_000, 200_000);
  expect(clock.localTime(15_000)).toBeLessThan(110_050);
});

it("never puts a time later than it was heard, however fast the store's clock runs", () => {
  const clock = asked();
  clock.hear(65_000, 150_000);
  expect(clock.localTime(65_000)).toBe(150_000);
});

it("follows clocks that drift apart for months, so that what is heard stays fresh", () => {
  const clock = asked();
  // The store's clock loses 100 ppm.
  for (let beat = 1; beat <= 300_000; beat++) clock.hear(5_000 + beat * 9_999, 100_000 + beat * 10_000);
  const lateMs = 100_000 + 3e9 - clock.localTime(5_000 + 300_000 * 9_999);
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThan(10);
});
