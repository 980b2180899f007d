/** A log whose disk is full, or fails, while it runs: what is refused, what goes on, and how it ends without a restart. */

import { describe, expect, it } from "vitest";
import type { LogStatus } from "../../../src/store/core/log-port.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { FaultFiles, type FaultPlan, seededPick } from "../../helpers/fault-files.ts";
import { dataDirectory, memoryFiles, openLog, silentLog } from "../../helpers/test-store.ts";

const bytesOf = (text: string) => Buffer.from(text);
const segmentPath = `${dataDirectory}/0000000000000001.log`;

/** Opens a log and collects what it delivers, and what it says at warn and error. */
async function started(files: FaultFiles, options: Parameters<typeof openLog>[1] = {}) {
  const clock = new FakeClock();
  const said: string[] = [];
  const say = (_: object, message: string) => said.push(message);
  const log = await openLog(files, { clock, log: { ...silentLog, warn: say, error: say }, ...options });
  const delivered: string[] = [];
  await log.onCommitted((sequence, bytes) => delivered.push(`${sequence}:${Buffer.from(bytes)}`));
  return { log, delivered, clock, said };
}

async function textsIn(files: FaultFiles): Promise<readonly string[]> {
  const { log, delivered } = await started(files);
  const texts = delivered.map((each) => each.replace(/^\d+:/, ""));
  await log.stop();
  return texts;
}

const isFailed = (status: LogStatus) => status === "readOnly" || status === "full";

describe("a sync that fails", () => {
  /** Calls of one write: append, sync; those of the start come before. */
  const plan = (failFor: number): FaultPlan => ({ failOnly: "sync", failAt: 6, failFor });

  it("once: what was being written is written anew from memory, in a new segment, and answered", async () => {
    const files = new FaultFiles(seededPick(3), plan(1));
    const { log, delivered, said } = await started(files);
    await log.propose(bytesOf("a"));
    await Promise.all([log.propose(bytesOf("b")), log.propose(bytesOf("c"))]);
    await log.propose(bytesOf("d"));
    expect([files.faults, log.status]).toEqual([1, "writable"]);
    expect(delivered).toEqual(["2:a", "3:b", "4:c", "5:d"]);
    expect(said).toEqual(["a sync of the log failed; what was being written goes into a new segment"]);
    expect((await files.list(dataDirectory)).filter((name) => name.endsWith(".log"))).toHaveLength(2);
    for (let seed = 0; seed < 20; seed++) expect(await textsIn(files.afterCrash())).toEqual(["a", "b", "c", "d"]);
    await log.stop();
  });

  it("and goes on failing: error, then writable again by itself, and what was refused never comes back", async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const files = new FaultFiles(seededPick(seed), { ...plan(4), garbles: true });
      const { log, delivered, clock } = await started(files);
      await log.propose(bytesOf("a"));
      const refused = await Promise.allSettled([log.propose(bytesOf("b")), log.propose(bytesOf("c"))]);
      for (const proposal of refused) expect(proposal).toMatchObject({ reason: { reason: "readOnly" } });
      expect(log.status).toBe("readOnly");
      await expect(log.propose(bytesOf("d"))).rejects.toMatchObject({ reason: "readOnly" });
      // Before it recovers a crash may show what was refused, or not; what was answered is there.
      expect((await textsIn(files.afterCrash())).join("")).toMatch(/^a(bc?)?$/);
      for (let second = 0; second < 5; second++) await clock.advance(1_000);
      expect(log.status).toBe("writable");
      await log.propose(bytesOf("e"));
      expect(delivered.map((each) => each.slice(2))).toEqual(["a", "e"]);
      expect(await textsIn(files.afterCrash())).toEqual(["a", "e"]);
      await log.stop();
      expect(await textsIn(files.reopened())).toEqual(["a", "e"]);
    }
  });

  it("leaves nothing behind that a start would take for a part of the log, though the cut failed, too", async () => {
    const files = new FaultFiles(seededPick(3), plan(2));
    const uncut = {
      ...bound(files),
      openAppend: async (path: string) => ({
        ...(await files.openAppend(path)),
        truncate: async (size: number) => (size > 0 ? fail() : undefined),
      }),
    };
    const { log, clock } = await started(files, { files: uncut });
    await log.propose(bytesOf("a"));
    await expect(log.propose(bytesOf("b"))).rejects.toMatchObject({ reason: "readOnly" });
    const whole = files.contentOf(segmentPath);
    expect(whole.includes("b", whole.length - 1)).toBe(true);
    await clock.advance(1_000);
    await log.propose(bytesOf("c"));
    await log.stop();
    expect(files.contentOf(segmentPath)).toEqual(whole);
    expect(await textsIn(files.reopened())).toEqual(["a", "c"]);
  });

  it("stays left out when the empty segment that says so is replaced before it has a record", async () => {
    const files = memoryFiles();
    let failing: "sync" | "append" | undefined;
    const failWhile = (call: typeof failing) => (failing === call ? fail() : undefined);
    const disk = {
      ...bound(files),
      openAppend: async (path: string) => {
        const file = await files.openAppend(path);
        return {
          ...file,
          append: async (bytes: Uint8Array) => (path.endsWith(".log") && failWhile("append")) || file.append(bytes),
          sync: async () => failWhile("sync") ?? file.sync(),
          truncate: async (size: number) => failWhile("sync") ?? file.truncate(size),
        };
      },
    };
    const { log, clock } = await started(files, { files: disk });
    await log.propose(bytesOf("a"));
    failing = "sync";
    await expect(log.propose(bytesOf("b"))).rejects.toMatchObject({ reason: "readOnly" });
    // Its repair succeeds, and the first record behind it fails.
    failing = "append";
    await clock.advance(1_000);
    expect((await files.list(dataDirectory)).filter((name) => name.endsWith(".log"))).toHaveLength(2);
    failing = undefined;
    // As a snapshot does.
    log.endSegment();
    await clock.advance(1_000);
    await log.propose(bytesOf("c"));
    await log.stop();
    expect(await textsIn(files.reopened())).toEqual(["a", "c"]);
  });

  it("hides no damage: without the segment that ends it, or with a byte of it changed, the log is refused", async () => {
    const files = new FaultFiles(seededPick(3), plan(1));
    const { log } = await started(files, { maxSegmentBytes: 200 });
    for (const text of ["a", "b", "c", "d", "e", "f"]) await log.propose(bytesOf(text));
    await log.stop();
    const names = (await files.list(dataDirectory)).filter((name) => name.endsWith(".log"));
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) {
      const gone = files.reopened();
      await gone.remove(`${dataDirectory}/${name}`);
      await expect(started(gone)).rejects.toMatchObject({ reason: "damaged" });
      const changed = files.reopened();
      changed.damage(`${dataDirectory}/${name}`, (content) => content.fill(7, 74, 90));
      await expect(started(changed)).rejects.toMatchObject({ reason: "damaged" });
    }
  });
});

describe("a full disk", () => {
  const reserveBytes = 2_000;

  async function filled(capacity = 20) {
    const files = memoryFiles();
    const opened = await started(files, { reserveBytes });
    await opened.log.propose(bytesOf("a"));
    files.capacityBytes = files.usedBytes + capacity;
    await expect(opened.log.propose(bytesOf("b".repeat(50)))).rejects.toMatchObject({ reason: "noSpace" });
    return { files, ...opened };
  }

  it("refuses what waits, and is written again when there is room", async () => {
    const { files, log, delivered, clock } = await filled();
    expect(log.status).toBe("full");
    await expect(log.propose(bytesOf("c"))).rejects.toMatchObject({ reason: "noSpace" });
    await clock.advance(5_000);
    expect(log.status).toBe("full");
    files.capacityBytes += 10_000;
    await clock.advance(1_000);
    expect(log.status).toBe("writable");
    await log.propose(bytesOf("d"));
    await log.stop();
    expect(delivered.map((each) => each.replace(/^\d+:/, ""))).toEqual(["a", "d"]);
    expect(await textsIn(files.reopened())).toEqual(["a", "d"]);
  });

  it("takes what frees room, in the room that was kept for it, until that is used up, and keeps it anew", async () => {
    const { files, log, clock } = await filled();
    expect(await files.list(dataDirectory)).not.toContain("reserve");
    for (let at = 0; at < 10; at++) await log.propose(bytesOf(`x${at}`), { frees: true });
    await expect(log.propose(bytesOf("c"))).rejects.toMatchObject({ reason: "noSpace" });
    const large = log.propose(Buffer.alloc(3_000), { frees: true });
    await expect(large).rejects.toMatchObject({ reason: "noSpace" });
    await log.propose(bytesOf("y"), { frees: true });
    files.capacityBytes += 10_000;
    await clock.advance(1_000);
    expect(log.status).toBe("writable");
    expect(files.contentOf(`${dataDirectory}/reserve`)).toHaveLength(reserveBytes);
    await log.stop();
    expect(await textsIn(files.reopened())).toEqual(["a", ...Array.from({ length: 10 }, (_, at) => `x${at}`), "y"]);
  });

  it("is tried again for what frees room when it was that which met it", async () => {
    const files = memoryFiles();
    const { log, delivered } = await started(files, { reserveBytes });
    files.capacityBytes = files.usedBytes + 40;
    const results = await Promise.allSettled([
      log.propose(bytesOf("first of all, alone"), { frees: true }),
      log.propose(bytesOf("b")),
      log.propose(bytesOf("c"), { frees: true }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(delivered.map((each) => each.replace(/^\d+:/, ""))).toEqual(["first of all, alone", "c"]);
    await log.stop();
  });

  it("at the start lets the store be read, and what frees room be logged", async () => {
    const { files, log } = await filled();
    await log.stop();
    const full = files.reopened();
    full.capacityBytes = full.usedBytes + 200;
    const again = await started(full, { reserveBytes });
    expect([again.delivered, again.log.status]).toEqual([["2:a"], "full"]);
    await again.log.propose(bytesOf("x"), { frees: true });
    await again.log.stop();
    expect(await textsIn(full.reopened())).toEqual(["a", "x"]);
  });

  it("what it refused does not come back after a power cut, though all of it was written", async () => {
    // The failing write writes everything, and the disk keeps the oldest of what was not synced.
    const pick = (count: number) => (count > 3 ? count - 1 : 0);
    const files = new FaultFiles(pick, { failOnly: "append", failAt: 5, code: "ENOSPC" });
    const { log } = await started(files);
    await log.propose(bytesOf("a"));
    await expect(log.propose(bytesOf("b"))).rejects.toMatchObject({ reason: "noSpace" });
    expect((await started(files.afterCrash())).delivered).toEqual(["2:a"]);
  });
});

it("whatever fails for a while, the log is written again by itself once the disk is well", async () => {
  for (let seed = 1; seed <= 200; seed++) {
    const pick = seededPick(seed);
    const code = ["EIO", "ENOSPC", "EMFILE"][pick(3)] ?? "EIO";
    const files = new FaultFiles(pick, { failAt: 20 + pick(30), failFor: 1 + pick(12), code, garbles: true });
    const { log, delivered, clock } = await started(files, { reserveBytes: 100, maxSegmentBytes: 400 });
    const answered: string[] = [];
    for (let at = 0; at < 30; at++) {
      const text = `<${at}>`;
      const { status } = await log.propose(bytesOf(text)).then(
        () => ({ status: "answered" }),
        () => ({ status: "refused" }),
      );
      if (status === "answered") answered.push(text);
      if (isFailed(log.status)) await clock.advance(1_000);
    }
    for (let second = 0; second < 15; second++) await clock.advance(1_000);
    expect([seed, log.status]).toEqual([seed, "writable"]);
    await log.propose(bytesOf("last"));
    const texts = [...answered, "last"];
    expect(delivered.map((each) => each.replace(/^\d+:/, ""))).toEqual(texts);
    expect(await textsIn(files.afterCrash())).toEqual(texts);
    await log.stop();
    expect(await textsIn(files.reopened())).toEqual(texts);
  }
});

describe("a lock that is lost", () => {
  it("ends all writing, what was just written is not answered, and nothing seals the log", async () => {
    let isHeld = true;
    const files = memoryFiles();
    const lock = () => ({ isHeld: () => isHeld, release: () => {} });
    const { log, clock, said } = await started(files, { lock });
    await log.propose(bytesOf("a"));
    isHeld = false;
    const size = files.usedBytes;
    await expect(log.propose(bytesOf("b"))).rejects.toMatchObject({ reason: "locked" });
    await clock.advance(60_000);
    expect([log.status, said]).toEqual(["lost", ["log cannot be written"]]);
    isHeld = true;
    await expect(log.propose(bytesOf("c"))).rejects.toMatchObject({ reason: "locked" });
    await log.stop();
    expect(files.usedBytes).toBe(size);
  });

  it("is noticed within a second, though nobody writes", async () => {
    let isHeld = true;
    const lock = () => ({ isHeld: () => isHeld, release: () => {} });
    const { log, clock, said } = await started(memoryFiles(), { lock, lockCheckMs: 1_000 });
    isHeld = false;
    await clock.advance(1_000);
    expect([log.status, said]).toEqual(["lost", ["log cannot be written"]]);
    await log.stop();
  });
});

it("a file that cannot be closed loses nothing, and the directory is given back", async () => {
  // The first that is closed is the new segment, before it gets its name.
  const files = new FaultFiles(seededPick(3), { failOnly: "close", failAt: 4 });
  let isLocked = true;
  const release = () => {
    isLocked = false;
  };
  const { log, delivered } = await started(files, { lock: () => ({ isHeld: () => isLocked, release }) });
  await log.propose(bytesOf("a"));
  await log.stop();
  expect([files.faults, isLocked]).toEqual([1, false]);
  expect((await started(files.reopened())).delivered).toEqual(delivered);
});

it("a torn tail is cut before anything is written behind it, and the log says so", async () => {
  const files = memoryFiles();
  const { log } = await started(files);
  await log.propose(bytesOf("a"));
  const torn = files.reopened();
  torn.damage(segmentPath, (content) => Buffer.concat([content, Buffer.alloc(99)]));
  const second = await started(torn);
  expect(second.said).toEqual(["bytes of an incomplete write were cut off the log"]);
  await second.log.propose(bytesOf("b"));
  await second.log.stop();
  expect((await started(torn.reopened())).delivered).toEqual(["2:a", "4:b"]);
});

function fail(): never {
  throw Object.assign(new Error("EIO: planned fault"), { code: "EIO" });
}

function bound(files: FaultFiles) {
  return {
    makeDirectory: () => files.makeDirectory(),
    list: (path: string) => files.list(path),
    read: (path: string) => files.read(path),
    sizeOf: (path: string) => files.sizeOf(path),
    readPieces: (path: string) => files.readPieces(path),
    openAppend: (path: string) => files.openAppend(path),
    rename: (from: string, to: string) => files.rename(from, to),
    remove: (path: string) => files.remove(path),
    syncDirectory: (path: string) => files.syncDirectory(path),
  };
}
