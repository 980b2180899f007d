/** The read model of a ledger: what it reads, what it refuses to read, and its time. */

import { describe, expect, it } from "vitest";
import { KnownLedger } from "../../../src/installs/ledger/known-ledger.ts";
import {
  decodeEntry,
  encodeEntry,
  encodeMeta,
  endedPath,
  ledgerAddress,
} from "../../../src/installs/ledger/ledger-documents.ts";
import { type Labels, labelsFromQuery } from "../../../src/model/labels/labels.ts";
import type { LedgerEntry } from "../../../src/model/permits/permit.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { macA, macB, uuidA } from "./desk.ts";

const meta = ["/davit/ledger/meta", encodeMeta({ id: "0a1b2c3d", beganAtMs: 5 })] as const;
const entry: LedgerEntry = {
  id: "0123456789abcdef",
  identities: [uuidA, macA],
  state: "Installed",
  grant: { key: "group/racks/web", generation: 3 },
  spent: { "group/racks/web": 3 },
  claimedAtMs: 1_000,
  changedAtMs: 2_000,
  timeoutSeconds: 60,
  group: "racks/web",
  profile: "racks/flatcar",
  addresses: ["10.0.0.1"],
  reported: { state: "installed", progress: 100, message: "done", atMs: 2_000 },
  labels: { os: { value: "installed" }, seen: { value: "yes", untilMs: 10_000 } },
};
const entryPath = `/davit/ledger/machines/${entry.id}`;

/** The labels of a request with these identities. */
function requestOf(...identities: readonly string[]): Labels {
  return labelsFromQuery(identities.map((each) => each.replace("/", "=")).join("&"));
}

function knownOf(documents: Iterable<readonly [string, string]>, clock = new FakeClock(3_000)): KnownLedger {
  const known = new KnownLedger({ clock });
  known.replaced(documents);
  return known;
}

it("reads back an entry as it was written, without members that it does not know", () => {
  expect(decodeEntry(encodeEntry(entry))).toEqual(entry);
  expect(decodeEntry(JSON.stringify({ ...entry, later: 1 }))).toEqual(entry);
});

it.each([
  ["no JSON", "{"],
  ["a list", "[]"],
  ["another state", { ...entry, state: "Wiped" }],
  ["no spent generations", { ...entry, spent: undefined }],
  ["a generation that is a text", { ...entry, spent: { "group/racks/web": "3" } }],
  ["a generation that is no whole number", { ...entry, spent: { "group/racks/web": 2.5 } }],
  ["a time before 1970", { ...entry, claimedAtMs: -1 }],
  ["identities that are no texts", { ...entry, identities: [1] }],
  ["a grant without a generation", { ...entry, grant: { key: "group/racks/web" } }],
  ["labels that are no labels", { ...entry, labels: { os: "installed" } }],
])("refuses an entry with %s, and names no ledger until it is readable", (_what, value) => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const known = knownOf([meta, [entryPath, encodeEntry(entry)]]);
  expect(known.id).toBe("0a1b2c3d");
  known.changed([{ path: entryPath, text }]);
  expect(known.id).toBeUndefined();
  // What it knew stays: it is what is spent.
  expect(known.entriesOf([macA])).toEqual([entry]);
  known.changed([{ path: entryPath, text: encodeEntry(entry) }]);
  expect(known.id).toBe("0a1b2c3d");
});

it.each([
  ["/davit/ledger/meta", JSON.stringify({ format: 2, id: "0a1b2c3d", beganAtMs: 5 })],
  ["/davit/ledger/meta", JSON.stringify({ format: 1, id: "short", beganAtMs: 5 })],
  ["/davit/ledger/later/one", "{}"],
  ["/davit/ledger/ended/group/racks", '{"generation":1}'],
  ["/davit/ledger/ended/group/racks/web", '{"generation":"1"}'],
  ["/davit/ledger/adopted/racks/web", "{}"],
  ["/davit/ledger/clock", "{}"],
  ["/davit/profiles/racks/web", "{}"],
  [`${entryPath}0`, encodeEntry(entry)],
])("names no ledger while %s is %s", (path, text) => {
  const known = knownOf([meta, [path, text]]);
  expect(known.id).toBeUndefined();
  expect(known.unreadable).toBe(1);
});

it("names no ledger without its documents", () => {
  expect(knownOf([]).id).toBeUndefined();
  const known = knownOf([meta]);
  known.changed([{ path: meta[0], text: undefined }]);
  expect(known.id).toBeUndefined();
});

it("finds an entry by each of its identities, and two entries by those of both", () => {
  const other = { ...entry, id: "fedcba9876543210", identities: [macB] };
  const known = knownOf([
    meta,
    [entryPath, encodeEntry(entry)],
    [`/davit/ledger/machines/${other.id}`, encodeEntry(other)],
  ]);
  expect(known.entriesOf([uuidA])).toEqual([entry]);
  expect(known.entriesOf([uuidA, macA])).toEqual([entry]);
  expect(known.entriesOf([macA, macB])).toEqual([entry, other]);
  known.changed([{ path: entryPath, text: undefined }]);
  expect(known.entriesOf([macA, macB])).toEqual([other]);
});

it("reads grants and Groups of any name", () => {
  const path = endedPath("group/racks/..");
  expect(ledgerAddress(path)).toEqual({ kind: "ended", name: "group/racks/.." });
  const known = knownOf([meta, [path, '{"generation":4}'], ["/davit/ledger/adopted/racks/web", '{"untilMs":9000}']]);
  expect(known.endedGeneration("group/racks/..")).toBe(4);
  expect(known.endedGeneration("group/racks/web")).toBe(0);
  expect(known.adoptedUntilMs("racks/web")).toBe(9_000);
});

describe("the time of a ledger", () => {
  it("is never before a time in its documents", () => {
    expect(knownOf([meta]).nowMs).toBe(3_000);
    expect(knownOf([meta, ["/davit/ledger/clock", '{"highestMs":70000}']]).nowMs).toBe(70_000);
    expect(knownOf([meta, [entryPath, encodeEntry({ ...entry, changedAtMs: 8_000 })]]).nowMs).toBe(8_000);
  });

  it("goes on when the clock is set back, and never goes back", async () => {
    const clock = new FakeClock(100_000);
    const known = knownOf([meta], clock);
    expect(known.nowMs).toBe(100_000);
    clock.stepWallClock(-90_000);
    await clock.advance(5_000);
    expect(known.nowMs).toBe(105_000);
    known.replaced([]);
    expect(known.nowMs).toBe(105_000);
  });
});

describe("reported labels", () => {
  it("count until their time is over", async () => {
    const clock = new FakeClock(3_000);
    const known = knownOf([meta, [entryPath, encodeEntry(entry)]], clock);
    expect(known.reportedLabels(requestOf(macA))).toEqual([
      ["os", "installed"],
      ["seen", "yes"],
    ]);
    await clock.advance(7_000);
    expect(known.reportedLabels(requestOf(uuidA, macA))).toEqual([["os", "installed"]]);
    expect(known.reportedLabels(requestOf(macB))).toEqual([]);
  });

  it("do not count if the machine is not clear", () => {
    const other = { ...entry, id: "fedcba9876543210", identities: [macB] };
    const known = knownOf([
      meta,
      [entryPath, encodeEntry(entry)],
      [`/davit/ledger/machines/${other.id}`, encodeEntry(other)],
    ]);
    for (const listed of [undefined, [uuidA, macB]])
      expect(known.reportedLabels(requestOf(uuidA, macB), listed)).toEqual([]);
  });

  it("count for a request of which the entry has each identity, or whose Machine lists the entry's", () => {
    const macOnly = { ...entry, identities: [macA], labels: { os: { value: "installed" } } };
    const known = knownOf([meta, [entryPath, encodeEntry(macOnly)]]);
    const labels = [["os", "installed"]];
    expect(known.reportedLabels(requestOf(macA))).toEqual(labels);
    expect(known.reportedLabels(requestOf(uuidA, macA))).toEqual([]);
    expect(known.reportedLabels(requestOf(uuidA, macA), [macA])).toEqual(labels);
    expect(known.reportedLabels(requestOf(uuidA, macA), [uuidA, macA])).toEqual(labels);
    // The Machine lists the uuid alone, so the MAC address may be another machine's.
    expect(known.reportedLabels(requestOf(uuidA, macA), [uuidA])).toEqual([]);
  });
});

it("notifies of the entries that changed, and of wider changes", () => {
  const known = knownOf([meta]);
  const heard: unknown[] = [];
  const end = known.onChange((entries) => heard.push(entries));
  known.changed([{ path: entryPath, text: encodeEntry(entry) }]);
  known.changed([{ path: `/davit/ledger/identities/${macA}`, text: entry.id }]);
  known.changed([{ path: entryPath, text: undefined }]);
  known.changed([{ path: "/davit/ledger/adopted/racks/web", text: '{"untilMs":9000}' }]);
  known.replaced([meta]);
  end();
  known.replaced([meta]);
  expect(heard).toEqual([[entry], [entry], undefined, undefined]);
});
