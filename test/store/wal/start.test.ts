/** Starts on a disk that does not do what it should: each ends with a sentence, or with a store that can be read. */

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { diskFiles } from "../../../src/lib/files/files.ts";
import { nextTurn } from "../../../src/lib/slices.ts";
import { WalError } from "../../../src/store/core/log-port.ts";
import { storePath } from "../../../src/store/core/node.ts";
import type { Store } from "../../../src/store/store.ts";
import { lockDirectory } from "../../../src/store/wal/lock.ts";
import { segmentHeadBytes } from "../../../src/store/wal/record.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import type { FaultFiles } from "../../helpers/fault-files.ts";
import { missing } from "../../helpers/requirements.ts";
import { dataDirectory, memoryFiles, openStore } from "../../helpers/test-store.ts";

const options = { maxSegmentBytes: segmentHeadBytes + 200, snapshotInterval: { records: 5, bytes: 2 ** 30 } };
const set = (store: Store, path: string) => store.submit({ kind: "set", path: storePath(path), value: path });

/** A disk with snapshots, several segments, a torn write and a file that was being written. */
async function usedDisk(): Promise<FaultFiles> {
  const files = memoryFiles();
  const store = await openStore(files, options);
  for (let number = 0; number < 17; number++) {
    await set(store, `/k${number}`);
    for (let turn = 0; turn < 3; turn++) await nextTurn();
  }
  const left = files.reopened();
  const names = await left.list(dataDirectory);
  const newest = names.findLast((name) => name.endsWith(".log"));
  left.damage(`${dataDirectory}/${newest}`, (content) => Buffer.concat([content, Buffer.alloc(30)]));
  left.damage(`${dataDirectory}/0000000000000099.snapshot.tmp`, () => Buffer.from("begun"));
  return left;
}

/** What became of a start, and the files that count. */
async function start(files: FaultFiles) {
  try {
    const store = await openStore(files, options);
    const found = [...store.dump()].length;
    await store.stop();
    return { found, error: undefined };
  } catch (error) {
    return { found: 0, error };
  }
}

const sentences = [
  { code: "EROFS", sentence: "the file system is read-only; make it writable, or give another --data-dir" },
  { code: "ENOSPC", sentence: "no space is left on the disk; make room, or give another --data-dir" },
  { code: "EACCES", sentence: "permission is denied; let the user that runs davit read and write it" },
  { code: "EIO", sentence: "the disk fails to read or write; see to it, then start again" },
  { code: "ENXIO", sentence: "the disk answers ENXIO; see to it, then start again" },
];

describe.each(sentences)("when a call of the start answers $code", ({ code, sentence }) => {
  it.each([
    { name: "a new directory", disk: async () => memoryFiles(), keys: 1 },
    { name: "a used one", disk: usedDisk, keys: 18 },
  ])("$name is refused with a sentence, or opened, whichever call it is", async ({ disk, keys }) => {
    const pristine = await disk();
    let refused = 0;
    for (let failAt = 1; ; failAt++) {
      const files = pristine.reopened({ failAt, code });
      const { found, error } = await start(files);
      if (error === undefined) expect(found).toBe(keys);
      else {
        refused += 1;
        expect(error).toBeInstanceOf(WalError);
        expect(error).toMatchObject({
          reason: "unusable",
          message: expect.stringMatching(/^(Making|Opening|Reading) "\/data/),
        });
        expect(error).toMatchObject({ message: expect.stringContaining(sentence) });
      }
      // The next start finds everything, whatever this one left.
      expect(await start(files.reopened())).toEqual({ found: keys, error: undefined });
      if (files.faults === 0) break;
    }
    expect(refused).toBeGreaterThan(3);
  });
});

describe.skipIf(missing("tmpfs"))("on a small disk of its own", () => {
  let disk: string;
  beforeEach(() => {
    disk = mkdtempSync(join(tmpdir(), "davit-disk-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", disk]);
  });
  afterEach(() => {
    execFileSync("umount", [disk]);
    rmdirSync(disk);
  });

  const open = () => openStore(memoryFiles(), { ...real(), files: diskFiles });
  const real = () => ({ directory: join(disk, "data"), lock: lockDirectory, random: randomBytes });
  const filler = () => join(disk, "filler");

  /** Takes all the room that there is. */
  function fill(): void {
    for (const size of [64 * 1024, 4 * 1024, 1]) {
      try {
        for (;;) writeFileSync(filler(), Buffer.alloc(size), { flag: "a" });
      } catch (error) {
        expect(error).toMatchObject({ code: "ENOSPC" });
      }
    }
  }

  it("which is full, a new directory is refused with a sentence", async () => {
    fill();
    await expect(open()).rejects.toMatchObject({
      reason: "unusable",
      message: expect.stringMatching(/no space is left on the disk; make room|cannot be opened for writing/),
    });
  });

  it("which is full, a store can be read, and written as soon as there is room", async () => {
    const first = await open();
    await set(first, "/a");
    await first.stop();
    // The last page of the log has room for some records.
    fill();
    const clock = new FakeClock();
    const store = await openStore(memoryFiles(), { ...real(), files: diskFiles, clock });
    expect([...store.dump()]).toHaveLength(2);
    const large = { kind: "set", path: storePath("/b"), value: "b".repeat(20_000) } as const;
    await expect(store.submit(large)).rejects.toMatchObject({ refusal: "logFailed" });
    rmSync(filler());
    // The disk is real: what the clock starts ends later.
    await clock.advance(1_000);
    await expect.poll(() => store.status).toBe("writable");
    await store.submit(large);
    await store.stop();
    const again = await open();
    expect([...again.dump()]).toHaveLength(3);
    await again.stop();
  });

  it("which is read-only, a start is refused with a sentence", async () => {
    await (await open()).stop();
    execFileSync("mount", ["-o", "remount,ro", disk]);
    await expect(open()).rejects.toMatchObject({
      reason: "unusable",
      message: expect.stringMatching(/the file system is read-only|cannot be opened for writing/),
    });
  });
});
