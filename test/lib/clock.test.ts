import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { steadyClock, systemClock } from "../../src/lib/clock.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

it("`steadyClock` goes on from the wall clock, whatever that does, in whole milliseconds", async () => {
  const clock = new FakeClock(1_000);
  const nowMs = steadyClock(clock);
  expect(nowMs()).toBe(1_000);
  clock.stepWallClock(-500);
  await clock.advance(10.75);
  expect(nowMs()).toBe(1_010);
});

describe("`systemClock.sleep`", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("can be longer than one timer of the system", async () => {
    const durationMs = 3 * 2 ** 31;
    let isAwake = false;
    const sleeping = systemClock.sleep(durationMs).then(() => {
      isAwake = true;
    });
    await vi.advanceTimersByTimeAsync(durationMs - 1);
    expect(isAwake).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await sleeping;
    expect(isAwake).toBe(true);
  });

  it("ends when it is told to", async () => {
    const alarm = new AbortController();
    const sleeping = systemClock.sleep(Number.POSITIVE_INFINITY, alarm.signal);
    alarm.abort();
    await expect(sleeping).resolves.toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
  });
});
