/** The line about grants that name another ledger. */

import { expect, it } from "vitest";
import { foreignGrants } from "../../../src/installs/ledger/grants.ts";

const nowMs = Date.UTC(2026, 10, 30);
const ledger = { id: "9f3c0a52", meta: { id: "9f3c0a52", beganAtMs: nowMs - 60_000 }, isUsed: false, nowMs };

function grant(named: string | undefined, untilMs: number | undefined = nowMs + 1, key = "group/racks/web") {
  const own = named === undefined ? {} : { ledger: named };
  return { key, grant: { generation: 1, scope: "All" as const, ...own, ...(untilMs !== undefined && { untilMs }) } };
}

it("names the new ledger, when it began, and what to do", () => {
  expect(foreignGrants(ledger, [grant("9f3c0a52"), grant("00000000")])).toBe(
    "Ledger: 9f3c0a52 began at 2026-11-29T23:59:00Z, and group/racks/web names another ledger, which opens no install: " +
      "adopt the machines that are installed (davit machine adopt), then grant again (davit machine install)",
  );
  expect(foreignGrants(ledger, [grant("00000000"), grant("11111111")])).toContain(
    "2 grants, such as of group/racks/web, name another ledger, which opens no install",
  );
});

it.each([
  ["the present ledger", ledger, [grant("9f3c0a52")]],
  ["no ledger", ledger, [grant(undefined)]],
  ["another one, but are over, and the ledger is in use", { ...ledger, isUsed: true }, [grant("00000000", nowMs)]],
  ["another one, while no ledger is known", { ...ledger, id: undefined }, [grant("00000000")]],
])("is absent for grants that name %s", (_, known, grants) => {
  expect(foreignGrants(known, grants)).toBeUndefined();
});

it("counts a grant that is over while the ledger is new", () => {
  expect(foreignGrants(ledger, [grant("00000000", nowMs)])).toBeDefined();
});
