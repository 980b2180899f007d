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
  expect(clock.localTime(15_000)).toBeGreaterThan(109_980);
  expect(clock.localTime(15_000)).toBeLessThanOrEqual(110_000);
});

it("takes nothing for fresher than it is on a connection that delivers late, however long it lasts", () => {
  for (const drift of [-0.0005, 0, 0.0005]) {
    const clock = asked();
    for (let beat = 1; beat <= 10_000; beat++) {
      const saidAtMs = 100_000 + beat * 10_000;
      const saidMs = 5_000 + beat * 10_000 * (1 + drift);
      clock.hear(saidMs, saidAtMs + 25_000);
      expect(clock.localTime(saidMs)).toBeLessThanOrEqual(saidAtMs);
    }
  }
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

it("takes what is heard for at most some seconds older than it is, as long as a connection lasts", () => {
  const clock = asked();
  // The store's clock loses 500 ppm.
  for (let beat = 1; beat <= 180; beat++) clock.hear(5_000 + beat * 9_995, 100_000 + beat * 10_000);
  const lateMs = 100_000 + 180 * 10_000 - clock.localTime(5_000 + 180 * 9_995);
  expect(lateMs).toBeGreaterThanOrEqual(0);
  expect(lateMs).toBeLessThan(3_000);
});
