/**
 * Members that know different formats of batches, as in an upgrade of one after the other. A member here may say that
 * it knows only the first one.
 */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { EtcdClient } from "../../src/store/etcd/client/etcd-client.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { leaderOf, openStoreMember, set, settled, stateOf } from "./members.ts";

const soon = { timeout: 30_000, interval: 50 };

describe.skipIf(missing("etcd"))("members of two versions", { timeout: 60_000 }, () => {
  let etcd: EtcdMembers;
  let client: EtcdClient;
  let places = 0;
  const prefix = () => `/davit/${places}/`;
  const open = (name: string, knownFormat: number) =>
    openStoreMember(name, { endpoints: etcd.urls, prefix: prefix(), knownFormat });

  beforeAll(async () => {
    etcd = await startEtcdV3();
    client = EtcdClient.open({ endpoints: etcd.urls, clock: systemClock, log: silentLog, random: () => 0 });
  });
  afterAll(async () => {
    client.close();
    await etcd.stop();
  });
  beforeEach(() => {
    places += 1;
  });

  /** The formats of all batches in the log. */
  async function formats(): Promise<readonly number[]> {
    const { keys } = await client.range({ key: `${prefix()}l/0/`, end: `${prefix()}l/00` });
    return keys.toSorted((a, b) => a.modRevision - b.modRevision).map(({ value }) => value[0] ?? 0);
  }

  const level = async () => {
    const [key] = (await client.range({ key: `${prefix()}level` })).keys;
    return key === undefined ? undefined : Buffer.from(key.value).toString();
  };

  it("write what all of them know, and the later format once the last older one is gone", async () => {
    const older = await open("older", 1);
    const newer = await open("newer", 2);
    await leaderOf([older, newer]);
    await newer.store.submit(set("/a", "1"));
    await older.store.submit(set("/b", "1"));
    expect(new Set(await formats())).toEqual(new Set([1]));
    expect(await level()).toBeUndefined();
    await older.stop();
    await expect.poll(level, soon).toBe("2");
    await expect
      .poll(async () => {
        await newer.store.submit(set("/c", "1"));
        return (await formats()).at(-1);
      }, soon)
      .toBe(2);
    await newer.store.submit(set("/large", "x".repeat(2_000_000)));
    await expect(open("older", 1)).rejects.toThrow(
      /^Reading .*: its version is 2 and this davit knows 1; start the davit that wrote it, or a later one/,
    );
    const second = await open("second", 2);
    const [one, two] = await settled([newer, second]);
    if (one !== undefined && two !== undefined) expect(stateOf(two)).toBe(stateOf(one));
    await second.stop();
    await newer.stop();
  });

  it("raise the format on a condition that fails when somebody joined", async () => {
    const members = { key: `${prefix()}members/`, end: `${prefix()}members0` };
    const join = (id: string) =>
      client.txn({ success: [{ put: { key: members.key + id, value: Buffer.from("{}") } }] });
    await join("a");
    const { header } = await client.range(members);
    const nobodyJoined = async () => {
      const when = [{ ...members, is: "less", createRevision: header.revision + 1 } as const];
      return (await client.txn({ when, success: [] })).succeeded;
    };
    // A member that writes its key again has not joined.
    await join("a");
    expect(await nobodyJoined()).toBe(true);
    await join("b");
    expect(await nobodyJoined()).toBe(false);
  });

  it("keep a davit out that knows less, even before a record of the later format", async () => {
    const older = await open("older", 1);
    await leaderOf([older]);
    await older.store.submit(set("/a", "1"));
    await client.txn({ success: [{ put: { key: `${prefix()}level`, value: Buffer.from("2") } }] });
    await expect.poll(() => older.store.status, soon).toBe("lost");
    expect(older.store.trouble).toContain("its version is 2 and this davit knows 1");
    await older.stop();
    await expect(open("older", 1)).rejects.toThrow("Reading the log in etcd: its version is 2 and this davit knows 1");
    const newer = await open("newer", 2);
    await newer.store.submit(set("/b", "1"));
    await newer.stop();
  });
});
