/** What reports change: every state with every report, and bad input. */

import { describe, expect, it } from "vitest";
import { cleanMessage, reported } from "../../../src/installs/ledger/report.ts";
import { installStates, type LedgerEntry, reportStates } from "../../../src/model/permits/permit.ts";
import type { MachineReport } from "../../../src/model/permits/permit-desk.ts";
import { macA } from "./desk.ts";

const nowMs = 1_000_000;

function entryIn(state: LedgerEntry["state"], change: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    id: "0123456789abcdef",
    identities: [macA],
    state,
    grant: { key: "group/racks/web", generation: 1 },
    spent: { "group/racks/web": 1 },
    claimedAtMs: nowMs - 1_000,
    changedAtMs: nowMs - 500,
    timeoutSeconds: 60,
    group: "racks/web",
    profile: "racks/flatcar",
    addresses: ["10.0.0.1"],
    ...change,
  };
}

function after(entry: LedgerEntry, report: MachineReport, more: { address?: string; ttlSeconds?: number } = {}) {
  const { address = "10.0.0.1", ttlSeconds } = more;
  const rules = { labels: { os: ["installed", "none"], mac: ["x"] }, ...(ttlSeconds !== undefined && { ttlSeconds }) };
  return reported(entry, { report, address, nowMs, rules });
}

const expected: Readonly<Record<LedgerEntry["state"], readonly string[]>> = {
  //           installing    progress      installed    failed    booted
  Claimed: ["Installing", "Installing", "Installed", "Failed", "Installed"],
  Installing: ["Installing", "Installing", "Installed", "Failed", "Installed"],
  Installed: ["final", "final", "Installed", "final", "Installed"],
  Failed: ["final", "final", "Installed", "Failed", "final"],
  Unconfirmed: ["final", "final", "Installed", "final", "Installed"],
};

describe.each(installStates)("an entry that is %s", (state) => {
  it.each(reportStates.map((report, at) => [report, expected[state][at]]))(
    "after a report of %s is %s",
    (report, end) => {
      const result = after(entryIn(state), { state: report as MachineReport["state"] });
      expect(result === "final" ? result : result.entry.state).toBe(end);
    },
  );
});

it("counts as Unconfirmed from the end of its time on, logged or not", () => {
  const late = entryIn("Installing", { claimedAtMs: nowMs - 60_000 });
  expect(after(late, { state: "progress" })).toBe("final");
  expect(after(late, { state: "failed" })).toBe("final");
  expect(after(late, { state: "installed" })).toMatchObject({ entry: { state: "Installed" } });
});

it("changes nothing by a repetition", () => {
  const first = after(entryIn("Installing"), { state: "progress", progress: 40, message: "writing" });
  if (first === "final") throw new Error("final");
  expect(first.isChanged).toBe(true);
  expect(after(first.entry, { state: "progress", progress: 40, message: "writing" })).toMatchObject({
    isChanged: false,
  });
  expect(after(first.entry, { state: "progress", progress: 41 })).toMatchObject({ isChanged: true });
  const end = after(first.entry, { state: "installed" });
  if (end === "final") throw new Error("final");
  // The end stays as it was reported first.
  expect(after(end.entry, { state: "installed", message: "again" })).toMatchObject({ isChanged: false });
  expect(after(end.entry, { state: "booted" })).toMatchObject({ isChanged: true, entry: { state: "Installed" } });
});

it("keeps two addresses, the last one first, and a third one changes nothing by itself", () => {
  const two = after(entryIn("Installing"), { state: "progress" }, { address: "10.0.0.2" });
  if (two === "final") throw new Error("final");
  expect(two.entry.addresses).toEqual(["10.0.0.2", "10.0.0.1"]);
  expect(after(two.entry, { state: "progress" }, { address: "10.0.0.3" })).toMatchObject({ isChanged: false });
});

it.each([
  ["ordinary text", "ordinary text"],
  ["a\u0000b\u001b[31mc\u2028d\u202ee", "a b [31mc d e"],
  ["  \n ", undefined],
  ["\ud800", undefined],
  ["x".repeat(100_000), "x".repeat(256)],
  ["😀".repeat(300), "😀".repeat(256)],
])("cleans the message %j", (message, clean) => {
  expect(cleanMessage(message)).toBe(clean);
});

it.each([
  [140, 100],
  [-3, 0],
  [33.4, 33],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined],
])("reads the progress %d as %s", (progress, clean) => {
  const result = after(entryIn("Installing"), { state: "progress", progress });
  expect(result === "final" ? result : result.entry.reported?.progress).toBe(clean);
});

describe("a reported label", () => {
  const labels = (report: Record<string, string>, entry = entryIn("Installing"), ttlSeconds?: number) => {
    const more = ttlSeconds === undefined ? {} : { ttlSeconds };
    const result = after(entry, { state: "progress", labels: report }, more);
    if (result === "final") throw new Error("final");
    return result;
  };

  it("counts if the Profile permits its value", () => {
    expect(labels({ os: "installed" }).entry.labels).toEqual({ os: { value: "installed" } });
  });

  it.each([
    ["another value", { os: "other" }],
    ["another name", { rack: "7" }],
    ["a name of every object", JSON.parse('{"__proto__": "installed", "constructor": "installed"}')],
    ["an identity", { mac: "x" }],
  ])("does not count with %s", (_what, report) => {
    expect(labels(report).entry.labels).toBeUndefined();
  });

  it("is renewed in the second half of its time", () => {
    const { entry } = labels({ os: "installed" }, entryIn("Installing"), 100);
    expect(entry.labels).toEqual({ os: { value: "installed", untilMs: nowMs + 100_000 } });
    expect(labels({ os: "installed" }, entry, 100).isChanged).toBe(false);
    const old = { ...entry, labels: { os: { value: "installed", untilMs: nowMs + 40_000 } } };
    expect(labels({ os: "installed" }, old, 100).isChanged).toBe(true);
  });
});
