/** After a lost ledger, an operator says which Groups are installed. A new grant must not install those machines. */

import { expect, it } from "vitest";
import {
  type InstallGrant,
  type LedgerEntry,
  type LedgerView,
  type NamedGrant,
  type PermitAsk,
  verdictOf,
} from "../../src/model/permits/permit.ts";

const nowMs = Date.UTC(2026, 10, 25);
const grant: InstallGrant = { generation: 1, ledger: "9f3c0a52", untilMs: nowMs + 3_600_000, scope: "NeverInstalled" };
const ask: PermitAsk = {
  purpose: "script",
  identities: ["mac/52:54:00:a1:9c:ae"],
  grants: [{ key: "group/racks/web", grant }],
  plan: { then: "sanboot", timeoutSeconds: 7_200 },
  group: "racks/web",
  profile: "racks/flatcar",
  revision: "r1",
};

function ledger(adoptedUntilMs: number, entries: readonly LedgerEntry[] = []): LedgerView {
  return {
    id: "9f3c0a52",
    nowMs,
    isFull: false,
    endedGeneration: () => 0,
    adoptedUntilMs: (group) => (group === "racks/web" ? adoptedUntilMs : 0),
    entriesOf: () => entries,
  };
}

const withScope = (scope: InstallGrant["scope"]): readonly NamedGrant[] => [
  { key: "group/racks/web", grant: { ...grant, scope } },
];

it("a grant for machines that were never installed leaves an adopted one at its disk", () => {
  expect(verdictOf(ask, ledger(nowMs + 1))).toEqual({ kind: "disk" });
  expect(verdictOf({ ...ask, group: "racks/other" }, ledger(nowMs + 1)).kind).toBe("claim");
});

it("the same grant installs the machine once the adoption is over: nobody has said that it is installed", () => {
  expect(verdictOf(ask, ledger(nowMs)).kind).toBe("claim");
});

it("a grant for all machines installs adopted ones, too", () => {
  expect(verdictOf({ ...ask, grants: withScope("All") }, ledger(nowMs + 1)).kind).toBe("claim");
});

it("an adoption does not close what an entry leaves open", () => {
  const failed: LedgerEntry = {
    id: "0000000000000001",
    identities: ask.identities,
    state: "Failed",
    spent: {},
    claimedAtMs: nowMs,
    changedAtMs: nowMs,
    timeoutSeconds: 0,
    group: "racks/web",
    profile: "racks/flatcar",
    addresses: [],
  };
  expect(verdictOf(ask, ledger(nowMs + 1, [failed])).kind).toBe("claim");
});
