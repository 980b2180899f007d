/** A request with identities of several machines: it changes nothing of any of them, and an installed one boots. */

import { expect, it } from "vitest";
import type { LedgerEntry } from "../../../src/model/permits/permit.ts";
import { asked, claimed, type Desk, grantOf, hourMs, macA, macB, openDesk, uuidA, uuidB } from "./desk.ts";

function entriesOf({ ledger }: Desk): readonly Pick<LedgerEntry, "identities" | "state">[] {
  return [...ledger.known.entries.values()].map(({ identities, state }) => ({ identities, state }));
}

/** Machine B is installed, and a Machine that lists `listed` has an open grant of its own. */
async function openStolen() {
  const desk = await openDesk();
  const { reportToken } = await claimed(desk, { grants: [grantOf(desk)], identities: [uuidB, macB] });
  await desk.ledger.report(reportToken, { state: "installed" }, undefined);
  const own = { ...grantOf(desk), key: "machine/racks/v" };
  return { desk, grants: [own] };
}

it("claims nothing for a Machine by the uuid of another machine", async () => {
  const { desk, grants } = await openStolen();
  for (const purpose of ["script", "config"] as const) {
    expect(await asked(desk, { grants, purpose, identities: [uuidB, macA], listed: [macA] })).toBe("ambiguousIdentity");
  }
  expect(entriesOf(desk)).toEqual([{ identities: [uuidB, macB], state: "Installed" }]);
  // The machine itself sends a uuid that the ledger does not know.
  const { entry } = await claimed(desk, { grants, identities: [uuidA, macA], listed: [macA] });
  expect(entry.identities).toEqual([macA]);
  await desk.stop();
});

it("claims nothing if it contradicts the entry of its Machine", async () => {
  const desk = await openDesk();
  await claimed(desk, { grants: [grantOf(desk)], identities: [uuidA, macA] });
  const raised = [grantOf(desk, { generation: 2 })];
  expect(await asked(desk, { grants: raised, identities: [uuidB, macA], listed: [macA] })).toBe("ambiguousIdentity");
  expect(await asked(desk, { grants: raised, identities: [uuidB, macA], listed: [uuidB, macA] })).toBe("granted");
  await desk.stop();
});

it("boots an installed machine from its disk, even if a grant is open", async () => {
  const { desk } = await openStolen();
  const grants = [grantOf(desk, { generation: 2, scope: "All" })];
  for (const identities of [
    [uuidB, macA],
    [uuidA, macB],
  ]) {
    expect(await asked(desk, { grants, identities })).toBe("disk");
    expect(await asked(desk, { grants, identities, purpose: "config" })).toBe("ambiguousIdentity");
  }
  // One Machine that lists both cards opens the install.
  expect(await asked(desk, { grants, identities: [uuidB, macA], listed: [uuidB, macA, macB] })).toBe("granted");
  await desk.stop();
});

it("gives no identity to an installed machine", async () => {
  const desk = await openDesk();
  await desk.ledger.adoptMachine([macA], "racks/web");
  const grants = [grantOf(desk)];
  expect(await asked(desk, { grants, identities: [uuidB, macA] })).toBe("disk");
  await desk.clock.advance(1_000);
  expect(entriesOf(desk)).toEqual([{ identities: [macA], state: "Installed" }]);
  expect(await asked(desk, { grants, identities: [uuidA, macA] })).toBe("disk");
  expect(await asked(desk, { grants, identities: [uuidB, macB] })).toBe("granted");
  await desk.stop();
});

it("gives no identity to a machine that installs", async () => {
  const desk = await openDesk();
  const grants = [grantOf(desk)];
  await claimed(desk, { grants, identities: [macA] });
  expect(await asked(desk, { grants, identities: [uuidB, macA], purpose: "config" })).toBe("ambiguousIdentity");
  expect(await asked(desk, { grants, identities: [macA], purpose: "config" })).toBe("granted");
  expect(entriesOf(desk)).toEqual([{ identities: [macA], state: "Installing" }]);
  await desk.stop();
});

it("adopts nothing for a machine of an adopted Group of which the ledger knows a part", async () => {
  const { desk } = await openStolen();
  await desk.ledger.adopt("racks/web", desk.clock.nowMs() + hourMs);
  expect(await asked(desk, { identities: [uuidB, macA] })).toBe("disk");
  await desk.clock.advance(1_000);
  expect(entriesOf(desk)).toEqual([{ identities: [uuidB, macB], state: "Installed" }]);
  await desk.stop();
});

it("gives an entry at most the 17 identities that a Machine can list, and another entry the rest", async () => {
  const desk = await openDesk();
  const mac = (at: number) => `mac/52:54:00:00:00:${at.toString(16).padStart(2, "0")}`;
  const macs = (from: number) => Array.from({ length: 16 }, (_, at) => mac(from + at));
  const claim = (generation: number, listed: readonly string[], identities = [mac(16)]) =>
    claimed(desk, { grants: [grantOf(desk, { generation })], identities, listed });
  await claim(1, [uuidA, ...macs(1)]);
  const { entry } = await claim(2, [uuidA, ...macs(9)]);
  expect(entry.identities).toEqual([uuidA, ...macs(1)]);
  expect(entriesOf(desk)).toEqual([
    { identities: [uuidA, ...macs(1)], state: "Claimed" },
    { identities: Array.from({ length: 8 }, (_, at) => mac(17 + at)), state: "Unconfirmed" },
  ]);
  // All of them have spent the grant, with and without the Machine.
  const grants = [grantOf(desk, { generation: 2 })];
  expect(await asked(desk, { grants, identities: [mac(24)], listed: [uuidA, ...macs(9)] })).toBe("granted");
  expect(await asked(desk, { grants, identities: [mac(24)] })).toBe("disk");
  await desk.stop();
});
