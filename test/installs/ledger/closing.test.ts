/** What closes permits besides reports: time, operators, full ledgers and limits. */

import { describe, expect, it } from "vitest";
import { asked, claimed, type Desk, grantOf, hourMs, macA, macB, openDesk, question, uuidA, uuidB } from "./desk.ts";

function stateOf({ ledger }: Desk, identity = macA): string | undefined {
  return ledger.known.entriesOf([identity])[0]?.state;
}

/** Lets the ledger's own writes happen. */
async function tick({ clock }: Desk): Promise<void> {
  await clock.advance(1);
  await clock.advance(5_000);
  // The disk takes some turns.
  for (let turn = 0; turn < 10; turn++) await clock.advance(1);
}

describe("time", () => {
  it("ends an install that does not report its end", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    await claimed(desk, { grants });
    expect(await asked(desk, { grants, purpose: "config" })).toBe("granted");
    expect(stateOf(desk)).toBe("Installing");
    desk.clock.stepWallClock(2 * hourMs);
    expect(await asked(desk, { grants, purpose: "config" })).toBe("over");
    await tick(desk);
    expect(stateOf(desk)).toBe("Unconfirmed");
    expect(await asked(desk, { grants })).toBe("disk");
    expect(await asked(desk, { grants: [grantOf(desk, { generation: 2 })] })).toBe("disk");
    expect(await asked(desk, { grants: [grantOf(desk, { generation: 2, scope: "All" })] })).toBe("granted");
    await desk.stop();
  });

  it("ends a grant for ever, and a clock that is set back opens it for nobody", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk, { untilMs: desk.clock.nowMs() + hourMs })];
    desk.ledger.grantsChanged(grants);
    desk.clock.stepWallClock(hourMs);
    await tick(desk);
    expect(desk.ledger.known.endedGeneration("group/racks/web")).toBe(1);
    await desk.stop();
    desk.clock.stepWallClock(-24 * hourMs);
    const next = await openDesk({ files: desk.files.reopened(), clock: desk.clock });
    expect(await asked(next, { grants })).toBe("ended");
    const later = next.ledger.known.nowMs + hourMs;
    expect(await asked(next, { grants: [grantOf(next, { untilMs: later })] })).toBe("ended");
    expect(await asked(next, { grants: [grantOf(next, { untilMs: later, generation: 2 })] })).toBe("granted");
    expect(next.ledger.problems).toEqual(["Ledger: this computer's clock is behind the ledger's: correct the clock"]);
    await next.stop();
  });

  it("is logged before anybody is refused because of it", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk, { untilMs: desk.clock.nowMs() + hourMs })];
    desk.clock.stepWallClock(hourMs);
    expect(await asked(desk, { grants })).toBe("ended");
    expect(desk.ledger.known.endedGeneration("group/racks/web")).toBe(1);
    await desk.stop();
  });

  it("is not repeated: a claim from before the start gets no second script", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    await claimed(desk, { grants });
    await desk.stop();
    const next = await openDesk({ files: desk.files.reopened(), clock: desk.clock });
    // Another member may know how long ago the claim was.
    expect(await asked(next, { grants })).toBe("late");
    next.clock.stepWallClock(-hourMs);
    await next.clock.advance(60_000);
    expect(await asked(next, { grants })).toBe("disk");
    await next.stop();
  });
});

describe("an asset that was read", () => {
  it("ends no claim: another machine at the address may have read it", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    await claimed(desk, { grants });
    await desk.clock.advance(59_000);
    expect([await asked(desk, { grants }), stateOf(desk)]).toEqual(["granted", "Claimed"]);
    await desk.stop();
  });
});

describe("a machine that an operator forgets", () => {
  it("spends every grant that is open, even one for new machines", async () => {
    const desk = await openDesk();
    const group = grantOf(desk);
    const own = { ...grantOf(desk), key: "machine/racks/one" };
    const { reportToken } = await claimed(desk, { grants: [group] });
    await desk.ledger.report(reportToken, { state: "installed" }, undefined);
    desk.ledger.grantsChanged([group, own]);
    expect(await asked(desk, { grants: [own, group] })).toBe("disk");
    expect(await desk.ledger.forget([uuidA])).toBe("closed");
    expect(await asked(desk, { grants: [own, group] })).toBe("spent");
    // A person who raises the generation installs it, as a new machine.
    expect(await asked(desk, { grants: [grantOf(desk, { generation: 2 })] })).toBe("granted");
    await desk.stop();
  });

  it("spends a grant that only time opens", async () => {
    const desk = await openDesk();
    const far = grantOf(desk, { untilMs: desk.clock.nowMs() + 8 * 24 * hourMs, generation: 5 });
    desk.ledger.grantsChanged([far]);
    await desk.ledger.adoptMachine([uuidA, macA], "racks/web");
    expect(await desk.ledger.forget([macA])).toBe("closed");
    desk.clock.stepWallClock(2 * 24 * hourMs);
    expect(await asked(desk, { grants: [far] })).toBe("spent");
    await desk.stop();
  });

  it("loses its entry when every grant is over, and no grant opens again", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk, { untilMs: desk.clock.nowMs() + hourMs })];
    const { entry, reportToken } = await claimed(desk, { grants });
    await desk.ledger.report(reportToken, { state: "installed" }, undefined);
    desk.ledger.grantsChanged(grants);
    desk.clock.stepWallClock(hourMs);
    await tick(desk);
    expect(await desk.ledger.forget(entry.id)).toBe("forgotten");
    expect(desk.ledger.known.entries.size).toBe(0);
    expect(await asked(desk, { grants })).toBe("ended");
    // Its names are free for another entry.
    expect(await asked(desk, { grants: [grantOf(desk, { generation: 2 })] })).toBe("granted");
    await desk.stop();
  });

  it("stays while davit does not know the grants, or knows no such machine", async () => {
    const desk = await openDesk();
    await claimed(desk, { grants: [grantOf(desk)] });
    expect(await desk.ledger.forget([uuidA])).toBe("late");
    desk.ledger.grantsChanged([]);
    expect(await desk.ledger.forget([macB])).toBe("unknown");
    // An install that goes on is ended.
    expect(await desk.ledger.forget([uuidA])).toBe("closed");
    expect(stateOf(desk)).toBe("Failed");
    await desk.stop();
  });
});

describe("a machine that an operator adopts", () => {
  it("counts as installed", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    expect(await desk.ledger.adoptMachine([uuidA, macA], "racks/web")).toBe("adopted");
    expect(await desk.ledger.adoptMachine([uuidA, macA], "racks/web")).toBe("adopted");
    expect(await asked(desk, { grants })).toBe("disk");
    expect(await asked(desk, { grants: [] })).toBe("disk");
    await desk.stop();
  });

  it("keeps what it has spent", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk, { scope: "All" })];
    const { reportToken } = await claimed(desk, { grants });
    await desk.ledger.report(reportToken, { state: "failed" }, undefined);
    expect(await asked(desk, { grants })).toBe("spent");
    expect(await desk.ledger.adoptMachine([macA], "racks/web")).toBe("adopted");
    expect(await asked(desk, { grants })).toBe("disk");
    await desk.stop();
  });
});

describe("names", () => {
  it("that are known as two machines are refused, until a Machine lists both", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    await claimed(desk, { grants, identities: [uuidA, macA] });
    await claimed(desk, { grants, identities: [uuidB, macB] });
    const raised = [grantOf(desk, { generation: 2, scope: "All" })];
    expect(await asked(desk, { grants: raised, identities: [uuidA, macB] })).toBe("ambiguousIdentity");
    const listed = [uuidA, macA, uuidB, macB];
    const { entry } = await claimed(desk, { grants: raised, identities: [uuidA, macB], listed });
    // Both have spent it, and only one of them installs.
    const entries = [...desk.ledger.known.entries.values()];
    expect(entries.map(({ spent }) => spent)).toEqual([{ "group/racks/web": 2 }, { "group/racks/web": 2 }]);
    expect(entries.map(({ state }) => state).toSorted()).toEqual(["Claimed", "Unconfirmed"]);
    expect(await asked(desk, { grants: raised, identities: [uuidB, macB], listed })).toBe("granted");
    expect(await asked(desk, { grants: raised, identities: [uuidB, macB] })).toBe("disk");
    expect(entry.state).toBe("Claimed");
    await desk.stop();
  });

  it("that claimed as two machines have both begun with the first config for a Machine that lists both", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    await claimed(desk, { grants, identities: [macA] });
    await claimed(desk, { grants, identities: [macB] });
    expect(await asked(desk, { grants, purpose: "config", identities: [macB], listed: [macA, macB] })).toBe("granted");
    expect([stateOf(desk), stateOf(desk, macB)]).toEqual(["Installing", "Installing"]);
    expect(await asked(desk, { grants, identities: [macA] })).toBe("disk");
    // What one of them has spent, the other one has spent, too, even when no Machine lists them any more.
    const raised = [grantOf(desk, { generation: 2 })];
    await claimed(desk, { grants: raised, identities: [macA] });
    expect(await asked(desk, { grants: raised, purpose: "config", listed: [macA, macB] })).toBe("granted");
    expect(await asked(desk, { grants: raised, identities: [macB] })).toBe("disk");
    await desk.stop();
  });

  it("that a machine sends in turn are one machine only if one claim had both, or one Machine lists both", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    await claimed(desk, { grants, identities: [macA] });
    await desk.clock.advance(60_000);
    expect(await asked(desk, { grants, identities: [uuidA, macA] })).toBe("ambiguousIdentity");
    expect(await asked(desk, { grants, identities: [uuidA], listed: [uuidA, macA] })).toBe("disk");
    expect(await asked(desk, { grants, identities: [uuidB, macB] })).toBe("granted");
    await desk.clock.advance(60_000);
    expect(await asked(desk, { grants, identities: [uuidB] })).toBe("disk");
    await desk.stop();
  });

  it.each([
    ["mac/../../meta"],
    ["mac/"],
    ["serial/1"],
    [`mac/${"0".repeat(65)}`],
    ["uuid/A"],
    ["mac/52:54:00:a1:9c:ae\n"],
  ])("such as %j are no identity", async (identity) => {
    const desk = await openDesk();
    expect(await asked(desk, { grants: [grantOf(desk)], identities: [identity] })).toBe("noIdentity");
    await desk.stop();
  });
});

describe("limits", () => {
  it("are 50 claims a second", async () => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    const ask = (at: number) =>
      asked(desk, { grants, identities: [`mac/52:54:00:00:${hex(at >> 8)}:${hex(at & 255)}`] });
    const first = await Promise.all(Array.from({ length: 300 }, (_, at) => ask(at)));
    expect(first.filter((answer) => answer === "granted")).toHaveLength(50);
    expect(first.filter((answer) => answer === "late")).toHaveLength(250);
    await desk.clock.advance(1_000);
    const second = await Promise.all(Array.from({ length: 300 }, (_, at) => ask(at)));
    expect(second.filter((answer) => answer === "granted")).toHaveLength(100);
    await desk.stop();
  });

  it.each([
    { name: "one address", addresses: ["192.0.2.66"] },
    { name: "addresses of one network", addresses: ["2001:db8::1", "2001:db8::2", "2001:db8::3"] },
    { name: "two addresses", addresses: ["192.0.2.66", "192.0.2.67"] },
  ])("keep no other machine from its claim while $name invents machines", async ({ addresses }) => {
    const desk = await openDesk();
    const grants = [grantOf(desk)];
    let count = 0;
    const ask = (address: string) => {
      count += 1;
      return asked(desk, { grants, identities: [`mac/52:54:00:00:${hex(count >> 8)}:${hex(count & 255)}`], address });
    };
    for (let second = 0; second < 5; second += 1) {
      await Promise.all(Array.from({ length: 300 }, (_, at) => ask(addresses[at % addresses.length] ?? "")));
      expect(await ask("192.0.2.1")).toBe("granted");
      await desk.clock.advance(1_000);
    }
    await desk.stop();
  });

  it("are one report a second for each token, after the first five", async () => {
    const desk = await openDesk();
    const { reportToken } = await claimed(desk, { grants: [grantOf(desk)] });
    const report = (progress: number) => desk.ledger.report(reportToken, { state: "progress", progress }, undefined);
    const outcomes = [];
    for (let progress = 0; progress < 8; progress++) outcomes.push(await report(progress));
    expect(outcomes).toEqual([...Array(5).fill("taken"), ...Array(3).fill("tooMany")]);
    await desk.clock.advance(1_000);
    expect([await report(9), await report(10)]).toEqual(["taken", "tooMany"]);
    await desk.stop();
  });

  it.each([
    { what: "for ever", ttl: {}, labelled: ["Failed"], second: "full" },
    { what: "for an hour", ttl: { ttlSeconds: 3_600 }, labelled: [], second: "granted" },
  ])("are so many machines: a full ledger claims for no new one (labels $what)", async ({ ttl, labelled, second }) => {
    const desk = await openDesk({ maxEntries: 8, rulesOf: () => ({ labels: { os: ["old"] }, ...ttl }) });
    const grants = [grantOf(desk)];
    const mac = (at: number) => `mac/52:54:00:00:00:${hex(at)}`;
    for (let at = 0; at < 8; at++) {
      const { reportToken } = await claimed(desk, { grants, identities: [mac(at)] });
      if (at < 4) await desk.ledger.report(reportToken, { state: at < 2 ? "failed" : "installed" }, undefined);
      // Failed, too. But Groups may select this machine by its label, while that counts.
      if (at === 4) await desk.ledger.report(reportToken, { state: "failed", labels: { os: "old" } }, undefined);
    }
    expect(await asked(desk, { grants })).toBe("full");
    expect(desk.ledger.problems).toEqual(["Ledger: it is full: forget machines that are gone"]);
    expect(desk.ledger.known.isFull).toBe(true);
    // A known machine goes on.
    const raised = [grantOf(desk, { generation: 2 })];
    expect(await asked(desk, { grants: raised, identities: [mac(1)] })).toBe("granted");
    // A failed one has spent a grant that is open.
    await tick(desk);
    expect(await asked(desk, { grants })).toBe("full");
    // From its end on, its entry is of no use. All others say that a machine may be installed.
    desk.ledger.grantsChanged(grants);
    desk.clock.stepWallClock(24 * hourMs);
    await tick(desk);
    await tick(desk);
    expect([...desk.ledger.known.entries.values()].map(({ state }) => state).toSorted()).toEqual([
      ...labelled,
      "Installed",
      "Installed",
      ...Array(4).fill("Unconfirmed"),
    ]);
    expect(await asked(desk, { grants: [grantOf(desk, { generation: 3 })] })).toBe("granted");
    expect(await asked(desk, { grants: [grantOf(desk, { generation: 3 })], identities: [uuidB] })).toBe(second);
    await desk.stop();
  });
});

describe("a token", () => {
  it("is of one install, and says nothing of another", async () => {
    const desk = await openDesk();
    const first = await claimed(desk, { grants: [grantOf(desk)] });
    const second = await claimed(desk, { grants: [grantOf(desk, { generation: 2 })] });
    expect(second.entry.id).toBe(first.entry.id);
    const report = (token: string) => desk.ledger.report(token, { state: "failed" }, undefined);
    expect(await report(first.reportToken)).toBe("unknown");
    for (const bad of [
      "",
      "x",
      "A".repeat(32),
      "A".repeat(33),
      `${second.reportToken.slice(0, 31)}!`,
      "=".repeat(32),
    ]) {
      expect(await report(bad)).toBe("unknown");
    }
    const other = await claimed(desk, { grants: [grantOf(desk)], identities: [uuidB] });
    expect(await report(second.reportToken.slice(0, 10) + other.reportToken.slice(10))).toBe("unknown");
    expect(stateOf(desk)).toBe("Claimed");
    expect(await report(second.reportToken)).toBe("taken");
    await desk.stop();
  });

  it("is the same after a restart", async () => {
    const desk = await openDesk();
    const { reportToken } = await claimed(desk, { grants: [grantOf(desk)] });
    await desk.stop();
    const next = await openDesk({ files: desk.files.reopened(), clock: desk.clock });
    expect(await next.ledger.report(reportToken, { state: "installed" }, undefined)).toBe("taken");
    await next.stop();
  });

  it("is not among the documents that followers get, and neither is its key", async () => {
    const desk = await openDesk();
    const texts: string[] = [];
    desk.store.follow("/davit", { replaced: (all) => texts.push(...[...all].flat()), changed: () => undefined });
    expect(texts.join("\n")).toContain(desk.ledger.id);
    expect(texts.join("\n")).not.toMatch(/[0-9a-f]{64}/);
    await desk.stop();
  });
});

it("answers late while its disk cannot be written, and disks boot", async () => {
  const desk = await openDesk();
  const grants = [grantOf(desk)];
  await desk.ledger.adoptMachine([macB], "racks/web");
  desk.files.capacityBytes = desk.files.usedBytes;
  const answer = desk.ledger.ask(question({ grants }));
  expect(await answer).toEqual({ kind: "late" });
  expect(await asked(desk, { grants, identities: [macB] })).toBe("disk");
  await desk.stop();
});

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
