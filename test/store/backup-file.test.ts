/** Backups on disk: a file under its name is a whole one, and what was there before is not lost for half of one. */

import { describe, expect, it } from "vitest";
import { type SaveBackupOptions, saveBackup } from "../../src/store/backup/backup.ts";
import { storePath } from "../../src/store/core/node.ts";
import { FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { memoryFiles, openStore } from "../helpers/test-store.ts";

const path = "/backups/nightly";

async function wholeBackup(): Promise<Buffer> {
  const store = await openStore();
  await store.submit({ kind: "set", path: storePath("/a"), value: "x".repeat(100) });
  const pieces: Uint8Array[] = [];
  for await (const piece of store.backup()) pieces.push(piece);
  await store.stop();
  return Buffer.concat(pieces);
}

async function* piecesOf(bytes: Buffer): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 50) yield bytes.subarray(at, at + 50);
}

let lastRandom = 0;

function save(files: FaultFiles, pieces: AsyncIterable<Uint8Array>, options: Partial<SaveBackupOptions> = {}) {
  return saveBackup({
    files,
    path,
    mayReplace: false,
    name: "it",
    pieces,
    progress: () => undefined,
    random: (bytes) => Buffer.alloc(bytes, ++lastRandom),
    ...options,
  });
}

it("a backup is put in its place as it came, and how far it is is told", async () => {
  const files = memoryFiles();
  const whole = await wholeBackup();
  const told: number[] = [];
  const saved = await save(files, piecesOf(whole), { progress: (bytes) => told.push(bytes) });
  expect(saved).toMatchObject({ head: { index: 1 }, sizeBytes: whole.length });
  expect(files.contentOf(path)).toEqual(whole);
  expect(told.at(-1)).toBe(whole.length);
  expect(await files.list("/backups")).toEqual(["nightly"]);
});

describe("what is not a whole backup", () => {
  it.each([
    { name: "one that ends too soon", change: (whole: Buffer) => whole.subarray(0, -10), what: /it was cut/ },
    { name: "nothing", change: () => Buffer.alloc(0), what: /it is no backup of davit/ },
    { name: "a garbled one", change: (whole: Buffer) => whole.fill(65, 120, 121), what: /not what its checksum says/ },
  ])("leaves no file behind: $name", async ({ change, what }) => {
    const files = memoryFiles();
    await expect(save(files, piecesOf(change(await wholeBackup())))).rejects.toThrow(what);
    expect(await files.list("/backups")).toEqual([]);
  });

  it("leaves an older backup as it was, even when it may be replaced", async () => {
    const files = memoryFiles();
    files.damage(path, () => Buffer.from("older"));
    const cut = piecesOf((await wholeBackup()).subarray(0, -1));
    await expect(save(files, cut, { mayReplace: true })).rejects.toThrow(/it was cut/);
    expect(files.contentOf(path).toString()).toBe("older");
    expect(await files.list("/backups")).toEqual(["nightly"]);
  });

  it("leaves no file behind when the connection fails", async () => {
    const files = memoryFiles();
    const whole = await wholeBackup();
    const failing = async function* () {
      yield whole.subarray(0, 150);
      throw new Error("The network is gone");
    };
    await expect(save(files, failing())).rejects.toThrow("The network is gone");
    expect(await files.list("/backups")).toEqual([]);
  });
});

it("a file that has come meanwhile is not replaced, unless that is allowed", async () => {
  const files = memoryFiles();
  const whole = await wholeBackup();
  files.damage(path, () => Buffer.from("of somebody"));
  await expect(save(files, piecesOf(whole))).rejects.toThrow(`Writing "${path}": it exists`);
  expect(files.contentOf(path).toString()).toBe("of somebody");
  expect(await files.list("/backups")).toEqual(["nightly"]);
  await save(files, piecesOf(whole), { mayReplace: true });
  expect(files.contentOf(path)).toEqual(whole);
});

it("two backups to one place at once do not garble each other", async () => {
  const files = memoryFiles();
  const whole = await wholeBackup();
  const both = [1, 2].map(() => save(files, piecesOf(whole), { mayReplace: true }));
  await Promise.all(both);
  expect(files.contentOf(path)).toEqual(whole);
  expect(await files.list("/backups")).toEqual(["nightly"]);
});

it("after a crash at any call the file is whole, or the older one, and never another", async () => {
  const whole = await wholeBackup();
  const older = Buffer.from("older");
  let isClean = false;
  for (let crashAt = 1; !isClean; crashAt++) {
    for (let seed = 1; seed <= 10; seed++) {
      const files = new FaultFiles(seededPick(seed), { crashAt });
      files.damage(path, () => older);
      const outcome = await save(files, piecesOf(whole), { mayReplace: true }).then(
        () => "saved",
        (error: unknown) => expect(error).toMatchObject({ code: "EIO" }),
      );
      isClean = files.faults === 0;
      const content = files.afterCrash().contentOf(path);
      expect(content.equals(whole) || (outcome !== "saved" && content.equals(older))).toBe(true);
    }
  }
});
