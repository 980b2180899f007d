/** Events of Groups about the installs of their machines: each for a few machines, and sums for many. */

import { beforeEach, expect, it } from "vitest";
import { InstallEvents } from "../../src/app/install-events.ts";
import type { EventSink } from "../../src/model/source.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { entry } from "../http/fake-machines.ts";

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
  const addresses = { claimedFrom: "192.0.2.7", otherAddress: "192.0.2.8" };
  const entryOf = (key: string) =>
    entry("1", { identities: ["mac/52:54:00:00:00:01"], grant: { key, generation: 1 }, ...addresses });
  events.closed(entryOf("group/racks/web"));
  events.closed(entryOf("machine/racks/node7"));
  expect(noted).toEqual([
    expect.stringMatching(/^Group racks\/web SecretClosed!: only 192.0.2.7 may .* 192.0.2.8 asked for it/),
    expect.stringMatching(/^Machine racks\/node7 SecretClosed!: /),
  ]);
});

it("are few for 10,000 machines, and lose no machine", async () => {
  for (let at = 0; at < 10_000; at++) changed({ state: "Claimed" });
  for (let at = 0; at < 10; at++) changed({ state: "Failed" });
  expect(noted).toHaveLength(20);
  await clock.advance(30_000);
  expect(noted.slice(20)).toEqual([
    "Group racks/web Claimed: 9980 more machines have claimed their installs",
    "Group racks/web Failed!: 10 more machines have failed to install",
  ]);
  await clock.advance(600_000);
  expect(noted).toHaveLength(22);
  for (let at = 0; at < 21; at++) changed({ state: "Installed" });
  await clock.advance(30_000);
  expect(noted.at(-1)).toBe("Group racks/web Installed: 1 more machine is installed");
});

it("end with davit", async () => {
  for (let at = 0; at < 100; at++) changed();
  await events.stop();
  await clock.advance(60_000);
  expect(noted).toHaveLength(20);
});
