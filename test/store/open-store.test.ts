import { describe, expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import { type OnDamage, openStore as open } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/store.ts";
import { segmentHeadBytes } from "../../src/store/wal/record.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { ofVersion } from "../helpers/later-version.ts";
import { dataDirectory, memoryFiles, openStore, silentLog } from "../helpers/test-store.ts";

const oldest = `${dataDirectory}/0000000000000001.log`;
const segments = { maxSegmentBytes: segmentHeadBytes + 1 };
const pathsOf = (store: Store) => [...store.dump()].map(({ path }) => path).toSorted();

/** A log of several segments, with a snapshot or two. */
async function written(recordsPerSnapshot = 4): Promise<FaultFiles> {
  const files = memoryFiles();
  const store = await openStore(files, {
    ...segments,
    snapshotInterval: { records: recordsPerSnapshot, bytes: 2 ** 30 },
  });
  for (const name of ["a", "b", "c", "d", "e"]) {
    await store.submit({ kind: "set", path: storePath(`/${name}`), value: name });
    await new FakeClock().advance(0);
  }
  await store.stop();
  return files.reopened();
}

async function damaged(): Promise<FaultFiles> {
  const files = await written();
  for (const name of await files.list(dataDirectory)) {
    if (name.endsWith(".snapshot")) files.damage(`${dataDirectory}/${name}`, () => Buffer.alloc(3));
  }
  files.damage(oldest, (content) => content.fill(7, segmentHeadBytes));
  return files;
}

/** Opens it, with a log that keeps what is told at error. */
async function opened(files: FaultFiles, onDamage: OnDamage) {
  const errors: (readonly [string, object])[] = [];
  const pick = seededPick(99);
  const store = await open({
    directory: dataDirectory,
    files,
    lock: () => ({ isHeld: () => true, release: () => {} }),
    clock: new FakeClock(),
    random: (bytes) => Uint8Array.from({ length: bytes }, () => pick(256)),
    log: { ...silentLog, error: (data, message) => errors.push([message, data]) },
    onDamage,
    ...segments,
  });
  return { store, errors };
}

function contentsOf(files: FaultFiles, directory: string, names: readonly string[]) {
  return names.map((name) => files.contentOf(`${directory}/${name}`).toString("hex"));
}

describe("a damaged log", () => {
  it("is refused with `refuse`, and left as it is", async () => {
    const files = await damaged();
    const names = await files.list(dataDirectory);
    const before = contentsOf(files, dataDirectory, names);
    await expect(opened(files, "refuse")).rejects.toMatchObject({ reason: "damaged" });
    expect(await files.list(dataDirectory)).toEqual(names);
    expect(contentsOf(files, dataDirectory, names)).toEqual(before);
  });

  it("is kept in a folder with `move-aside`, and the store begins empty and as another one", async () => {
    const files = await damaged();
    const names = await files.list(dataDirectory);
    const before = contentsOf(files, dataDirectory, names);
    const old = await openStore(await written());
    const { store, errors } = await opened(files, "move-aside");
    expect(pathsOf(store)).toEqual(["/"]);
    expect(store.identity.clusterId).not.toBe(old.identity.clusterId);
    const aside = `${dataDirectory}/damaged-1`;
    expect(await files.list(aside)).toEqual(names);
    expect(contentsOf(files, aside, names)).toEqual(before);
    expect(errors.filter(([message]) => !message.startsWith("snapshot"))).toEqual([
      [
        "store was damaged, it begins empty",
        { movedTo: aside, reason: expect.stringMatching(new RegExp(`^Reading "${oldest}": damaged at byte 72`)) },
      ],
    ]);
    await store.submit({ kind: "set", path: storePath("/new"), value: "x" });
    await store.stop();
    await old.stop();
    const again = await opened(files.reopened(), "move-aside");
    expect([pathsOf(again.store), again.errors]).toEqual([["/", "/new"], []]);
    await again.store.stop();
  });

  it("is never opened as a shorter one, at whichever call of moving it the power goes", async () => {
    const pristine = await damaged();
    for (let crashAt = 1; ; crashAt++) {
      const files = pristine.reopened({ crashAt });
      await opened(files, "move-aside").then(
        ({ store }) => store.stop(),
        () => undefined,
      );
      const { store } = await opened(files.afterCrash(), "move-aside");
      expect(pathsOf(store)).toEqual(["/"]);
      await store.stop();
      if (files.faults === 0) break;
    }
  });
});

it.each<OnDamage>(["refuse", "move-aside"])("a whole log is opened with `%s`", async (onDamage) => {
  const { store, errors } = await opened(await written(), onDamage);
  expect(pathsOf(store)).toEqual(["/", "/a", "/b", "/c", "/d", "/e"]);
  expect(errors).toEqual([]);
  await store.stop();
});

it("a disk that cannot read the snapshots is refused with `move-aside`, too: they may be whole", async () => {
  const files = await written(2);
  const names = await files.list(dataDirectory);
  expect(names.filter((name) => name.endsWith(".snapshot"))).toHaveLength(2);
  // Each snapshot is one call, and whatever else is read can be.
  await expect(opened(files.reopened({ failOnly: "read", failAt: 1, failFor: 2 }), "move-aside")).rejects.toMatchObject(
    {
      reason: "unusable",
      message: `Opening "${dataDirectory}": the disk fails to read or write; see to it, then start again`,
    },
  );
  expect(await files.list(dataDirectory)).toEqual(names);
});

it("what a later davit wrote is refused with `move-aside`, too", async () => {
  const files = await written();
  const newest = (await files.list(dataDirectory)).findLast((name) => name.endsWith(".log"));
  files.damage(`${dataDirectory}/${newest}`, ofVersion("segment", 3));
  await expect(opened(files, "move-aside")).rejects.toMatchObject({ reason: "newerFormat" });
});
