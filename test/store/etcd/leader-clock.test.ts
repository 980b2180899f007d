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
});
