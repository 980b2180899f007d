import { describe, expect, it } from "vitest";
import { LeaderClock } from "../../../src/store/etcd/leader-clock.ts";

describe("LeaderClock", () => {
  it("counts by the former leader until the record that begins a term", () => {
    const clock = new LeaderClock(() => 1_000);
    clock.read({ atMs: 1_000, term: 1 });
    clock.heard({ atMs: 900_000, term: 2 });
    expect(clock.now()).toEqual({ atMs: 1_000, term: 1 });
    clock.read({ atMs: 899_000, term: 2 });
    expect(clock.now()).toEqual({ atMs: 900_000, term: 2 });
  });

  it("believes a heartbeat more than a batch, and the latest batch without one", () => {
    const clock = new LeaderClock(() => 1_000);
    clock.read({ atMs: 400, term: 1 });
    clock.read({ atMs: 500, term: 1 });
    clock.read({ atMs: 450, term: 1 });
    expect(clock.now()).toEqual({ atMs: 500, term: 1 });
    clock.heard({ atMs: 470, term: 1 });
    clock.read({ atMs: 900, term: 1 });
    expect(clock.now()).toEqual({ atMs: 470, term: 1 });
  });

  it("does not fall behind by a heartbeat that took long, but follows a clock that stays behind", () => {
    const clock = new LeaderClock(() => 1_000);
    clock.read({ atMs: 400, term: 1 });
    clock.heard({ atMs: 470, term: 1 });
    clock.heard({ atMs: 300, term: 1 });
    expect(clock.now()).toEqual({ atMs: 470, term: 1 });
    for (let beat = 0; beat < 15; beat++) clock.heard({ atMs: 300, term: 1 });
    expect(clock.now()).toEqual({ atMs: 300, term: 1 });
  });

  it("is the own clock in an own term", () => {
    const clock = new LeaderClock(() => 1_000);
    clock.heard({ atMs: 5_000, term: 0 });
    clock.lead(1);
    expect(clock.now()).toEqual({ atMs: 1_000, term: 1 });
  });

  it("knows how far it is behind from what the leader repeats of its questions", () => {
    let ownMs = 1_000;
    const clock = new LeaderClock(() => ownMs);
    clock.read({ atMs: 5_000, term: 1 });
    clock.heard({ atMs: 5_000, term: 1 });
    expect(clock.behindMs).toBe(Number.POSITIVE_INFINITY);
    ownMs = 1_500;
    // Asked at 1,200 and answered at the leader's 5,900: it was between 5,900 and 6,200 when this came.
    clock.heard({ atMs: 5_900, term: 1 }, 1_200);
    expect(clock.now().atMs).toBe(5_900);
    expect(clock.behindMs).toBe(300 + 2);
    // This heartbeat was on its way for long, and shows nothing new.
    ownMs = 1_900;
    clock.heard({ atMs: 5_950, term: 1 }, 1_200);
    expect([clock.now().atMs, clock.behindMs]).toEqual([6_300, 300 + 2]);
    ownMs = 2_000;
    clock.heard({ atMs: 6_450, term: 1 }, 1_950);
    expect([clock.now().atMs, clock.behindMs]).toEqual([6_450, 50 + 2]);
  });

  it("does not know how far it is behind in a new term, until that leader is heard", () => {
    const clock = new LeaderClock(() => 1_000);
    clock.heard({ atMs: 2_000, term: 0 }, 990);
    expect(clock.behindMs).toBe(10 + 2);
    clock.read({ atMs: 500, term: 1 });
    expect(clock.behindMs).toBe(Number.POSITIVE_INFINITY);
    clock.heard({ atMs: 505, term: 1 }, 995);
    expect(clock.behindMs).toBe(5 + 2);
    clock.heard({ atMs: 700, term: 2 }, 980);
    clock.read({ atMs: 690, term: 2 });
    expect(clock.behindMs).toBe(20 + 2);
    clock.lead(3);
    expect(clock.behindMs).toBeLessThan(5);
  });
});
