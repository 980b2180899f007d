import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CopyFile, decodeCopy, encodeCopy } from "../../src/follow/copy-file.ts";
import { diskFiles, type Files } from "../../src/lib/files/files.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { silentLog } from "../helpers/test-store.ts";

const clock = new FakeClock();

function copy(index: number, text = "text") {
  return { cluster: "c", index, documents: new Map([["/davit/groups/ns/a", text]]) };
}

function bytesOf(index: number): Buffer {
  return Buffer.concat([...encodeCopy({ ...copy(index), savedAtMs: 1 })]);
}

function open(path: string, files: Files, said: object[] = []): CopyFile {
  const log = { ...silentLog, error: (data: object) => said.push(data) };
  return new CopyFile({ path, files, clock, log });
}

describe("the bytes of a copy", () => {
  it("are read back as they were written", () => {
    const text = fc.string({ unit: "binary" }).filter((value) => value.isWellFormed());
    const saved = fc.record({
      cluster: fc.string(),
      index: fc.nat(),
      savedAtMs: fc.nat(),
      documents: fc.array(fc.tuple(text, text)).map((entries) => new Map(entries)),
    });
    fc.assert(
      fc.property(saved, (given) => {
        expect(decodeCopy(Buffer.concat([...encodeCopy(given)]))).toEqual(given);
      }),
    );
  });

  it("are those of the moment when they were asked for, and come in pieces", () => {
    const documents = new Map(Array.from({ length: 100 }, (_, at) => [`/davit/${at}`, "x".repeat(10_000)]));
    const pieces = encodeCopy({ cluster: "c", index: 1, savedAtMs: 1, documents: documents });
    documents.clear();
    const made = [...pieces];
    expect(made.length).toBeGreaterThan(10);
    expect(decodeCopy(Buffer.concat(made))?.documents.size).toBe(100);
  });

  it("are worth nothing when any of them is missing or changed", () => {
    const bytes = bytesOf(3);
    for (let end = 0; end < bytes.length; end++) expect(decodeCopy(bytes.subarray(0, end))).toBeUndefined();
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      expect(decodeCopy(changed)).toBeUndefined();
    }
  });

  it("of a newer version are not read", () => {
    const newer = bytesOf(3).toString().replace('"version":1', '"version":2');
    expect(decodeCopy(Buffer.from(newer))).toBeUndefined();
  });
});

describe("a copy file", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-copy-"));
  });

  afterEach(() => rm(folder, { recursive: true }));

  it("is readable by its owner alone", async () => {
    const path = join(folder, "copy");
    const file = open(path, diskFiles);
    file.keep(copy(1));
    await file.stop();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await open(path, diskFiles).load()).toEqual({ ...copy(1), savedAtMs: clock.nowMs() });
  });

  it("is written at once, then not more often than every 5 s, and a last time at the end", async () => {
    const path = join(folder, "copy");
    const file = open(path, diskFiles);
    const index = async () => decodeCopy(await readFile(path))?.index;
    file.keep(copy(1));
    await expect.poll(() => index().catch(() => undefined)).toBe(1);
    file.keep(copy(2));
    file.keep(copy(3));
    await expect.poll(() => clock.sleeping).toBe(1);
    expect(await index()).toBe(1);
    await clock.advance(5_000);
    await expect.poll(index).toBe(3);
    file.keep(copy(4));
    await file.stop();
    expect(await index()).toBe(4);
  });

  it("is written without a pause for what must not be lost by a restart", async () => {
    const path = join(folder, "copy");
    const file = open(path, diskFiles);
    const index = async () => decodeCopy(await readFile(path))?.index;
    file.keep(copy(1));
    await expect.poll(() => clock.sleeping).toBe(1);
    file.keep(copy(2));
    expect(await index()).toBe(1);
    file.keep(copy(3), true);
    await expect.poll(index).toBe(3);
    file.keep(copy(4));
    file.keep(copy(5), true);
    await expect.poll(index).toBe(5);
    await file.stop();
  });

  it("that is missing is no news; one that is damaged is, and counts as missing", async () => {
    const said: object[] = [];
    const path = join(folder, "copy");
    expect(await open(path, diskFiles, said).load()).toBeUndefined();
    expect(said).toEqual([]);
    const file = await diskFiles.openAppend(path);
    await file.append(bytesOf(1).subarray(0, -5));
    await file.close();
    expect(await open(path, diskFiles, said).load()).toBeUndefined();
    expect(said).toEqual([{ path }]);
  });

  it("is written again after a failure, without another change, and keeps the time at which it was true", async () => {
    const said: object[] = [];
    const files = new FaultFiles(seededPick(1), { failAt: 2, failFor: 4, failOnly: "open", code: "ENOSPC" });
    const own = new FakeClock();
    const log = { ...silentLog, error: (data: object) => said.push(data) };
    const file = new CopyFile({ path: "/d/copy", files, clock: own, log });
    const saved = () => open("/d/copy", files).load();
    file.keep(copy(1));
    await expect.poll(() => own.sleeping).toBe(1);
    const keptAtMs = own.nowMs();
    file.keep(copy(2), true);
    await expect.poll(() => files.faults).toBeGreaterThan(0);
    expect((await saved())?.index).toBe(1);
    const later = async () => {
      await own.advance(60_000);
      return (await saved())?.index;
    };
    await expect.poll(later).toBe(2);
    expect((await saved())?.savedAtMs).toBe(keptAtMs);
    expect(files.faults).toBe(4);
    expect(said).toEqual([{ path: "/d/copy", code: "ENOSPC" }]);
    await file.stop();
  });

  it("is tried once more at the end, and not again and again", async () => {
    const files = new FaultFiles(seededPick(1), { failAt: 1, failFor: 1_000, failOnly: "open" });
    const file = open("/d/copy", files);
    file.keep(copy(1));
    await expect.poll(() => clock.sleeping).toBe(1);
    await file.stop();
    expect(files.faults).toBe(2);
  });

  it("is the old or the new one, whole, whichever operation fails or crashes", async () => {
    for (let call = 1, faults = 1; faults > 0; call++) {
      for (const plan of [{ failAt: call }, { crashAt: call }]) {
        const files = new FaultFiles(seededPick(call));
        const before = open("/d/copy", files);
        before.keep(copy(1));
        await before.stop();
        const struck = files.afterCrash(plan);
        const file = open("/d/copy", struck);
        file.keep(copy(2));
        await file.stop();
        faults = struck.faults;
        const found = await open("/d/copy", struck.afterCrash()).load();
        expect([1, 2]).toContain(found?.index);
        if (faults === 0) expect(found?.index).toBe(2);
      }
    }
  });
});
