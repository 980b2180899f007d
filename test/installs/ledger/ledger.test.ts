/** What a ledger answers machines, and what it logs. */

import { expect, it } from "vitest";
import { asked, claimed, grantOf, hourMs, macA, macB, openDesk, question, uuidA } from "./desk.ts";

it("begins with an id, and grants an install once", async () => {
  const desk = await openDesk();
  expect(desk.ledger.id).toMatch(/^[0-9a-f]{8}$/);
  const grants = [grantOf(desk)];
  const { entry, reportToken } = await claimed(desk, { grants });
  expect(entry).toMatchObject({ identities: [uuidA, macA], state: "Claimed", spent: { "group/racks/web": 1 } });
  expect(reportToken).toMatch(/^[\w-]{32}$/);
  // The first answer may have been lost.
  expect(await asked(desk, { grants })).toBe("granted");
  await desk.clock.advance(60_000);
  expect(await asked(desk, { grants })).toBe("disk");
  await desk.clock.advance(2 * hourMs);
  expect(desk.ledger.known.entries.get(entry.id)?.state).toBe("Unconfirmed");
  expect(await asked(desk, { grants })).toBe("disk");
  await desk.stop();
});

it("remembers after a restart", async () => {
  const desk = await openDesk();
  const grants = [grantOf(desk)];
  await claimed(desk, { grants });
  await desk.stop();
  const next = await openDesk({ files: desk.files.reopened(), clock: desk.clock });
  expect(next.ledger.id).toBe(desk.ledger.id);
  await next.clock.advance(60_000);
  expect(await asked(next, { grants })).toBe("disk");
  await next.stop();
});

it("refuses the grants of another ledger when it was lost", async () => {
  const desk = await openDesk();
  const grants = [grantOf(desk)];
  await claimed(desk, { grants });
  await desk.stop();
  const next = await openDesk({ clock: desk.clock });
  expect(await asked(next, { grants })).toBe("otherLedger");
  await next.stop();
});

it("takes the end of an install, and nothing after it", async () => {
  const desk = await openDesk();
  const grants = [grantOf(desk)];
  const { reportToken } = await claimed(desk, { grants });
  expect(await asked(desk, { grants, purpose: "config" })).toBe("granted");
  expect(await asked(desk, { grants })).toBe("disk");
  expect(await desk.ledger.report(reportToken, { state: "installed" }, "10.0.0.1")).toBe("taken");
  expect(await desk.ledger.report(reportToken, { state: "failed" }, "10.0.0.1")).toBe("final");
  expect(await asked(desk, { grants, purpose: "config" })).toBe("over");
  expect(await asked(desk, { grants })).toBe("disk");
  await desk.stop();
});

it("logs nothing for a request that may not claim", async () => {
  const desk = await openDesk();
  const grants = [grantOf(desk)];
  const { storeIndex } = desk.store.indexes;
  expect(await asked(desk, { grants, mayClaim: false })).toBe("notClaimed");
  expect(desk.store.indexes.storeIndex).toBe(storeIndex);
  await desk.ledger.ask(question({ grants }));
  const after = desk.store.indexes.storeIndex;
  expect(await asked(desk, { grants, mayClaim: false })).toBe("granted");
  expect(await asked(desk, { grants, purpose: "config", mayClaim: false })).toBe("granted");
  expect(desk.store.indexes.storeIndex).toBe(after);
  await desk.stop();
});

it("installs no machine of an adopted Group that a grant for new machines would install", async () => {
  const desk = await openDesk();
  const grants = [grantOf(desk)];
  await desk.ledger.adopt("racks/web", desk.clock.nowMs() + hourMs);
  expect(await asked(desk, { grants })).toBe("disk");
  await desk.clock.advance(1_000);
  expect([...desk.ledger.known.entries.values()]).toMatchObject([{ identities: [uuidA, macA], state: "Installed" }]);
  // It stays installed when the time of the adoption is over. Others do not become so.
  await desk.clock.advance(hourMs);
  expect(await asked(desk, { grants })).toBe("disk");
  expect(await asked(desk, { grants, identities: [macB] })).toBe("granted");
  expect(await asked(desk, { grants: [grantOf(desk, { generation: 2, scope: "All" })] })).toBe("granted");
  await desk.stop();
});
