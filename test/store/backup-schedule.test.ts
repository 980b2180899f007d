/** Backups on a schedule: when one is taken, what is kept, and what neither a disk nor a clock may do to them. */

import { afterEach, describe, expect, it } from "vitest";
import type { Files } from "../../src/lib/files/files.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { readBackup } from "../../src/store/backup/backup.ts";
import { BackupSchedule, type BackupScheduleOptions } from "../../src/store/backup/schedule.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { LeadershipListener } from "../../src/store/leadership.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { FaultFiles, type FaultPlan, seededPick } from "../helpers/fault-files.ts";
import { memoryFiles, openStore, silentLog } from "../helpers/test-store.ts";

const directory = "/no/such/backups";
const hourMs = 3_600_000;
const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function storeWith(value: string, seed = 7): Promise<Store> {
  const pick = seededPick(seed);
  const store = await openStore(memoryFiles(), {
    random: (bytes) => Uint8Array.from({ length: bytes }, () => pick(256)),
  });
  await store.submit({ kind: "set", path: storePath("/a"), value });
  ends.push(() => store.stop());
  return store;
}

type Given = Partial<BackupScheduleOptions> & Pick<BackupScheduleOptions, "store" | "files">;

function start(options: Given) {
  const clock = options.clock instanceof FakeClock ? options.clock : new FakeClock();
  const pick = seededPick(3);
  const schedule = new BackupSchedule({
    directory,
    everyMs: hourMs,
    keep: 3,
    log: silentLog,
    random: (bytes) => Uint8Array.from({ length: bytes }, () => pick(256)),
    ...options,
    clock,
  });
  schedule.start();
  const stop = async () => {
    const stopped = schedule.stop();
    await clock.advance(2_000);
    await stopped;
  };
  ends.push(stop);
  return { schedule, clock, stop };
}

/** Starts a schedule, and waits until it has nothing to do for now. */
async function begin(options: Given) {
  const begun = start(options);
  await written(begun.clock);
  return begun;
}

/** Lets time pass; whenever the schedule wakes, until it sleeps again. */
async function written(clock: FakeClock, durationMs = 0): Promise<void> {
  for (let leftMs = durationMs, stepMs = 0; ; leftMs -= stepMs) {
    await expect.poll(() => clock.sleeping, { interval: 1, timeout: 20_000 }).toBeGreaterThan(0);
    if (leftMs === 0) return;
    stepMs = Math.min(leftMs, clock.nextWakeMs ?? leftMs);
    await clock.advance(stepMs);
  }
}

/** Names without the cluster, which is the same, and without the time of day. */
const shortNames = (names: readonly string[]) =>
  names.map((name) => name.replace(/^davit-[0-9a-f]+-0*(\d+)-.*$/, "$1"));
const listed = async (files: Files) => shortNames(await files.list(directory));

async function metricsOf(schedule: BackupSchedule): Promise<Readonly<Record<string, number>>> {
  const metrics = createMetrics("1");
  schedule.measure(metrics);
  const lines = [...(await metrics.text()).matchAll(/^davit_backup_(\w+) (\S+)$/gm)];
  return Object.fromEntries(lines.map(([, name, value]) => [name, Number(value)]));
}

/** The same store as one of several members, which may lead or not. */
function memberOf(store: Store) {
  const listeners: LeadershipListener[] = [];
  const member = {
    get identity() {
      return store.identity;
    },
    get bytes() {
      return store.bytes;
    },
    backup: () => store.backup(),
    onLeadership: (listener: LeadershipListener) => void listeners.push(listener),
  };
  const lead = (isLeading: boolean) => {
    for (const listener of listeners) listener(isLeading);
  };
  return { member, lead };
}

async function expectWhole(files: Files, value: string): Promise<void> {
  for (const name of await files.list(directory)) {
    const { tree } = await readBackup(() => files.readPieces(`${directory}/${name}`), name);
    expect([...tree.walk(storePath("/a"))][0]?.value).toBe(value);
  }
}

const value = "x".repeat(500);

describe("a schedule", () => {
  it("knows the size of the newest backup after a restart, and goes on if the disk does not say it", async () => {
    const [store, files] = [await storeWith(value), memoryFiles()];
    const first = await begin({ store, files });
    const { bytes } = await metricsOf(first.schedule);
    expect(bytes).toBeGreaterThan(value.length);
    await first.stop();
    const second = await begin({ store, files, clock: first.clock });
    expect(await metricsOf(second.schedule)).toMatchObject({ bytes });
    await second.stop();
    const failing = files.reopened({ failAt: 1, failOnly: "sizeOf" });
    const third = await begin({ store, files: failing, clock: first.clock });
    expect(await metricsOf(third.schedule)).toMatchObject({ bytes: 0, failures_total: 0 });
  });

  it("takes one at once where there is none, then one for each interval, and keeps the newest", async () => {
    const [store, files] = [await storeWith(value), memoryFiles()];
    const { schedule, clock } = await begin({ store, files });
    expect(await listed(files)).toEqual(["1"]);
    await written(clock, hourMs - 1);
    expect(await metricsOf(schedule)).toMatchObject({ age_seconds: 3_599.999, interval_seconds: 3_600 });
    expect(await listed(files)).toEqual(["1"]);
    await written(clock, 1);
    expect(await listed(files)).toEqual(["1", "2"]);
    for (let hour = 0; hour < 3; hour++) await written(clock, hourMs);
    expect(await listed(files)).toEqual(["3", "4", "5"]);
    expect(await metricsOf(schedule)).toMatchObject({ age_seconds: 0, failures_total: 0 });
    expect((await metricsOf(schedule)).bytes).toBeGreaterThan(500);
    expect(schedule.attention).toEqual([]);
    await expectWhole(files, value);
  });

  it("goes by the age of the newest file, not by the process", async () => {
    const [store, files] = [await storeWith(value), memoryFiles()];
    const first = await begin({ store, files });
    await written(first.clock, 40 * 60_000);
    await first.stop();
    const again = await begin({ store, files, clock: new FakeClock(first.clock.nowMs()) });
    expect(await listed(files)).toEqual(["1"]);
    expect((await metricsOf(again.schedule)).age_seconds).toBeCloseTo(2_402, 0);
    await written(again.clock, 19 * 60_000);
    expect(await listed(files)).toEqual(["1"]);
    await written(again.clock, 60_000);
    expect(await listed(files)).toEqual(["1", "2"]);
  });

  it.each([
    { name: "a year back", stepMs: -365 * 24 * hourMs },
    { name: "a year forth", stepMs: 365 * 24 * hourMs },
  ])("does not mind a clock that is set $name, neither then nor after a restart", async ({ stepMs }) => {
    const [store, files] = [await storeWith(value), memoryFiles()];
    const { clock, stop } = await begin({ store, files });
    clock.stepWallClock(stepMs);
    await written(clock, hourMs - 1);
    expect(await listed(files)).toEqual(["1"]);
    await written(clock, 1);
    expect(await listed(files)).toEqual(["1", "2"]);
    clock.stepWallClock(-stepMs);
    await stop();
    const again = await begin({ store, files, clock: new FakeClock(clock.nowMs()) });
    // Of one that is of the future, or very old, nobody knows the age: another is taken, and none is lost for it.
    expect(await listed(files)).toEqual(["1", "2", "3"]);
    await written(again.clock, hourMs - 1);
    expect(await listed(files)).toEqual(["1", "2", "3"]);
    await written(again.clock, 1);
    expect(await listed(files)).toEqual(["2", "3", "4"]);
  });

  it("removes nothing but its own: not what others put there, and no backup of another store", async () => {
    const files = memoryFiles();
    const lost = await begin({ store: await storeWith("of the lost store"), files, keep: 1 });
    await lost.stop();
    const [kept = ""] = await files.list(directory);
    const others = [
      kept,
      `${kept}.mine`,
      "davit.backup",
      "notes",
      kept.replace("davit-", "davit-x"),
      kept.replace(/T\d{6}/, "T999999"),
      `${kept.replace(/-0*1-/, "-00000002-")}.0a1b2c3d.tmp`,
    ];
    for (const name of others.slice(1)) files.damage(`${directory}/${name}`, () => Buffer.from("kept"));
    const begun = await begin({ store: await storeWith(value, 8), files, keep: 1 });
    for (let hour = 0; hour < 3; hour++) await written(begun.clock, hourMs);
    const left = await files.list(directory);
    expect(left).toEqual(expect.arrayContaining(others));
    expect(left).toHaveLength(others.length + 1);
  });

  it("removes what a crash left of its own, and only that", async () => {
    const [store, files] = [await storeWith(value), memoryFiles()];
    const name = `davit-${store.identity.clusterId}-00000007-20250101T000000Z.backup`;
    for (const ending of [".0a1b2c3d.tmp", ".0a1b2c3d"])
      files.damage(`${directory}/${name}${ending}`, () => Buffer.from("half"));
    files.damage(`${directory}/${name}.old`, () => Buffer.from("kept"));
    await begin({ store, files });
    expect(await files.list(directory)).toEqual([expect.stringMatching(/-00000001-.*\.backup$/), `${name}.old`]);
  });

  it("takes one soon when the newest was taken away", async () => {
    const [store, files] = [await storeWith(value), memoryFiles()];
    const { clock } = await begin({ store, files, everyMs: 24 * hourMs });
    const [name = ""] = await files.list(directory);
    await files.remove(`${directory}/${name}`);
    await written(clock, 10 * 60_000);
    expect(await listed(files)).toEqual(["1"]);
  });

  it("keeps fewer once --limit backup-keep says so", async () => {
    const [store, files] = [await storeWith(value), memoryFiles()];
    const { clock, stop } = await begin({ store, files });
    for (let hour = 0; hour < 2; hour++) await written(clock, hourMs);
    await stop();
    await begin({ store, files, keep: 1, clock: new FakeClock(clock.nowMs()) });
    expect(await listed(files)).toEqual(["3"]);
  });
});

describe("a backup that fails", () => {
  const trouble: readonly { readonly name: string; readonly plan: FaultPlan; readonly why: string }[] = [
    { name: "a full disk", plan: { failOnly: "append", code: "ENOSPC" }, why: "no space is left on the disk" },
    {
      name: "a disk that cannot sync",
      plan: { failOnly: "sync", code: "EIO" },
      why: "the disk fails to read or write",
    },
    {
      name: "a directory that cannot",
      plan: { failOnly: "syncDirectory", code: "EINVAL" },
      why: "the disk answers EINVAL",
    },
    { name: "a name that cannot be given", plan: { failOnly: "rename", code: "EACCES" }, why: "permission is denied" },
    {
      name: "a directory that cannot be made",
      plan: { failOnly: "makeDirectory", code: "EROFS" },
      why: "the file system is read-only",
    },
    { name: "one that cannot be read", plan: { failOnly: "list", code: "EACCES" }, why: "permission is denied" },
  ];

  it.each(trouble)("by $name leaves the last good ones, is counted, and tried again", async ({ plan, why }) => {
    const [store, good] = [await storeWith(value), memoryFiles()];
    const first = await begin({ store, files: good, keep: 2 });
    await written(first.clock, hourMs);
    await first.stop();
    const files = good.reopened({ ...plan, failAt: 1, failFor: 4 });
    const clock = new FakeClock(first.clock.nowMs() + hourMs);
    const { schedule } = await begin({ store, files, keep: 2, clock });
    const left = async () => shortNames(await files.reopened().list(directory));
    expect(await left()).toEqual(["1", "2"]);
    expect(schedule.attention).toEqual([`backup: Writing to "${directory}": ${why}`]);
    expect((await metricsOf(schedule)).failures_total).toBe(1);
    await written(clock, 15_000);
    expect(await left()).toEqual(["1", "2"]);
    expect((await metricsOf(schedule)).failures_total).toBeGreaterThan(0);
    await written(clock, hourMs / 2);
    expect(await left()).toEqual(["2", "3"]);
    expect(schedule.attention).toEqual([]);
    await expectWhole(files.reopened(), value);
  });

  it("is counted when those that are too many cannot be removed, and nothing is lost", async () => {
    const [store, files] = [await storeWith(value), new FaultFiles(seededPick(1), { failOnly: "remove", failAt: 1 })];
    const { schedule, clock } = await begin({ store, files, keep: 1 });
    await written(clock, hourMs);
    expect(await listed(files)).toEqual(["1", "2"]);
    expect(schedule.attention).toHaveLength(1);
    await written(clock, 10_000);
    expect(await listed(files)).toEqual(["2"]);
    expect(schedule.attention).toEqual([]);
  });

  it("loses no good backup to a power loss at any call, and the next start goes on", async () => {
    const store = await storeWith(value);
    const before = memoryFiles();
    const first = await begin({ store, files: before, keep: 2 });
    await written(first.clock, hourMs);
    await first.stop();
    let crashAt = 1;
    for (let isOver = false; !isOver; crashAt++) {
      const files = before.reopened({ crashAt, garbles: true });
      const clock = new FakeClock(first.clock.nowMs() + hourMs);
      const { stop } = await begin({ store, files, keep: 2, clock });
      await stop();
      isOver = files.faults === 0;
      const after = files.afterCrash();
      const again = await begin({ store, files: after, keep: 2, clock: new FakeClock(clock.nowMs() + hourMs) });
      expect((await listed(after)).length).toBe(2);
      await expectWhole(after, value);
      await again.stop();
    }
    expect(crashAt).toBeGreaterThan(10);
  });

  it("that never ends, on a disk that does not answer, ends with the process", async () => {
    const [store, files] = [await storeWith(value), memoryFiles()];
    files.makeDirectory = () => new Promise(() => {});
    await start({ store, files }).stop();
    expect(await files.list(directory)).toEqual([]);
  });
});

it("the first backup waits until the store has a key, and so is not empty", async () => {
  const [store, files, clock] = [await openStore(memoryFiles()), memoryFiles(), new FakeClock()];
  ends.push(() => store.stop());
  start({ store, files, clock });
  await written(clock, 0.1 * hourMs);
  expect(await files.list(directory).catch(() => [])).toEqual([]);
  await store.submit({ kind: "set", path: storePath("/a"), value: "v" });
  await written(clock, 0.1 * hourMs);
  expect(await listed(files)).toEqual(["1"]);
  await expectWhole(files, "v");
});

describe("the backups of several members", () => {
  it("are taken by the leader alone, and go on with the next leader without a gap or a double", async () => {
    const files = memoryFiles();
    const store = await storeWith("v");
    const [first, second] = [memberOf(store), memberOf(store)];
    const clock = new FakeClock();
    const schedules = [first, second].map(({ member }) => start({ store: member, files, clock }).schedule);
    expect(await files.list(directory).catch(() => [])).toEqual([]);
    first.lead(true);
    await written(clock, 1.5 * hourMs);
    expect(await listed(files)).toEqual(["1", "2"]);
    first.lead(false);
    second.lead(true);
    await written(clock, 0.4 * hourMs);
    expect(await listed(files)).toEqual(["1", "2"]);
    await written(clock, 0.2 * hourMs);
    expect(await listed(files)).toEqual(["1", "2", "3"]);
    second.lead(false);
    await clock.advance(3 * hourMs);
    expect(await listed(files)).toEqual(["1", "2", "3"]);
    // It knows backup 2 as its last one; the newest one is by the other member.
    first.lead(true);
    await written(clock);
    expect(await listed(files)).toEqual(["2", "3", "4"]);
    const ages = await Promise.all(schedules.map(async (schedule) => (await metricsOf(schedule)).age_seconds));
    expect(ages).toEqual([0, 0]);
    await expectWhole(files, "v");
  });
});
