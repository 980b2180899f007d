/** A purge removes what was deleted or overwritten: from every file of the store, and from its history. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { SecretKeys } from "../../src/app/core/secret-keys.ts";
import { secretsRoot } from "../../src/model/objects/documents.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import type { FaultFiles } from "../helpers/fault-files.ts";
import { dataDirectory, memoryFiles, openStore, silentLog } from "../helpers/test-store.ts";
import { keyLine } from "../helpers/text-keys.ts";

const soon = { timeout: 20_000, interval: 5 };
const value = "join-token-4711";
const key = storePath("/davit/_secrets/lab/web/abc");

async function filesWith(files: FaultFiles, text: string): Promise<readonly string[]> {
  const names = await files.list(dataDirectory);
  return names.filter((name) => files.contentOf(`${dataDirectory}/${name}`).includes(text));
}

/** A store whose log, snapshots and history have the value, but not its tree. */
async function used(files: FaultFiles): Promise<Store> {
  const store = await openStore(files, { snapshotInterval: { records: 5, bytes: 2 ** 30 } });
  await store.submit({ kind: "set", path: key, value });
  for (let number = 0; number < 12; number++)
    await store.submit({ kind: "set", path: storePath(`/user/${number}`), value: `user-${number}` });
  await store.submit({ kind: "delete", path: key });
  return store;
}

describe("a purge", () => {
  it("leaves the value in no file and no event, and everything else as it was", async () => {
    const files = memoryFiles();
    const store = await used(files);
    expect(await filesWith(files, value)).not.toEqual([]);
    expect(JSON.stringify(store.events)).toContain(value);
    const before = { dump: [...store.dump()], index: store.indexes.storeIndex };
    await store.purge();
    expect(await filesWith(files, value)).toEqual([]);
    expect(store.events).toEqual([]);
    expect({ dump: [...store.dump()], index: store.indexes.storeIndex }).toEqual(before);
    await store.submit({ kind: "set", path: storePath("/user/later"), value: "later" });
    expect(store.events).toHaveLength(1);
    await store.stop();
    const again = await openStore(files.reopened());
    expect(again.getFile(storePath("/user/later"))?.value).toBe("later");
    expect([...again.dump()].length).toBe(before.dump.length + 1);
    expect(await filesWith(files, value)).toEqual([]);
    await again.stop();
  });

  it("ends a paused watch that still needs the history, and refuses one from an earlier index", async () => {
    const store = await used(memoryFiles());
    const ends: string[] = [];
    const events: number[] = [];
    const listener = {
      event: ({ node }: { readonly node: { readonly modifiedIndex: number } }) => events.push(node.modifiedIndex) > 0,
      closed: (end: string) => void ends.push(end),
    };
    const paused = store.watch({ path: storePath("/user"), recursive: true, stream: true, waitIndex: 2 }, listener);
    const flowing = store.watch({ path: storePath("/user"), recursive: true, stream: true }, listener);
    flowing.resume();
    await store.purge();
    expect(ends).toEqual(["overtaken"]);
    paused.resume();
    expect(() => store.watch({ path: storePath("/user"), waitIndex: 2 }, listener)).toThrow("history has been cleared");
    await store.submit({ kind: "set", path: storePath("/user/later"), value: "later" });
    expect(events).toEqual([store.indexes.storeIndex]);
    await store.stop();
  });

  it("is complete if writes come meanwhile, or another purge", async () => {
    const files = memoryFiles();
    const store = await used(files);
    const purges = [store.purge(), store.purge()];
    for (let number = 0; number < 30; number++)
      await store.submit({ kind: "set", path: storePath(`/user/${number}`), value: `again-${number}` });
    await Promise.all(purges);
    expect(await filesWith(files, value)).toEqual([]);
    await store.stop();
    const again = await openStore(files.reopened());
    expect(again.getFile(storePath("/user/29"))?.value).toBe("again-29");
    await again.stop();
  });

  it("changes nothing of a store that stops", async () => {
    const store = await used(memoryFiles());
    await store.stop();
    await expect(store.purge()).resolves.toBe(false);
  });

  it("of texts of Secrets is repeated if the disk was full", async () => {
    const folder = await mkdtemp(join(tmpdir(), "davit-purge-"));
    const clock = new FakeClock();
    const files = memoryFiles();
    const store = await openStore(files, { clock });
    const purge = vi.spyOn(store, "purge");
    await writeFile(join(folder, "keys"), keyLine(1), { mode: 0o600 });
    const keys = new SecretKeys({ path: join(folder, "keys"), clock, log: silentLog });
    await keys.start();
    const fill = () => {
      files.capacityBytes = files.usedBytes;
    };
    const ends = [store.follow(secretsRoot, { replaced: () => undefined, changed: fill }), keys.followAndPurge(store)];
    try {
      files.capacityBytes = Number.POSITIVE_INFINITY;
      await store.submit({ kind: "set", path: key, value });
      files.capacityBytes = Number.POSITIVE_INFINITY;
      await store.submit({ kind: "delete", path: key });
      await expect.poll(() => purge.mock.settledResults, soon).toMatchObject([{ value: false }]);
      expect(await filesWith(files, value)).not.toEqual([]);
      files.capacityBytes = Number.POSITIVE_INFINITY;
      const inASecond = () => clock.advance(1_000).then(() => filesWith(files, value));
      await expect.poll(inASecond, soon).toEqual([]);
    } finally {
      for (const end of ends) end();
      keys.stop();
      await store.stop();
      await rm(folder, { recursive: true });
    }
  });
});
