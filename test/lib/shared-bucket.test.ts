import { beforeEach, describe, expect, it } from "vitest";
import { SharedBucket } from "../../src/lib/token-bucket.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

describe("a bucket of 10 tokens, with 5 a second", () => {
  let clock: FakeClock;
  let bucket: SharedBucket;
  beforeEach(() => {
    clock = new FakeClock();
    bucket = new SharedBucket({ clock, perSecond: 5, burst: 10 });
  });

  /** Asks this many times. @returns how many tokens the client got. */
  function taken(client: string | undefined, attempts = 100): number {
    return Array.from({ length: attempts }, () => bucket.tryTake(client)).filter(Boolean).length;
  }

  it("gives many clients all tokens, and those without a share of their own, too", () => {
    expect(Array.from({ length: 20 }, (_, at) => bucket.tryTake(`c${at}`)).filter(Boolean)).toHaveLength(10);
    expect(taken(undefined)).toBe(0);
  });

  it("gives unnamed clients all tokens", () => {
    expect(taken(undefined)).toBe(10);
  });

  it("gives one client half at once, and then the whole rate", async () => {
    expect(taken("a")).toBe(5);
    let count = 0;
    for (let tenths = 0; tenths < 100; tenths += 1) {
      await clock.advance(100);
      count += taken("a");
    }
    expect(count).toBe(50);
  });

  it("has a token for a newcomer, however often others ask", async () => {
    for (let at = 0; at < 50; at += 1) {
      taken("a");
      taken("b");
      expect(bucket.tryTake(`newcomer ${at}`)).toBe(true);
      await clock.advance(1_000);
    }
  });

  it("gives no more than its rate in all", async () => {
    let count = 0;
    for (let at = 0; at < 100; at += 1) {
      await clock.advance(100);
      for (const client of ["a", "b", "c", undefined, `n${at}`]) count += taken(client);
    }
    expect(count).toBeGreaterThan(50);
    expect(count).toBeLessThanOrEqual(10 + 50);
  });

  it("is full again after a pause, and no fuller", async () => {
    taken(undefined);
    await clock.advance(3_600_000);
    expect(taken(undefined)).toBe(10);
  });
});
