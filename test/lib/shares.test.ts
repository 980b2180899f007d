import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Shares } from "../../src/lib/shares.ts";

/** How many a holder gets before one is refused. */
function fill(shares: Shares, holder: string): number {
  let count = 0;
  while (shares.take(holder)) count++;
  return count;
}

describe("a share", () => {
  it("of one alone is half", () => {
    expect(fill(new Shares({ limit: 100 }), "a")).toBe(50);
  });

  it("is what is left free: there is always room for one more holder", () => {
    const shares = new Shares({ limit: 1_024 });
    const filled = Array.from({ length: 8 }, (_, at) => fill(shares, String(at)));
    expect(filled).toEqual([512, 256, 128, 64, 32, 16, 8, 4]);
    expect(shares.take("another")).toBe(true);
  });

  it("comes back with what is released", () => {
    const shares = new Shares({ limit: 10 });
    expect(fill(shares, "a")).toBe(5);
    shares.release("a");
    expect(shares.heldBy("a")).toBe(4);
    expect(fill(shares, "a")).toBe(1);
    for (let left = 5; left > 0; left--) shares.release("a");
    expect([shares.total, shares.heldBy("a")]).toEqual([0, 0]);
  });

  it("of one who is exempt is the whole, and no more", () => {
    const shares = new Shares({ limit: 3 });
    expect([1, 2, 3, 4].map(() => shares.take(undefined))).toEqual([true, true, true, false]);
  });

  it("may be of any amount: what does not fit is refused", () => {
    const shares = new Shares({ limit: 100 });
    expect(shares.take("a", 101)).toBe(false);
    expect(shares.take("a", 60)).toBe(true);
    expect(shares.take("a", 1)).toBe(false);
    expect(shares.take("b", 40)).toBe(true);
  });
});

it("whatever is taken and released: nothing is refused before half is held, and never more than the limit is", () => {
  const steps = fc.array(fc.record({ holder: fc.constantFrom("a", "b", "c"), takes: fc.boolean() }));
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 20 }), (all, limit) => {
      const shares = new Shares({ limit });
      for (const { holder, takes } of all) {
        const before = shares.total;
        if (takes) expect(shares.take(holder) || before + 1 > limit / 2).toBe(true);
        else if (shares.heldBy(holder) > 0) shares.release(holder);
        expect(shares.total).toBeLessThanOrEqual(limit);
      }
    }),
  );
});
