/** Events of Groups about the installs of their machines: each for a few machines, and sums for many. */

import { beforeEach, expect, it } from "vitest";
import { InstallEvents } from "../../../src/installs/outcomes/install-events.ts";
import type { EventSink } from "../../../src/model/objects/source.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { entry } from "../../http/fake-machines.ts";

let clock: FakeClock;
let noted: string[];
let hasSink: boolean;
let uid: string | undefined;
let events: InstallEvents;

beforeEach(() => {
  [clock, noted, hasSink, uid] = [new FakeClock(), [], true, "u"];
  const sink: EventSink = {
    note: ({ object: { kind, namespace, name }, reason, isTrouble, message }) =>
      void noted.push(`${kind} ${namespace}/${name} ${reason}${isTrouble ? "!" : ""}: ${message}`),
  };
  events = new InstallEvents({ sink: () => (hasSink ? sink : undefined), uidOf: () => uid, clock });
});

const changed = (given: Parameters<typeof entry>[1] = {}) =>
  events.changed(
    entry("1", {
      identities: ["uuid/4c4c4544-0035-4d10-8051-b9c04f4e3232", "mac/52:54:00:00:00:01"],
      grant: { key: "group/racks/web", generation: 4 },
      ...given,
    }),
  );

function closedFor(key: string): void {
  const addresses = { claimedFrom: "192.0.2.7", otherAddress: "192.0.2.8" };
  const identities = ["mac/52:54:00:00:00:01"];
  events.closed(entry("1", { identities, grant: { key, generation: 1 }, ...addresses }));
}

it("name the machine, the Group and the generation", () => {
  for (const state of ["Claimed", "Installing", "Installed", "Failed", "Unconfirmed"] as const) changed({ state });
  expect(noted).toEqual([
    "Group racks/web Claimed: mac/52:54:00:00:00:01 has claimed its install (generation 4)",
    "Group racks/web Installed: mac/52:54:00:00:00:01 is installed (generation 4)",
    "Group racks/web Failed!: mac/52:54:00:00:00:01 has failed to install (generation 4)",
    "Group racks/web Unconfirmed!: mac/52:54:00:00:00:01 has not confirmed its install (generation 4)",
  ]);
});

it("are not for installs by a Machine's grant, for adopted machines, for objects in files, nor for what is gone", () => {
  changed({ grant: { key: "machine/racks/node7", generation: 1 } });
  const { grant: _, ...adopted } = entry("2", {});
  events.changed(adopted);
  hasSink = false;
  changed();
  [hasSink, uid] = [true, undefined];
  changed();
  expect(noted).toEqual([]);
});

it("name both addresses when a Secret's text is closed, at the object that has the grant", () => {
  closedFor("group/racks/web");
  closedFor("machine/racks/node7");
  expect(noted).toEqual([
    expect.stringMatching(/^Group racks\/web SecretClosed!: only 192.0.2.7 may .* 192.0.2.8 asked for it/),
    expect.stringMatching(/^Machine racks\/node7 SecretClosed!: /),
  ]);
});

it("are few for 10,000 machines, and lose no machine", async () => {
  for (let at = 0; at < 10_000; at++) changed({ state: "Claimed" });
  expect(noted).toHaveLength(20);
  await clock.advance(30_000);
  expect(noted.slice(20)).toEqual([
    "Group racks/web Claimed: 9980 more machines have claimed their installs (generation 4)",
  ]);
  await clock.advance(600_000);
  expect(noted).toHaveLength(21);
});

it("of each reason have a share of their own, also while many machines install", async () => {
  for (let at = 0; at < 100; at++) changed({ state: "Claimed" });
  changed({ state: "Failed" });
  closedFor("group/racks/web");
  expect(noted.slice(20)).toEqual([
    expect.stringMatching(/^Group racks\/web Failed!: mac\S+ has failed/),
    expect.stringMatching(/^Group racks\/web SecretClosed!: only /),
  ]);
  for (let at = 0; at < 21; at++) closedFor("group/racks/web");
  await clock.advance(30_000);
  expect(noted.filter((text) => text.includes("SecretClosed")).at(-1)).toMatch(
    /^Group racks\/web SecretClosed!: 2 more machines .*another address/,
  );
});

it("are sums after half a minute, also while machines claim without end", async () => {
  for (let at = 0; at < 20; at++) changed({ state: "Claimed" });
  // The next Events are possible at 5, 10, ... seconds, and the sum is due at 32.
  await clock.advance(2_000);
  for (let at = 0; at < 10; at++) changed({ grant: { key: "group/racks/first", generation: 1 }, state: "Claimed" });
  for (let second = 0; second < 30; second++) {
    changed({ state: "Claimed" });
    await clock.advance(1_000);
  }
  const [first] = noted.filter((text) => text.includes("more machines"));
  expect(first).toBe("Group racks/first Claimed: 10 more machines have claimed their installs (generation 1)");
});

it("are sums of few Groups at once, the first ones first", async () => {
  for (let at = 0; at < 20; at++) changed({ state: "Claimed" });
  for (let group = 0; group < 25; group++) {
    const grant = { key: `group/racks/g${group}`, generation: 1 };
    for (let at = 0; at < 2; at++) changed({ grant, state: "Claimed" });
  }
  const sums = () => noted.slice(20).map((text) => text.slice(0, text.indexOf(" Claimed: 2 more")));
  for (const count of [10, 20, 25]) {
    await clock.advance(30_000);
    expect(sums()).toEqual(Array.from({ length: count }, (_, group) => `Group racks/g${group}`));
  }
});

it("name a machine that would be the only one of a sum", async () => {
  for (let at = 0; at < 20; at++) changed({ state: "Installed" });
  changed({ state: "Installed", identities: ["mac/52:54:00:00:00:99"] });
  await clock.advance(30_000);
  expect(noted.slice(20)).toEqual(["Group racks/web Installed: mac/52:54:00:00:00:99 is installed (generation 4)"]);
});

it("are sums of one generation each", async () => {
  for (let at = 0; at < 20; at++) changed({ state: "Claimed" });
  for (const generation of [4, 5]) {
    for (let at = 0; at < generation; at++)
      changed({ grant: { key: "group/racks/web", generation }, state: "Claimed" });
  }
  await clock.advance(30_000);
  expect(noted.slice(20)).toEqual([
    "Group racks/web Claimed: 4 more machines have claimed their installs (generation 4)",
    "Group racks/web Claimed: 5 more machines have claimed their installs (generation 5)",
  ]);
});

it("end with davit", async () => {
  for (let at = 0; at < 100; at++) changed();
  await events.stop();
  await clock.advance(60_000);
  expect(noted).toHaveLength(20);
});
