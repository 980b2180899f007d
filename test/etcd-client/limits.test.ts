/** The client of etcd v3 at etcd's limits: a full database, large requests, large watches and slow readers. */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EtcdClient, type EtcdError, type EtcdWatchPart } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

const mebibyte = 1024 * 1024;

describe.skipIf(missing("etcd"))("EtcdClient at etcd's limits", () => {
  let members: EtcdMembers;
  let small: EtcdMembers;
  let client: EtcdClient;
  let cramped: EtcdClient;
  const { signal } = new AbortController();
  const put = (key: string, length: number) => ({ success: [{ put: { key, value: Buffer.alloc(length, 7) } }] });

  beforeAll(async () => {
    [members, small] = await Promise.all([startEtcdV3(), startEtcdV3({ args: ["--quota-backend-bytes=1000000"] })]);
    // A disk that others use, too, may take its time for a mebibyte.
    const shared = { clock: systemClock, log: silentLog, random: () => 0, tryMs: 30_000, withinMs: 30_000 };
    client = EtcdClient.open({ ...shared, endpoints: members.urls });
    cramped = EtcdClient.open({ ...shared, endpoints: small.urls });
  });

  afterAll(async () => {
    for (const each of [client, cramped]) each.close();
    await Promise.all([members.stop(), small.stop()]);
  });

  /** The keys of the next events, and the number of fragments; ends the watch. */
  async function eventsOf(parts: AsyncGenerator<EtcdWatchPart>, count: number) {
    const keys: string[] = [];
    let fragments = 0;
    for await (const { events, isFragment } of parts) {
      if (isFragment) fragments += 1;
      keys.push(...events.map(({ key: { key } }) => key));
      if (keys.length >= count) break;
    }
    return { keys, fragments };
  }

  it("says that the database is full, and that what was written may be there", async () => {
    const errors = new Map<string, unknown>();
    // Many at a time: etcd checks its quota before and after it has carried out a write.
    const write = async (key: string) => await cramped.txn(put(key, 10_000)).catch((error) => errors.set(key, error));
    for (let round = 0; errors.size === 0; round++) {
      await Promise.all(Array.from({ length: 100 }, (_, at) => write(`full/${round}/${at}`)));
    }
    // Of one run, none of a hundred is there; of another one, all are.
    for (const error of errors.values()) expect(error).toMatchObject({ reason: "noSpace", mayBeDone: true });
    expect((await cramped.status()).errors.join()).toContain("NOSPACE");
    // Reads, leases that end and deletions go on.
    const { keys } = await cramped.range({ key: "full/", end: "full0", keysOnly: true });
    expect(keys.length).toBeGreaterThan(0);
    expect(await cramped.deleteRange({ key: "full/", end: "full0" })).toBe(keys.length);
  });

  it("says that a request is too large", async () => {
    await expect(client.txn(put("large", 1.6 * mebibyte))).rejects.toMatchObject({
      reason: "tooLarge",
      mayBeDone: false,
    });
    await expect(client.txn(put("large", 4 * mebibyte))).rejects.toMatchObject({
      reason: "tooLarge",
      mayBeDone: false,
    });
    expect((await client.range({ key: "large" })).keys).toEqual([]);
  });

  it("reads a long history in fragments, while other requests go on beside a watch that nobody reads", async () => {
    const keys = Array.from({ length: 48 }, (_, at) => `history/${at}`);
    for (const key of keys) await client.txn(put(key, mebibyte));
    const { header } = await client.range({ key: "history/0", keysOnly: true });
    const watch = { key: "history/", end: "history0", startRevision: header.revision - keys.length + 1 };
    const stalled = Array.from({ length: 4 }, () => client.watch(watch, { signal }));
    for (const each of stalled) await each.next();
    expect((await client.range({ key: "history/7" })).keys[0]?.value.byteLength).toBe(mebibyte);
    const read = await eventsOf(client.watch(watch, { signal }), keys.length);
    expect(read.keys).toEqual(keys);
    expect(read.fragments).toBeGreaterThan(0);
    // Readers that come back late get everything, too.
    for (const each of stalled) expect((await eventsOf(each, keys.length)).keys).toEqual(keys);
  });

  it("ends everything when it is closed", async () => {
    const other = EtcdClient.open({ endpoints: members.urls, clock: systemClock, log: silentLog, random: () => 0 });
    const watch = other.watch({ key: "x" }, { signal });
    await watch.next();
    const ends = [watch.next(), other.range({ key: "x" }), other.txn(put("x", 1))];
    other.close();
    for (const end of ends) await expect(end).rejects.toMatchObject({ name: "EtcdError", reason: "unavailable" });
    const error: EtcdError = await other.range({ key: "x" }).catch((thrown) => thrown);
    expect(error).toMatchObject({ reason: "unavailable", mayBeDone: false });
  });

  it("leaves nothing behind that keeps the process alive", async () => {
    const program = fileURLToPath(new URL("client-process.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [program, members.urls[0]?.href ?? ""]);
    expect(stdout).toBe("closed\n");
  });
});
