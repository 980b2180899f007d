import { beforeEach, describe, expect, it } from "vitest";
import type { OwnName } from "../../../src/model/objects/source.ts";
import { HeldChanges, type HeldWatch } from "../../../src/sources/kubernetes/watch/held-changes.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

const watches = ["north", "south"].flatMap((namespace) =>
  ["Profile", "Group"].map((kind) => ({ key: `${kind}/${namespace}`, namespace })),
);
const groupIn = (namespace: string): OwnName => ({ kind: "Group", namespace, name: "a" });

let clock: FakeClock;
let released: string[];
let lost: string[];
let held: HeldChanges;
let tracked: Map<string, HeldWatch>;
const watchOf = (key: string) => tracked.get(key) ?? expect.fail(`no watch ${key}`);
beforeEach(() => {
  clock = new FakeClock();
  [released, lost] = [[], []];
  held = new HeldChanges({
    clock,
    signal: new AbortController().signal,
    provenAtMs: () => clock.monotonicMs(),
    release: (names) => void released.push(...names.map(({ namespace }) => namespace)),
    lostChanged: () => void lost.push([...held.lost].join()),
  });
  tracked = new Map(watches.map(({ key, namespace }) => [key, held.track({ namespace, what: "own" })]));
  for (const { key } of watches) watchOf(key).opened();
});

/** What is let through of a change in each namespace. */
function offered(): readonly string[] {
  return held.offer([groupIn("north"), groupIn("south")]).now.map(({ namespace }) => namespace);
}

/** A while, and then a watch is not heard for a moment, or until another one is. */
async function cutAfter(ms: number, watch: string, back: string, forMs: number): Promise<void> {
  await clock.advance(ms);
  watchOf(watch).failed(false);
  await clock.advance(forMs);
  watchOf(back).opened();
}

describe("a namespace that is not heard of", () => {
  it("holds up the other one for a minute, then its own changes alone, until it is heard again", async () => {
    await clock.advance(60_000);
    watchOf("Group/south").failed(false);
    await clock.advance(59_000);
    expect([offered(), lost]).toEqual([[], []]);
    await clock.advance(2_000);
    expect([offered(), lost, released]).toEqual([["north"], ["south"], ["north"]]);
    watchOf("Group/south").failed(false);
    expect(offered()).toEqual(["north"]);
    watchOf("Group/south").opened();
    await clock.advance(1_000);
    expect([offered(), lost, released]).toEqual([
      ["north", "south"],
      ["south", ""],
      ["north", "south"],
    ]);
  });

  it("is not lost while no other one is heard, nor as soon as one is", async () => {
    await clock.advance(60_000);
    for (const { key } of watches) watchOf(key).failed(false);
    await clock.advance(600_000);
    expect(lost).toEqual([]);
    for (const key of ["Profile/north", "Group/north"]) watchOf(key).opened();
    await clock.advance(59_000);
    expect([offered(), lost]).toEqual([[], []]);
    await clock.advance(2_000);
    expect([offered(), lost]).toEqual([["north"], ["south"]]);
  });

  it("is not lost when it is heard in time", async () => {
    await clock.advance(60_000);
    watchOf("Profile/south").failed(false);
    await clock.advance(59_000);
    watchOf("Profile/south").opened();
    await clock.advance(120_000);
    expect([offered(), lost]).toEqual([["north", "south"], []]);
    expect(clock.sleeping).toBe(0);
  });

  it("is lost after a minute though the other one is cut off again and again", async () => {
    await clock.advance(60_000);
    watchOf("Group/south").failed(false);
    expect(offered()).toEqual([]);
    for (let turn = 0; turn < 3; turn++) await cutAfter(24_000, "Group/north", "Group/north", 800);
    await clock.advance(2_000);
    expect([lost, released]).toEqual([["south"], ["north"]]);
  });

  it("changes with another such one, and nobody waits for the two for longer than a minute", async () => {
    await clock.advance(60_000);
    for (const key of ["Profile/east", "Group/east"]) {
      const east = held.track({ namespace: "east", what: "own" });
      east.opened();
      tracked.set(key, east);
    }
    watchOf("Group/south").failed(false);
    expect(offered()).toEqual([]);
    for (let turn = 0; turn < 2; turn++) {
      await cutAfter(28_000, "Group/east", "Group/south", 2_000);
      await cutAfter(28_000, "Group/south", "Group/east", 2_000);
    }
    expect(released).toContain("north");
  });
});
