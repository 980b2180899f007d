import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { diskFiles } from "../../../src/lib/files/files.ts";
import { lockDirectory } from "../../../src/store/wal/lock.ts";
import { segmentHeadBytes } from "../../../src/store/wal/record.ts";
import { type FaultFiles, seededPick } from "../../helpers/fault-files.ts";
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
    expect(await segmentsIn(files)).toEqual(["0000000000000003.log", "0000000000000004.log"]);
    await log.releaseBefore(1_000);
    expect(await segmentsIn(files)).toEqual(["0000000000000004.log"]);
    await log.stop();
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
      const release = () => {
        isLocked = false;
      };
      return { isHeld: () => isLocked, release };
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
    expect(await readdir(directory)).toEqual(["0000000000000001.log", "lock.db", "log-end"]);
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

async function segmentsIn(files: FaultFiles): Promise<readonly string[]> {
  return (await files.list(dataDirectory)).filter((name) => name.endsWith(".log"));
}

async function textOf(pieces: AsyncIterable<Uint8Array> | undefined): Promise<string> {
  let text = "";
  for await (const piece of pieces ?? []) text += Buffer.from(piece);
  return text;
}
