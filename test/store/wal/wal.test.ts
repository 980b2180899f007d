import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { diskFiles } from "../../../src/lib/files.ts";
import { lockDirectory } from "../../../src/store/wal/lock.ts";
import { segmentHeadBytes } from "../../../src/store/wal/record.ts";
import { FaultFiles, seededPick } from "../../helpers/fault-files.ts";
import { dataDirectory, memoryFiles, openLog } from "../../helpers/test-store.ts";

const bytesOf = (text: string) => Buffer.from(text);

/** Opens a log and collects what it delivers. */
async function started(files: FaultFiles, options: Parameters<typeof openLog>[1] = {}) {
  const log = await openLog(files, options);
  const delivered: string[] = [];
  await log.onCommitted((sequence, bytes) => delivered.push(`${sequence}:${Buffer.from(bytes)}`));
  return { log, delivered };
}

describe("identity", () => {
  it("stays for ever, but for the run and the term, which grows with every start from 2 on", async () => {
    const files = memoryFiles();
    const first = await started(files);
    expect(first.log.identity).toMatchObject({ term: 2, clusterId: expect.stringMatching(/^[1-9a-f][0-9a-f]{0,15}$/) });
    await first.log.stop();
    const second = await started(files.reopened());
    const { run } = second.log.identity;
    expect(second.log.identity).toEqual({ ...first.log.identity, term: 3, run });
    expect(run).not.toBe(first.log.identity.run);
    // A start that a power cut ends counts, too.
    const third = await started(files.afterCrash().reopened());
    expect(third.log.identity.term).toBeGreaterThanOrEqual(3);
  });

  it("is random", async () => {
    const ids = new Set<string>();
    for (const seed of [1, 2, 3]) {
      const pick = seededPick(seed);
      const random = (bytes: number) => Uint8Array.from({ length: bytes }, () => pick(256));
      const { log } = await started(memoryFiles(), { random });
      ids.add(log.identity.clusterId).add(log.identity.memberId);
    }
    expect(ids.size).toBe(6);
  });
});

describe("a commit", () => {
  it("is delivered before its proposer is told, in the order of proposals", async () => {
    const { log, delivered } = await started(memoryFiles());
    const order: string[] = [];
    await Promise.all(
      ["a", "b", "c"].map(async (text) => {
        const sequence = await log.propose(bytesOf(text));
        order.push(`${sequence}:${text}`);
        expect(delivered).toContain(`${sequence}:${text}`);
      }),
    );
    expect(order).toEqual(["2:a", "3:b", "4:c"]);
    expect(delivered).toEqual(order);
    await log.stop();
  });

  it("is one write and one sync for all that wait", async () => {
    const files = memoryFiles();
    const { log } = await started(files);
    files.log.length = 0;
    await Promise.all(Array.from({ length: 50 }, (_, number) => log.propose(bytesOf(`value ${number}`))));
    // The first goes alone; the others wait for it and go together.
    expect(files.log).toEqual(["append", "sync", "append", "sync"]);
    await log.stop();
  });

  it("is delivered when the batch behind it is on its way to the disk", async () => {
    const files = memoryFiles();
    const log = await openLog(files);
    const callsAtDelivery: (readonly string[])[] = [];
    await log.onCommitted(() => callsAtDelivery.push([...files.log]));
    files.log.length = 0;
    await Promise.all([log.propose(bytesOf("a")), log.propose(bytesOf("b"))]);
    expect(callsAtDelivery).toEqual([
      ["append", "sync", "append"],
      ["append", "sync", "append", "sync"],
    ]);
    await log.stop();
  });

  it("is told how long its sync took", async () => {
    const seconds: number[] = [];
    const { log } = await started(memoryFiles(), { observeSyncSeconds: (value) => seconds.push(value) });
    await log.propose(bytesOf("a"));
    expect(seconds).toEqual([0, 0]);
    await log.stop();
  });

  it("is refused when too much waits, and nothing that waited is lost", async () => {
    const { log, delivered } = await started(memoryFiles(), { maxWaitingBytes: 100 });
    // The first is being written while the second waits, though it is larger than the limit by itself.
    const taken = [log.propose(new Uint8Array(1)), log.propose(new Uint8Array(101))];
    await expect(log.propose(new Uint8Array(1))).rejects.toMatchObject({ reason: "overloaded" });
    await Promise.all(taken);
    expect(delivered).toHaveLength(2);
    await log.stop();
  });
});

describe("segments", () => {
  it("begin where the last one is full, and go on after a restart", async () => {
    const files = memoryFiles();
    const options = { maxSegmentBytes: segmentHeadBytes + 100 };
    const { log, delivered } = await started(files, options);
    for (const text of ["a", "b", "c", "d", "e"]) await log.propose(bytesOf(text));
    expect((await files.list(dataDirectory)).length).toBeGreaterThan(1);
    await log.stop();
    const again = await started(files.reopened(), options);
    expect(again.delivered).toEqual(delivered);
    await again.log.propose(bytesOf("f"));
    expect(again.delivered.at(-1)).toMatch(/:f$/);
    await again.log.stop();
  });

  it("are released when all their records are before a sequence; the newest stays", async () => {
    const files = memoryFiles();
    const { log } = await started(files, { maxSegmentBytes: segmentHeadBytes + 1 });
    for (const text of ["a", "b", "c"]) await log.propose(bytesOf(text));
    await log.releaseBefore(3);
    expect(await files.list(dataDirectory)).toEqual(["0000000000000003.log", "0000000000000004.log"]);
    await log.releaseBefore(1_000);
    expect(await files.list(dataDirectory)).toEqual(["0000000000000004.log"]);
    await log.stop();
  });
});

describe("trouble", () => {
  it("a full disk refuses what waits and goes on when there is room", async () => {
    const files = new FaultFiles(seededPick(3), { failOnly: "append", failAt: 4, code: "ENOSPC" });
    const { log, delivered } = await started(files);
    await log.propose(bytesOf("a"));
    await expect(log.propose(bytesOf("b"))).rejects.toMatchObject({ reason: "noSpace" });
    expect(log.status).toBe("writable");
    expect(await log.propose(bytesOf("c"))).toBe(3);
    await log.stop();
    expect((await started(files.reopened())).delivered).toEqual(delivered);
    expect(delivered).toEqual(["2:a", "3:c"]);
  });

  it("what a full disk refused does not come back after a power cut, though all of it was written", async () => {
    // The failing write writes everything, and the disk keeps the oldest of what was not synced.
    const pick = (count: number) => (count > 3 ? count - 1 : 0);
    const files = new FaultFiles(pick, { failOnly: "append", failAt: 4, code: "ENOSPC" });
    const { log } = await started(files);
    await log.propose(bytesOf("a"));
    await expect(log.propose(bytesOf("b"))).rejects.toMatchObject({ reason: "noSpace" });
    expect((await started(files.afterCrash())).delivered).toEqual(["2:a"]);
  });

  it("a disk that is full at the start lets the store be read", async () => {
    const files = memoryFiles();
    const { log } = await started(files);
    await log.propose(bytesOf("a"));
    await log.stop();
    const full = await started(files.reopened({ failOnly: "append", failAt: 1, code: "ENOSPC" }));
    expect(full.delivered).toEqual(["2:a"]);
    await full.log.propose(bytesOf("b"));
    expect(full.log.identity.term).toBe(3);
    // The term went with the first batch that succeeded: 3 is the seal, 4 the term.
    expect(full.delivered).toEqual(["2:a", "5:b"]);
    await full.log.stop();
  });

  it("a sync that fails ends all writing until a restart", async () => {
    const files = new FaultFiles(seededPick(3), { failOnly: "sync", failAt: 5 });
    const { log, delivered } = await started(files);
    await log.propose(bytesOf("a"));
    const waiting = [log.propose(bytesOf("b")), log.propose(bytesOf("c"))];
    for (const proposal of await Promise.allSettled(waiting)) {
      expect(proposal).toMatchObject({ status: "rejected", reason: { reason: "readOnly" } });
    }
    expect(log.status).toBe("readOnly");
    await expect(log.propose(bytesOf("d"))).rejects.toMatchObject({ reason: "readOnly" });
    await log.stop();
    const again = await started(files.reopened());
    expect(again.delivered).toEqual(delivered);
    expect(again.log.status).toBe("writable");
    await again.log.stop();
  });

  it("a file that cannot be closed loses nothing, and the directory is given back", async () => {
    // The first that is closed is the new segment, before it gets its name.
    const files = new FaultFiles(seededPick(3), { failOnly: "close", failAt: 2 });
    let isLocked = true;
    const unlock = () => {
      isLocked = false;
    };
    const { log, delivered } = await started(files, { lock: () => unlock });
    await log.propose(bytesOf("a"));
    await log.stop();
    expect([files.faults, isLocked]).toEqual([1, false]);
    expect((await started(files.reopened())).delivered).toEqual(delivered);
  });

  it("a cut that fails ends all writing, too", async () => {
    const plan = { failOnly: "truncate", failAt: 2 } as const;
    const files = new FaultFiles(seededPick(3), plan);
    const broken = {
      ...bind(files),
      openAppend: async (path: string) => {
        const file = await files.openAppend(path);
        return { ...file, append: async (bytes: Uint8Array) => (bytes.includes(0x21) ? fail() : file.append(bytes)) };
      },
    };
    const log = await openLog(files, { files: broken });
    await log.onCommitted(() => {});
    await expect(log.propose(bytesOf("!"))).rejects.toMatchObject({ reason: "appendFailed" });
    expect(log.status).toBe("readOnly");
    await log.stop();
  });

  it("a torn tail is cut before anything is written behind it", async () => {
    const files = memoryFiles();
    const { log } = await started(files);
    await log.propose(bytesOf("a"));
    const torn = files.reopened();
    torn.damage(`${dataDirectory}/0000000000000001.log`, (content) => Buffer.concat([content, Buffer.alloc(99)]));
    const second = await started(torn);
    await second.log.propose(bytesOf("b"));
    await second.log.stop();
    expect((await started(torn.reopened())).delivered).toEqual(["2:a", "4:b"]);
  });
});

describe("`stop`", () => {
  it("logs what was proposed, seals the log, and is idempotent", async () => {
    const files = memoryFiles();
    const { log, delivered } = await started(files);
    const last = log.propose(bytesOf("a"));
    await Promise.all([log.stop(), log.stop()]);
    expect(await last).toBe(2);
    expect(delivered).toEqual(["2:a"]);
    await expect(log.propose(bytesOf("b"))).rejects.toMatchObject({ reason: "closed" });
    const again = await started(files.reopened());
    // 3 is the seal, 4 the term.
    expect(await again.log.propose(bytesOf("c"))).toBe(5);
  });

  it("gives the directory back when the log could not be read", async () => {
    const files = memoryFiles();
    files.damage(`${dataDirectory}/0000000000000001.log`, () => Buffer.from("nonsense"));
    let isLocked = false;
    const lock = () => {
      isLocked = true;
      return () => {
        isLocked = false;
      };
    };
    const log = await openLog(files, { lock });
    await expect(log.onCommitted(() => {})).rejects.toMatchObject({ reason: "damaged" });
    expect(isLocked).toBe(true);
    await log.stop();
    expect(isLocked).toBe(false);
  });
});

describe("snapshots", () => {
  it("are loaded, and the log goes on behind them", async () => {
    const files = memoryFiles();
    const { log } = await started(files, { maxSegmentBytes: segmentHeadBytes + 1 });
    for (const text of ["a", "b", "c"]) await log.propose(bytesOf(text));
    await log.saveSnapshot(3, [bytesOf("state of "), bytesOf("a and b")]);
    await log.releaseBefore(4);
    await log.stop();
    const again = await openLog(files.reopened());
    const snapshot = await again.loadSnapshot();
    expect(snapshot?.sequence).toBe(3);
    expect(await textOf(snapshot?.pieces)).toBe("state of a and b");
    const delivered: string[] = [];
    await again.onCommitted((sequence, bytes) => delivered.push(`${sequence}:${Buffer.from(bytes)}`));
    expect(delivered).toEqual(["4:c"]);
    await again.stop();
  });

  it("of which the newest is damaged fall back to the one before; two are kept", async () => {
    const files = memoryFiles();
    const { log } = await started(files);
    for (const text of ["a", "b", "c"]) {
      const sequence = await log.propose(bytesOf(text));
      await log.saveSnapshot(sequence, [bytesOf(text)]);
    }
    await log.stop();
    const names = (await files.list(dataDirectory)).filter((name) => name.endsWith(".snapshot"));
    expect(names).toEqual(["0000000000000003.snapshot", "0000000000000004.snapshot"]);
    const damaged = files.reopened();
    damaged.damage(`${dataDirectory}/${names[1]}`, (content) => content.subarray(0, -1));
    const again = await openLog(damaged);
    expect(await again.loadSnapshot()).toMatchObject({ sequence: 3 });
    await again.stop();
  });

  it("of another log, or ahead of it, are refused", async () => {
    const files = memoryFiles();
    const { log } = await started(files);
    await log.saveSnapshot(50, [bytesOf("from the future")]);
    await log.stop();
    const again = await openLog(files.reopened());
    await again.loadSnapshot();
    await expect(again.onCommitted(() => {})).rejects.toMatchObject({ reason: "damaged" });
    await again.stop();
  });

  it("without one, a log whose beginning was released is refused", async () => {
    const files = memoryFiles();
    const { log } = await started(files, { maxSegmentBytes: segmentHeadBytes + 1 });
    for (const text of ["a", "b"]) await log.propose(bytesOf(text));
    await log.releaseBefore(3);
    await log.stop();
    const again = await openLog(files.reopened());
    expect(await again.loadSnapshot()).toBeUndefined();
    await expect(again.onCommitted(() => {})).rejects.toMatchObject({ reason: "damaged" });
    await again.stop();
  });
});

describe("on a real disk", () => {
  let directory: string;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), "davit-log-")), "data");
  });
  afterEach(async () => {
    await rm(join(directory, ".."), { recursive: true });
  });

  it("a log is found again, in a directory for its owner alone", async () => {
    const options = { directory, lock: lockDirectory, files: diskFiles };
    const log = await openLog(memoryFiles(), options);
    await log.onCommitted(() => {});
    await log.propose(bytesOf("a"));
    await log.stop();
    expect(((await stat(directory)).mode & 0o777).toString(8)).toBe("700");
    expect(await readdir(directory)).toEqual(["0000000000000001.log", "lock.db"]);
    const again = await openLog(memoryFiles(), options);
    const delivered: string[] = [];
    await again.onCommitted((_, bytes) => delivered.push(String(Buffer.from(bytes))));
    expect(delivered).toEqual(["a"]);
    await again.stop();
  });

  it("a directory has one holder at a time", async () => {
    const options = { directory, lock: lockDirectory, files: diskFiles };
    const log = await openLog(memoryFiles(), options);
    await expect(openLog(memoryFiles(), options)).rejects.toMatchObject({
      reason: "locked",
      message: `Locking "${directory}": another davit uses it; stop that one, or give this one a directory of its own`,
    });
    await log.stop();
    await (await openLog(memoryFiles(), options)).stop();
  });

  it("a directory that cannot be made is refused", async () => {
    const options = { directory: join(directory, "x"), lock: lockDirectory, files: diskFiles };
    await diskFiles.makeDirectory(join(directory, ".."));
    const file = await diskFiles.openAppend(directory);
    await file.close();
    await expect(openLog(memoryFiles(), options)).rejects.toMatchObject({ reason: "unusable" });
  });
});

async function textOf(pieces: AsyncIterable<Uint8Array> | undefined): Promise<string> {
  let text = "";
  for await (const piece of pieces ?? []) text += Buffer.from(piece);
  return text;
}

function fail(): never {
  throw Object.assign(new Error("EIO: planned fault"), { code: "EIO" });
}

function bind(files: FaultFiles) {
  return {
    makeDirectory: () => files.makeDirectory(),
    list: (path: string) => files.list(path),
    read: (path: string) => files.read(path),
    readPieces: (path: string) => files.readPieces(path),
    openAppend: (path: string) => files.openAppend(path),
    rename: (from: string, to: string) => files.rename(from, to),
    remove: (path: string) => files.remove(path),
    syncDirectory: (path: string) => files.syncDirectory(path),
  };
}
