/** The history with its journal, on a disk that fails on purpose. */

import { crc32 } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Files } from "../../../src/lib/files/files.ts";
import { createLog } from "../../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../../src/lib/metrics/metrics.ts";
import { History } from "../../../src/records/history/history.ts";
import type { MachineHistory } from "../../../src/records/history/history-view.ts";
import { Journal, type JournalLimits } from "../../../src/records/history/journal.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { FaultFiles, type FaultPlan } from "../../helpers/fault-files.ts";
import { beganAtMs, handed, seen } from "./seen-requests.ts";

const directory = "/data/history";
const mac = (number: number) => `mac=52:54:00:00:00:${String(number).padStart(2, "0")}`;

function diskOf(plan: FaultPlan = {}): FaultFiles {
  return new FaultFiles(() => 0, plan);
}

function start(files: Files, given: { limits?: Partial<JournalLimits>; startMs?: number } = {}) {
  const clock = new FakeClock(given.startMs ?? beganAtMs);
  const metrics = createMetrics("1");
  const logged: string[] = [];
  const destination = { write: (line: string) => void logged.push(String(JSON.parse(line).msg)) };
  const log = createLog({ level: "info", format: "json", destination });
  const { limits = {} } = given;
  const journal = new Journal({ files, directory, clock, log, metrics, limits });
  const history = new History({ clock, metrics, journal });
  const record = (number: number, more: Parameters<typeof seen>[1] = {}) =>
    history.record(seen("ipxe", { startedMs: clock.monotonicMs(), query: mac(number), ...more }));
  const machines = async () => (await history.current()).recent(50);
  const isWritable = async () => /^davit_boot_history_writable (\d)$/m.exec(await metrics.text())?.[1];
  return { clock, history, record, machines, logged, isWritable };
}

/** Lets the background task take the requests over, and the journal write them. */
async function written({ clock }: ReturnType<typeof start>): Promise<void> {
  for (let turn = 0; turn < 60; turn++) {
    await clock.advance(250);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function macsOf(machines: readonly MachineHistory[]): readonly string[] {
  return machines.map(({ labels }) => `mac=${labels.get("mac")}`).toSorted();
}

const segmentsOf = async (files: Files) => (await files.list(directory)).filter((name) => /^\d/.test(name));

describe("a restart", () => {
  it("after a stop shows the same history, also of what was answered just before it", async () => {
    const disk = diskOf();
    const before = start(disk);
    before.record(1, { group: "lab/web", path: undefined, boot: 0xfedcba98 });
    before.history.record(seen("assets", { startedMs: 5, path: "/assets/linux", ofBytes: 900, isCut: true }));
    for (const startedMs of [10, 20, 30])
      before.record(2, { startedMs, status: 503, refusal: "noGroup", address: "10.0.0.9" });
    before.record(3, { isHead: true, ofBytes: undefined });
    const shown = await before.machines();
    await before.history.stop();
    const after = start(disk, { startMs: beganAtMs + 60_000 });
    expect(await after.machines()).toEqual(shown);
    expect(shown.find(({ labels }) => labels.get("mac") === "52:54:00:00:00:02")?.requests).toMatchObject([
      { status: 503, refusal: "noGroup", times: 3 },
    ]);
  });

  it("after a kill shows all that a batch has, and cuts a line of which a part was written", async () => {
    const disk = diskOf();
    const before = start(disk);
    before.record(1);
    before.record(2);
    await written(before);
    const [segment = ""] = await segmentsOf(disk);
    disk.damage(`${directory}/${segment}`, (content) => content.subarray(0, content.length - 7));
    const after = start(disk);
    expect(macsOf(await after.machines())).toEqual([mac(1)]);
    after.record(3);
    await after.history.stop();
    const last = start(disk);
    expect(macsOf(await last.machines())).toEqual([mac(1), mac(3)]);
    expect([...after.logged, ...last.logged]).toEqual([]);
  });

  it("shows who answered each request", async () => {
    const disk = diskOf();
    const before = start(disk);
    before.record(1);
    await before.machines();
    before.history.add(handed("ignition", { startedMs: 1 }, mac(1), "pod-1"));
    await before.history.stop();
    const [machine] = await start(disk).machines();
    expect(machine?.requests.map(({ via }) => via)).toEqual([undefined, "pod-1"]);
  });

  it("reads the lines of an earlier version, whose arrays are shorter", async () => {
    const disk = diskOf();
    const before = start(disk);
    before.record(1, { group: "lab/web" });
    const shown = await before.machines();
    await before.history.stop();
    const [segment = ""] = await segmentsOf(disk);
    const json = `[${beganAtMs},1,"10.0.0.7","ipxe",null,0,200,null,"lab/web",100,100,{"mac":"52:54:00:00:00:01"}]`;
    const line = `${crc32(json).toString(16).padStart(8, "0")} ${json}`;
    disk.damage(`${directory}/${segment}`, () => Buffer.from(`davit history 1\n${line}\n`));
    expect(await start(disk).machines()).toEqual(shown);
  });

  it("of a clock that was set back shows no request after now", async () => {
    const disk = diskOf();
    const before = start(disk);
    before.record(1);
    await before.history.stop();
    const after = start(disk, { startMs: beganAtMs - 3_600_000 });
    expect((await after.machines())[0]?.lastSeenAtMs).toBe(beganAtMs - 3_600_000 + 1);
  });
});

describe("the files of the journal", () => {
  it("have no byte that is not printable ASCII, whatever a machine sends, and no other part of its query", async () => {
    const disk = diskOf();
    const before = start(disk);
    const hostile = "%1b]0;x%07%e2%80%ae%0a00000000%20[]%0a";
    before.record(1, { query: `${mac(1)}&hostname=${hostile}&token=secret` });
    const shown = await before.machines();
    await before.history.stop();
    const [segment = ""] = await segmentsOf(disk);
    const text = disk.contentOf(`${directory}/${segment}`).toString("latin1");
    expect(text).toMatch(/^[\n\x20-\x7e]+$/);
    expect(text).not.toContain("secret");
    const after = start(disk);
    expect(await after.machines()).toEqual(shown);
    expect(after.logged).toEqual([]);
  });

  it("take no more than the limit, and hold the newest requests", async () => {
    const disk = diskOf();
    const limits = { maxBytes: 4_000, maxSegmentBytes: 1_000 };
    const before = start(disk, { limits });
    let most = 0;
    for (let number = 10; number < 90; number++) {
      before.record(number);
      await before.machines();
      await written(before);
      most = Math.max(most, disk.usedBytes);
    }
    await before.history.stop();
    expect(most).toBeGreaterThan(3_000);
    expect(most).toBeLessThanOrEqual(4_000);
    const found = macsOf(await start(disk, { limits }).machines());
    expect(found.at(-1)).toBe(mac(89));
    expect(found.length).toBeGreaterThan(10);
    expect(found.length).toBeLessThan(40);
  });

  it("that are of another form are set aside, and the others are shown", async () => {
    const disk = diskOf();
    for (const number of [1, 2]) {
      const run = start(disk, { limits: { maxSegmentBytes: 10 } });
      run.record(number);
      await run.history.stop();
    }
    const [first = ""] = await segmentsOf(disk);
    disk.damage(`${directory}/${first}`, () => Buffer.from("davit history 9\n{}\n"));
    const after = start(disk);
    expect(macsOf(await after.machines())).toEqual([mac(2)]);
    expect(after.logged).toEqual([
      "history: a segment of the journal cannot be read, set aside: it is not a segment of this version of davit",
    ]);
    expect(await disk.list(directory)).toContain("unreadable.history");
    const last = start(disk);
    expect(macsOf(await last.machines())).toEqual([mac(2)]);
    expect(last.logged).toEqual([]);
  });

  it("lose a damaged line, and no other one", async () => {
    const disk = diskOf();
    const before = start(disk);
    for (const number of [1, 2, 3]) before.record(number);
    await before.history.stop();
    const [segment = ""] = await segmentsOf(disk);
    const path = `${directory}/${segment}`;
    disk.damage(path, (content) => Buffer.from(content.toString().replace("52:54:00:00:00:02", "52:54:00:00:00:04")));
    const after = start(disk);
    expect(macsOf(await after.machines())).toEqual([mac(1), mac(3)]);
    expect(after.logged).toEqual(["history: damaged lines of the journal are left out"]);
  });
});

describe("a disk that fails", () => {
  it.each(["append", "open", "close", "makeDirectory"] as const)(
    "at %s is logged once, shown by the metric, and what waited is written once when it returns",
    async (failOnly) => {
      const disk = diskOf({ failAt: 1, failFor: 3, failOnly, code: "ENOSPC" });
      const run = start(disk);
      run.record(1);
      await run.machines();
      await run.clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(await run.isWritable()).toBe("0");
      run.record(2);
      expect(macsOf(await run.machines())).toEqual([mac(1), mac(2)]);
      for (let turn = 0; turn < 5; turn++) await written(run);
      expect(await run.isWritable()).toBe("1");
      expect(run.logged).toEqual([
        expect.stringContaining("not written, the history is only in memory: no space is left on the disk"),
        "history: the journal is written again",
      ]);
      await run.history.stop();
      const after = await start(disk).machines();
      expect(macsOf(after)).toEqual([mac(1), mac(2)]);
      expect(after.flatMap(({ requests }) => requests.map(({ times }) => times))).toEqual([1, 1]);
    },
  );

  it("in the middle of a segment that then has no room leaves no request twice", async () => {
    // Of the append that fails, the disk has all bytes.
    const disk = new FaultFiles((count) => count - 1, { failAt: 2, failOnly: "append", code: "ENOSPC" });
    const run = start(disk, { limits: { maxSegmentBytes: 500 } });
    for (const number of [1, 2]) {
      run.record(number);
      await run.machines();
      await run.clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await run.isWritable()).toBe("0");
    for (const number of [3, 4, 5]) run.record(number);
    await run.history.stop();
    const after = await start(disk).machines();
    expect(after.map(({ requests }) => requests.length)).toEqual([1, 1, 1, 1, 1]);
  });

  it("for good holds up neither recording nor a stop, and takes a limited memory", async () => {
    const disk = diskOf({ failAt: 1, failFor: Number.POSITIVE_INFINITY, failOnly: "append", code: "EIO" });
    const run = start(disk, { limits: { maxWaitingBytes: 1_000 } });
    for (let number = 10; number < 60; number++) run.record(number);
    expect(await run.machines()).toHaveLength(50);
    await run.history.stop();
    expect(run.logged).toHaveLength(1);
  });

  it("at its first list does not stop the history", async () => {
    const run = start(diskOf({ failAt: 1, failOnly: "list", code: "EACCES" }));
    run.record(1);
    expect(macsOf(await run.machines())).toEqual([mac(1)]);
    expect(run.logged).toEqual([expect.stringContaining("permission is denied")]);
  });
});
