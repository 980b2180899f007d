/** What is said of data directories: sound ones, and those with damage anywhere, of which nothing is touched. */

import { describe, expect, it } from "vitest";
import { nextTurn } from "../../src/lib/slices.ts";
import { storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { contentsOf, inspectDirectory } from "../../src/store/inspect/inspect.ts";
import { segmentHeadBytes } from "../../src/store/wal/record.ts";
import type { FaultFiles } from "../helpers/fault-files.ts";
import { ofVersion } from "../helpers/later-version.ts";
import { dataDirectory, memoryFiles, openStore } from "../helpers/test-store.ts";

/** A directory with two snapshots and several segments, as a power cut leaves it. */
async function used(): Promise<FaultFiles> {
  const files = memoryFiles();
  const options = { maxSegmentBytes: segmentHeadBytes + 300, snapshotInterval: { records: 10, bytes: 2 ** 30 } };
  const store = await openStore(files, options);
  for (let key = 0; key < 45; key++) {
    await store.submit({ kind: "set", path: storePath(`/d/${key}`), value: "value".repeat(5) });
    for (let turn = 0; turn < 5; turn++) await nextTurn();
  }
  const refused = store.submit({ kind: "create", path: storePath("/d/1"), value: "" });
  await expect(refused).rejects.toBeInstanceOf(StoreError);
  return files.reopened();
}

const inspect = (files: FaultFiles) => inspectDirectory(files, dataDirectory);
const pathOf = (name = "") => `${dataDirectory}/${name}`;

async function namesOf(files: FaultFiles) {
  const names = await files.list(dataDirectory);
  return {
    segments: names.filter((name) => name.endsWith(".log")),
    snapshots: names.filter((name) => name.endsWith(".snapshot")),
  };
}

const flip = (at: number) => (content: Buffer) => content.fill((content[at] ?? 0) ^ 1, at, at + 1);

async function contentOf(files: FaultFiles): Promise<string> {
  const names = await files.list(dataDirectory);
  return names.map((name) => `${name} ${files.contentOf(pathOf(name)).toString("base64")}`).join("\n");
}

describe("a directory that is sound", () => {
  it("is told by what a start would find in it", async () => {
    const files = await used();
    const { segments, snapshots, found, damage } = await inspect(files);
    expect({ segments, snapshots }).toEqual(await namesOf(files));
    expect(damage).toEqual([]);
    if (found === undefined) throw new Error("Nothing was found");
    expect(contentsOf(found.machine.tree)).toEqual({
      index: 45,
      keys: 45,
      directories: 1,
      bytes: found.machine.tree.bytes,
    });
    const store = await openStore(files);
    expect([found.machine.tree.bytes, found.machine.tree.index]).toEqual([store.bytes, store.indexes.storeIndex]);
    expect(found.machine.history.all).toEqual(store.events);
    expect(found.end.head.clusterId.toString(16)).toBe(store.identity.clusterId);
    await store.stop();
  });

  it("may end in a torn write, which is no damage", async () => {
    const files = await used();
    const { segments } = await namesOf(files);
    files.damage(pathOf(segments.at(-1)), (content) => Buffer.concat([content, Buffer.alloc(20, 7)]));
    const { found, damage } = await inspect(files);
    expect(damage).toEqual([]);
    expect(found?.end).toMatchObject({ segment: segments.at(-1), tornBytes: 20 });
  });

  it("is only read, and so is a damaged one", async () => {
    const sound = await used();
    const damaged = await used();
    for (const name of await damaged.list(dataDirectory)) damaged.damage(pathOf(name), flip(40));
    for (const files of [sound, damaged]) {
      files.damage(pathOf("left.tmp"), () => Buffer.from("of a crash"));
      const before = await contentOf(files);
      const calls = files.log.length;
      await inspect(files);
      expect(await contentOf(files)).toBe(before);
      expect(new Set(files.log.slice(calls))).toEqual(new Set(["list", "read"]));
    }
  });
});

describe("damage", () => {
  it("in a segment is told with its file and byte, and a start is not described", async () => {
    const files = await used();
    const name = (await namesOf(files)).segments.at(-2);
    files.damage(pathOf(name), flip(segmentHeadBytes + 50));
    const { found, damage } = await inspect(files);
    expect(damage[0]).toContain(`Reading "${pathOf(name)}": damaged at byte ${segmentHeadBytes}, before writes`);
    expect(found).toBeUndefined();
  });

  it("in a segment that no start needs is told, too", async () => {
    const files = await used();
    const [first] = (await namesOf(files)).segments;
    files.damage(pathOf(first), flip(0));
    const { found, damage } = await inspect(files);
    expect(damage).toEqual([expect.stringContaining(`Reading "${pathOf(first)}": damaged at byte 0`)]);
    expect(found?.machine.tree.index).toBe(45);
  });

  it.each([
    { name: "a changed byte", change: flip(100), what: /: bytes 0 to \d+ are not what its checksum says$/ },
    { name: "a changed head", change: flip(2), what: /: damaged at byte 0$/ },
    { name: "a cut", change: (content: Buffer) => content.subarray(0, 90), what: /: bytes 0 to 89 are not what/ },
    { name: "nothing in it", change: () => Buffer.alloc(0), what: /: damaged at byte 0$/ },
  ])("in the newest snapshot ($name) is told, with what a start finds all the same", async ({ change, what }) => {
    const files = await used();
    const newest = (await namesOf(files)).snapshots.at(-1);
    files.damage(pathOf(newest), change);
    const { found, damage } = await inspect(files);
    expect(damage).toHaveLength(1);
    expect(damage[0]).toContain(`Reading "${pathOf(newest)}"`);
    expect(damage[0]).toMatch(what);
    expect(found?.machine.tree.index).toBe(45);
  });

  it("in several files is told of each", async () => {
    const files = await used();
    const { segments, snapshots } = await namesOf(files);
    for (const name of [segments[0], snapshots[0], snapshots[1]]) files.damage(pathOf(name), flip(2));
    const { damage } = await inspect(files);
    for (const name of [segments[0], ...snapshots]) expect(damage.join("\n")).toContain(pathOf(name));
  });

  it("that is a missing segment is told by the record that should follow", async () => {
    const files = await used();
    const { segments } = await namesOf(files);
    await files.remove(pathOf(segments.at(-2)));
    expect((await inspect(files)).damage.join("\n")).toMatch(/begins with record \d+ .*, but record \d+ should follow/);
  });

  it("that is a snapshot without its log is told", async () => {
    const files = await used();
    for (const name of (await namesOf(files)).segments) await files.remove(pathOf(name));
    expect((await inspect(files)).damage).toEqual([
      expect.stringMatching(/its snapshot of record \d+ is not of this log/),
    ]);
  });
});

it.each([
  { name: "a segment", ending: "segments" as const, kind: "segment" as const },
  { name: "a snapshot", ending: "snapshots" as const, kind: "snapshot" as const },
])("$name of a later version cannot be judged, and says so", async ({ ending, kind }) => {
  const files = await used();
  files.damage(pathOf((await namesOf(files))[ending].at(-1)), ofVersion(kind, 9));
  await expect(inspect(files)).rejects.toMatchObject({ reason: "newerFormat" });
});

it("a directory without a store is not taken for one", async () => {
  await expect(inspect(memoryFiles())).rejects.toThrow(`Reading "${dataDirectory}": no store is in it`);
});
