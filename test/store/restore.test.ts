/** Restored directories: what comes back, what does not, and that there is never half of it. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ReadBackup, readBackup } from "../../src/store/backup/backup.ts";
import type { Submission } from "../../src/store/command/command.ts";
import { WalError } from "../../src/store/core/log-port.ts";
import { isAtOrBelow, storePath } from "../../src/store/core/node.ts";
import { StoreError } from "../../src/store/core/refusal.ts";
import { DirectoryPlace, type DirectoryPlaceOptions } from "../../src/store/move/directory-place.ts";
import { restore, restoreLeap } from "../../src/store/move/places.ts";
import type { Store } from "../../src/store/store.ts";
import type { StoredNode } from "../../src/store/tree/tree-walk.ts";
import { anySubmission } from "../helpers/any-command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { FaultFiles, type FaultPlan, seededPick } from "../helpers/fault-files.ts";
import { dataDirectory, memoryFiles, openStore } from "../helpers/test-store.ts";

async function submitAll(store: Store, commands: readonly Submission[]): Promise<void> {
  for (const command of commands) {
    await store.submit(command).catch((error: unknown) => expect(error).toBeInstanceOf(StoreError));
  }
}

const set = (path: string, value = path, ttlSeconds?: number): Submission => ({
  kind: "set",
  path: storePath(path),
  value,
  ...(ttlSeconds !== undefined && { ttlSeconds }),
});

const nodesOf = (store: Store) => [...store.dump()].map((node) => JSON.stringify(node)).toSorted();
const pathsOf = (store: Store) => [...store.dump()].map(({ path }) => path).toSorted();

async function backupOf(store: Store): Promise<ReadBackup> {
  const pieces: Uint8Array[] = [];
  for await (const piece of store.backup()) pieces.push(piece);
  return readBackup(async function* () {
    yield* pieces;
  }, "it");
}

/** A backup of these commands. */
async function backupAfter(commands: readonly Submission[], clock = new FakeClock()): Promise<ReadBackup> {
  const store = await openStore(undefined, { clock });
  await submitAll(store, commands);
  const backup = await backupOf(store);
  await store.stop();
  return backup;
}

const pick = seededPick(99);

const random = (bytes: number) => Uint8Array.from({ length: bytes }, () => pick(256));

function restoreTo(files: FaultFiles, backup: ReadBackup, options: Partial<DirectoryPlaceOptions> = {}) {
  const place = new DirectoryPlace({
    directory: dataDirectory,
    files,
    lock: () => ({ isHeld: () => true, release: () => {} }),
    random,
    doing: "Restoring to",
    ...options,
  });
  const keep = (node: StoredNode) => (isAtOrBelow(node.path, storePath("/davit")) ? undefined : node);
  return restore({ backup, place, keep, random, nowMs: 0 });
}

it("a restored store has every key as it was, with its indexes, as another cluster and from a later index on", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anySubmission, { maxLength: 40 }), async (commands) => {
      const store = await openStore(undefined, { clock: new FakeClock(0) });
      await submitAll(store, commands);
      const files = memoryFiles();
      // What has ended is about to be logged as ended, in either store.
      const [nodes, bytes, { storeIndex, raftIndex, raftTerm }] = [nodesOf(store), store.bytes, store.indexes];
      const restored = await restoreTo(files, await backupOf(store));
      const again = await openStore(files, { clock: new FakeClock(0) });
      expect(nodesOf(again)).toEqual(nodes);
      expect(again.bytes).toBe(bytes);
      expect(again.events).toEqual([]);
      expect(again.identity.clusterId).toBe(restored.clusterId);
      expect(again.identity.clusterId).not.toBe(store.identity.clusterId);
      expect(restored.index).toBe(storeIndex + restoreLeap);
      expect(again.indexes.storeIndex).toBe(storeIndex + restoreLeap);
      expect(again.indexes.raftIndex).toBe(raftIndex + restoreLeap);
      expect(again.indexes.raftTerm).toBeGreaterThan(raftTerm);
      for (const each of [store, again]) await each.stop();
    }),
  );
});

it("a restored store goes on: writes, restarts, and another backup of it", async () => {
  const files = memoryFiles();
  await restoreTo(files, await backupAfter([set("/a")]));
  const store = await openStore(files);
  const { event } = await store.submit({ kind: "createInOrder", path: storePath("/queue"), value: "x" });
  expect(event.node.modifiedIndex).toBe(1 + restoreLeap + 1);
  await store.stop();
  const again = await openStore(files.reopened());
  expect(pathsOf(again)).toEqual(["/", "/a", "/queue", "/queue/00000000000001000002"]);
  const second = memoryFiles();
  expect((await restoreTo(second, await backupOf(again))).index).toBe(2 + 2 * restoreLeap);
  await again.stop();
});

it("whoever waits for an index of the lost store is told 401, and never waits", async () => {
  const files = memoryFiles();
  const backup = await backupAfter([set("/a"), set("/a"), set("/a")]);
  await restoreTo(files, backup);
  const store = await openStore(files);
  const nobody = { event: () => true, closed: () => {} };
  for (const waitIndex of [1, 3, 4, 500_000, 3 + restoreLeap]) {
    const watch = () => store.watch({ path: storePath("/a"), waitIndex }, nobody);
    expect(watch).toThrow(/^The event in requested index is outdated and cleared/);
  }
  const handle = store.watch({ path: storePath("/a"), waitIndex: 4 + restoreLeap }, nobody);
  expect(store.watcherCount).toBe(1);
  handle.close();
  await store.stop();
});

it("what davit itself keeps stays out: machines are answered from what its source says now", async () => {
  const commands = [set("/davit/synced", "{}"), set("/davit/_secrets/ns/p/h"), set("/davits"), set("/users/davit")];
  const files = memoryFiles();
  await restoreTo(files, await backupAfter(commands));
  const store = await openStore(files);
  expect(pathsOf(store)).toEqual(["/", "/davits", "/users", "/users/davit"]);
  await store.stop();
});

it("keys end when they would have, those that ended since the backup at once", async () => {
  const clock = new FakeClock();
  const backup = await backupAfter([set("/short", "x", 60), set("/long", "x", 600)], clock);
  await clock.advance(300_000);
  const files = memoryFiles();
  await restoreTo(files, backup);
  const store = await openStore(files, { clock });
  expect(() => store.get(storePath("/short"))).toThrow("Key not found");
  expect(store.get(storePath("/long")).node.ttlSeconds).toBe(300);
  await clock.advance(300_000);
  expect(() => store.get(storePath("/long"))).toThrow("Key not found");
  await store.stop();
});

describe("a directory that is not empty", () => {
  it.each(["0000000000000001.log", "0000000000000001.snapshot", "x.tmp", "damaged-1", ".hidden"])(
    "is refused and left as it is when %s is in it",
    async (name) => {
      const files = memoryFiles();
      files.damage(`${dataDirectory}/${name}`, () => Buffer.from("of somebody"));
      const restoring = restoreTo(files, await backupAfter([set("/a")]));
      await expect(restoring).rejects.toThrow(
        `Restoring to "${dataDirectory}": it is not empty, "${name}" is in it; give another --data-dir, or move away`,
      );
      expect(await files.list(dataDirectory)).toEqual([name]);
    },
  );

  it("is not one that has only what a new file system or a refused start left", async () => {
    const files = memoryFiles();
    for (const name of ["lost+found", "lock.db"]) files.damage(`${dataDirectory}/${name}`, () => Buffer.alloc(0));
    await restoreTo(files, await backupAfter([set("/a")]));
    const store = await openStore(files);
    expect(pathsOf(store)).toEqual(["/", "/a"]);
    await store.stop();
  });
});

it("a directory that another davit has is refused, and nothing is written", async () => {
  const files = memoryFiles();
  const lock = () => {
    throw new WalError("locked", "Locking: another davit uses it");
  };
  await expect(restoreTo(files, await backupAfter([]), { lock })).rejects.toMatchObject({ reason: "locked" });
  expect(await files.list(dataDirectory)).toEqual([]);
});

describe("a restore that fails or is cut short", () => {
  const commands = Array.from({ length: 5 }, (_, number) => set(`/k${number}`));
  const all = ["/", ...commands.map((_, number) => `/k${number}`)];

  /** Restores on a disk that fails as planned; gives the disk. */
  async function restoredOn(plan: FaultPlan, seed: number) {
    const files = new FaultFiles(seededPick(seed), plan);
    const outcome = await restoreTo(files, await backupAfter(commands)).then(
      () => "restored" as const,
      (error: unknown) => {
        expect(error).toMatchObject({ name: "WalError", reason: "unusable" });
        return "failed" as const;
      },
    );
    return { files, outcome };
  }

  /** What a start finds: nothing was restored, everything was, or it is refused. */
  async function foundBy(files: FaultFiles): Promise<"nothing" | "everything" | "refused"> {
    try {
      const store = await openStore(files);
      const paths = pathsOf(store);
      await store.stop();
      if (paths.length === 1) return "nothing";
      expect(paths).toEqual(all);
      return "everything";
    } catch (error) {
      expect(error).toMatchObject({ reason: "damaged" });
      return "refused";
    }
  }

  it("after a crash at any call leaves nothing, everything, or what a start refuses", async () => {
    const found = new Set<string>();
    let isClean = false;
    for (let crashAt = 1; !isClean; crashAt++) {
      for (let seed = 1; seed <= 20; seed++) {
        const { files, outcome } = await restoredOn({ crashAt }, seed);
        isClean = files.faults === 0;
        const what = await foundBy(files.afterCrash());
        if (outcome === "restored") expect(what).toBe("everything");
        found.add(what);
      }
    }
    expect([...found].toSorted()).toEqual(["everything", "nothing", "refused"]);
  });

  it("after a crash succeeds a second time, unless everything is there", async () => {
    let isClean = false;
    const outcomes = new Set<string>();
    for (let crashAt = 1; !isClean; crashAt++) {
      for (let seed = 1; seed <= 20; seed++) {
        const { files } = await restoredOn({ crashAt }, seed);
        isClean = files.faults === 0;
        const disk = files.afterCrash();
        const outcome = await restoreTo(disk, await backupAfter(commands)).then(
          () => "restored",
          (error: unknown) => {
            expect(error).toMatchObject({ reason: "unusable" });
            return "refused";
          },
        );
        expect(await foundBy(disk)).toBe("everything");
        outcomes.add(outcome);
      }
    }
    expect([...outcomes].toSorted()).toEqual(["refused", "restored"]);
  });

  it.each(["ENOSPC", "EIO"])(
    "after one call that fails with %s leaves an empty directory, or the whole",
    async (code) => {
      let isClean = false;
      for (let failAt = 1; !isClean; failAt++) {
        const { files, outcome } = await restoredOn({ failAt, code }, failAt);
        isClean = files.faults === 0;
        const left = await files.reopened().list(dataDirectory);
        const isWhole = left.length === 2 && (await foundBy(files.reopened())) === "everything";
        expect([outcome, isWhole || left.length === 0]).toEqual([outcome, true]);
        if (outcome === "restored") expect(isWhole).toBe(true);
      }
    },
  );
});
