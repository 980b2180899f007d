import { describe, expect, it } from "vitest";
import type { InstallGrant, NamedGrant } from "../../../src/model/permits/permit.ts";
import { asked, claimed, grantOf, hourMs, macA, openDesk, uuidA } from "./desk.ts";

describe("a grant under another name", () => {
  const renamed = (named: NamedGrant, key: string, more: Partial<InstallGrant> = {}): NamedGrant => ({
    key,
    grant: { ...named.grant, ...more },
  });

  it("is spent by the machines that spent its generation, whatever its `until`", async () => {
    const desk = await openDesk();
    const group = grantOf(desk, { scope: "All" });
    const untilMs = desk.clock.nowMs() + 2 * hourMs;
    await claimed(desk, { grants: [group] });
    await desk.clock.advance(61_000);
    const grants = [renamed(group, "group/racks/new", { untilMs })];
    expect(await asked(desk, { grants })).toBe("disk");
    expect(await asked(desk, { grants: [renamed(group, "group/racks/new", { generation: 2 })] })).toBe("granted");
    expect(await asked(desk, { grants, identities: ["mac/52:54:00:00:00:99"] })).toBe("granted");
    await desk.stop();
  });

  it("is spent by a machine that has spent a higher generation since, also after a restart", async () => {
    const desk = await openDesk();
    const first = grantOf(desk, { scope: "All" });
    const second = grantOf(desk, { scope: "All", generation: 2 });
    for (const grant of [first, second]) {
      const { reportToken } = await claimed(desk, { grants: [grant] });
      await desk.ledger.report(reportToken, { state: "installed" }, undefined);
    }
    await desk.stop();
    const next = await openDesk({ files: desk.files.reopened(), clock: desk.clock });
    for (const grant of [first, second])
      expect(await asked(next, { grants: [renamed(grant, "group/racks/new")] })).toBe("disk");
    expect(await asked(next, { grants: [renamed(first, "group/racks/new", { generation: 3 })] })).toBe("granted");
    await next.stop();
  });

  it("is another grant of a forgotten machine, unless its `until` is the same, too", async () => {
    const desk = await openDesk();
    const open = renamed(grantOf(desk), "group/racks/open");
    await desk.ledger.adoptMachine([uuidA, macA], "racks/web");
    desk.ledger.grantsChanged([open]);
    expect(await desk.ledger.forget([macA])).toBe("closed");
    expect(await asked(desk, { grants: [renamed(open, "group/racks/new")] })).toBe("spent");
    const untilMs = desk.clock.nowMs() + 2 * hourMs;
    expect(await asked(desk, { grants: [renamed(open, "group/racks/other", { untilMs })] })).toBe("granted");
    await desk.stop();
  });
});
