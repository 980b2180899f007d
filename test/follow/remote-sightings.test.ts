/** A follower hands on what machines ask: in bounded requests, behind everything else, and to no earlier version. */

import { afterEach, beforeEach, expect, it } from "vitest";
import { RemoteSightings } from "../../src/follow/remote-sightings.ts";
import { nextTurn } from "../../src/lib/slices.ts";
import { decodeSightings, type MachineSighting, maxSightings, sightingsPath } from "../../src/model/sighting.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

let clock: FakeClock;
let isBusy: boolean;
let isTaken: boolean;
let sent: (readonly MachineSighting[])[];
let sightings: RemoteSightings;
/** Runs while the writer has a request. */
let meanwhile: () => void;

beforeEach(() => {
  [clock, isBusy, isTaken, sent, meanwhile] = [new FakeClock(), false, true, [], () => undefined];
  const askBy = async (path: string, textOf: () => string) => {
    expect(path).toBe(sightingsPath);
    sent.push(decodeSightings(textOf(), clock.nowMs()) ?? []);
    meanwhile();
    return isTaken ? '{"taken":1}' : undefined;
  };
  sightings = new RemoteSightings({ writers: { askBy }, isBusy: () => isBusy, clock });
  sightings.start();
});
afterEach(() => sightings.stop());

async function pass(ms: number): Promise<void> {
  await clock.advance(ms);
  await nextTurn();
}

const sightingOf = (machine: number, stage = "ipxe"): MachineSighting => ({
  identities: [
    `mac/52:54:${machine
      .toString(16)
      .padStart(8, "0")
      .replace(/..(?!$)/g, "$&:")}`,
  ],
  atMs: clock.nowMs(),
  stage,
  result: "served",
});

it("sends the newest sighting of each machine, once", async () => {
  sightings.saw(sightingOf(1));
  sightings.saw(sightingOf(2));
  sightings.saw(sightingOf(1, "ignition"));
  sightings.saw({ ...sightingOf(3), identities: [] });
  await pass(2_000);
  expect(sent.map((each) => each.map(({ stage }) => stage))).toEqual([["ipxe", "ignition"]]);
  await pass(10_000);
  expect(sent).toHaveLength(1);
});

it("sends the digest of a script with what the machine asked for after it", async () => {
  const script = { sha256: "a".repeat(64), atMs: clock.nowMs() };
  sightings.saw({ ...sightingOf(1), script });
  await clock.advance(1_500);
  sightings.saw(sightingOf(1, "ignition"));
  await pass(500);
  expect(sent).toMatchObject([[{ stage: "ignition", atMs: script.atMs + 1_500, script }]]);
});

it("sends nothing while machines wait for permits", async () => {
  isBusy = true;
  sightings.saw(sightingOf(1));
  await pass(10_000);
  expect(sent).toEqual([]);
  isBusy = false;
  await pass(2_000);
  expect(sent).toHaveLength(1);
});

it("sends few at a time, and drops the oldest of too many", async () => {
  const [most, more] = [8_192, 100];
  for (let machine = 0; machine < most + more; machine++) sightings.saw(sightingOf(machine));
  for (let turn = 0; turn < 100; turn++) await pass(2_000);
  expect(Math.max(...sent.map(({ length }) => length))).toBe(maxSightings);
  const machines = new Set(sent.flat().flatMap(({ identities }) => identities));
  expect(machines.size).toBe(most);
  expect(machines.has(sightingOf(more - 1).identities[0] ?? "")).toBe(false);
});

it("asks a writer that takes none, such as one of an earlier version, once a minute", async () => {
  isTaken = false;
  sightings.saw(sightingOf(1));
  await pass(2_000);
  await pass(59_000);
  expect(sent).toHaveLength(1);
  isTaken = true;
  await pass(1_000);
  expect(sent).toHaveLength(2);
  // How long ago it was, not when it was sent.
  expect(sent[1]?.[0]?.atMs).toBe(sent[0]?.[0]?.atMs);
});

it("sends a machine again that asks while the writer takes its older sighting", async () => {
  sightings.saw(sightingOf(1));
  meanwhile = () => sightings.saw(sightingOf(1, "ignition"));
  await pass(2_000);
  meanwhile = () => undefined;
  await pass(2_000);
  expect(sent.flat().map(({ stage }) => stage)).toEqual(["ipxe", "ignition"]);
});
