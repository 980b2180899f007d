/** Batches that differ from those of davit's controller: see `SubmitOptions`. */

import { expect, it } from "vitest";
import type { SubmitOptions } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FaultFiles, seededPick } from "../helpers/fault-files.ts";
import { openStore } from "../helpers/test-store.ts";

const reserveBytes = 64 * 1024;

async function fullStore(): Promise<Store> {
  const files = new FaultFiles(seededPick(1));
  const store = await openStore(files, { reserveBytes });
  files.capacityBytes = files.usedBytes;
  await expect(submit(store, "first", { frees: false })).rejects.toMatchObject({ refusal: "logFailed" });
  return store;
}

function submit(store: Store, name: string, options?: SubmitOptions) {
  const path = storePath(`/davit/${name}`);
  return store.submit({ kind: "batch", commands: [{ kind: "set", path, value: "1" }] }, options);
}

it("a batch that can wait does not use the reserve of a full disk, and others do", async () => {
  const store = await fullStore();
  expect(store.status).toBe("full");
  await submit(store, "second");
  await submit(store, "third", { fenced: false });
  await expect(submit(store, "fourth", { frees: false, fenced: false })).rejects.toMatchObject({
    refusal: "logFailed",
  });
  expect(store.getFile(storePath("/davit/third"))?.value).toBe("1");
  expect(store.getFile(storePath("/davit/fourth"))).toBeUndefined();
  await store.stop();
});

it("a batch whose condition does not hold changes nothing", async () => {
  const store = await openStore();
  const { index } = store.get(storePath("/"));
  const path = storePath("/a");
  const commands = [
    { kind: "create", path: storePath("/b"), value: "1" },
    { kind: "compareAndSwap", path, value: "2", expected: { value: "1" } },
  ] as const;
  await expect(store.submit({ kind: "batch", commands }, { fenced: false })).rejects.toMatchObject({
    refusal: "keyNotFound",
  });
  await store.submit({ kind: "set", path, value: "1" });
  await store.submit({ kind: "batch", commands }, { fenced: false });
  await expect(store.submit({ kind: "batch", commands }, { fenced: false })).rejects.toMatchObject({
    refusal: "keyExists",
  });
  expect(store.getFile(path)?.value).toBe("2");
  expect(store.indexes.storeIndex).toBe(index + 3);
  await store.stop();
});
