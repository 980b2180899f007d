/** What a claim is for: one revision of a Profile, and one Group. */

import { describe, expect, it } from "vitest";
import { claimTokenOf } from "../../../src/lib/claim-token.ts";
import { asked, claimed, grantOf, macA, openDesk } from "./desk.ts";

describe("a claim of another Profile, or of another revision", () => {
  it.each([
    ["Profile", { profile: "racks/wipe" }],
    ["revision", { revision: "r2" }],
  ])("gives no config and repeats no script: another %s", async (_, other) => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    await claimed(desk, { grants });
    for (const purpose of ["script", "config"] as const) {
      expect(await asked(desk, { grants, purpose, ...other })).toBe("otherProfile");
    }
    expect(await asked(desk, { grants, purpose: "config" })).toBe("granted");
    expect(await asked(desk, { purpose: "config", ...other })).toBe("otherProfile");
    await desk.stop();
  });
});

describe("a claim in another Group", () => {
  const other = { purpose: "config", group: "racks/all-disks" } as const;

  it("gives no config of a Group that has not granted the install", async () => {
    const desk = await openDesk();
    await claimed(desk, { grants: [grantOf(desk)] });
    expect(await asked(desk, other)).toBe("otherGroup");
    const own = { ...grantOf(desk, { generation: 2 }), key: "group/racks/all-disks" };
    expect(await asked(desk, { ...other, grants: [own] })).toBe("otherGroup");
    // The install goes on in the Group that began it, also if the grant was withdrawn.
    expect(await asked(desk, { purpose: "config" })).toBe("granted");
    await desk.stop();
  });

  it.each([
    ["asleep", { ledger: "ffffffff" }],
    ["over", { untilMs: 1 }],
  ])("gives no config of a Group whose own grant of this generation is %s", async (_, more) => {
    const desk = await openDesk();
    const grant = grantOf(desk);
    await claimed(desk, { grants: [grant] });
    const own = { key: "group/racks/all-disks", grant: { ...grant.grant, ...more } };
    expect(await asked(desk, { ...other, grants: [own] })).toBe("otherGroup");
    await desk.stop();
  });

  it("gives the configs of a Group that has the same grant: it was renamed", async () => {
    const desk = await openDesk();
    const grant = grantOf(desk);
    await claimed(desk, { grants: [grant] });
    expect(await asked(desk, { ...other, grants: [{ ...grant, key: "group/racks/all-disks" }] })).toBe("granted");
    await desk.stop();
  });

  it("gives the configs of any Group if the grant is of the machine's Machine", async () => {
    const desk = await openDesk();
    const grants = [{ ...grantOf(desk), key: "machine/racks/one" }];
    await claimed(desk, { grants });
    expect(await asked(desk, { ...other, grants })).toBe("granted");
    await desk.stop();
  });
});

describe("the token in a script", () => {
  it("says only that the install begins, and is not the report token", async () => {
    const desk = await openDesk();
    const { reportToken } = await claimed(desk, { grants: [grantOf(desk)] });
    const token = claimTokenOf(reportToken);
    expect(token).toMatch(/^[\w-]{32}$/);
    for (const state of ["progress", "installed", "failed", "booted"] as const)
      expect(await desk.ledger.report(token, { state }, undefined)).toBe("unknown");
    for (const more of [{ labels: { role: "gone" } }, { message: "m" }, { progress: 1 }])
      expect(await desk.ledger.report(token, { state: "installing", ...more }, undefined)).toBe("unknown");
    expect(await desk.ledger.report(token, { state: "installing" }, undefined)).toBe("taken");
    expect(desk.ledger.known.entriesOf([macA])[0]?.state).toBe("Installing");
    expect(await desk.ledger.report(claimTokenOf(token), { state: "installing" }, undefined)).toBe("unknown");
    expect(await desk.ledger.report(reportToken, { state: "installed" }, undefined)).toBe("taken");
    await desk.stop();
  });
});
