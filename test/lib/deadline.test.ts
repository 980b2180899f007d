import { describe, expect, it } from "vitest";
import { Deadline } from "../../src/lib/deadline.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

describe("a deadline", () => {
  it("passes after its time", async () => {
    const clock = new FakeClock();
    const deadline = new Deadline({ clock, durationMs: 100 });
    await clock.advance(99);
    expect(deadline.hasPassed).toBe(false);
    await clock.advance(1);
    expect(deadline.hasPassed).toBe(true);
    expect(deadline.signal.aborted).toBe(true);
  });

  it("that is put off has its whole time again, each time", async () => {
    const clock = new FakeClock();
    const deadline = new Deadline({ clock, durationMs: 100 });
    for (let count = 0; count < 3; count++) {
      await clock.advance(80);
      deadline.putOff();
    }
    await clock.advance(99);
    expect(deadline.hasPassed).toBe(false);
    await clock.advance(1);
    expect(deadline.hasPassed).toBe(true);
  });

  it("that is cancelled never passes, and nobody sleeps for it", async () => {
    const clock = new FakeClock();
    const deadline = new Deadline({ clock, durationMs: 100 });
    deadline.cancel();
    await clock.advance(1000);
    expect(deadline.hasPassed).toBe(false);
    expect(clock.sleeping).toBe(0);
  });
});
