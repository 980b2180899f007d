/** Batches of other versions in a log: of an earlier davit, which are read, and of a later one, which are refused. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { encodeRecord } from "../../src/store/command/command-codec.ts";
import { storePath } from "../../src/store/core/node.ts";
import { encodeBatch } from "../../src/store/etcd/batches.ts";
import { Layout } from "../../src/store/etcd/layout.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { leaderOf, openStoreMember, set } from "./members.ts";

const soon = { timeout: 30_000, interval: 50 };

describe.skipIf(missing("etcd"))("a log with batches of several versions", { timeout: 60_000 }, () => {
  let etcd: EtcdMembers;
  let client: EtcdClient;
  let places = 0;
  const prefix = () => `/davit/${places}/`;
  const open = (name: string) => openStoreMember(name, { endpoints: etcd.urls, prefix: prefix() });

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

  /** Writes a batch with one command as a davit of another version does. */
  async function write(version: number, path: string): Promise<void> {
    const layout = new Layout(prefix());
    const record = encodeRecord({ atMs: 1, command: { kind: "set", path: storePath(path), value: "x" } });
    const value = Buffer.from(encodeBatch({ kind: "records", clock: { atMs: 1, term: 0 }, records: [record] }));
    value.writeUInt8(version);
    const id = `other/${version}`;
    const puts = [
      { key: layout.head, value: id },
      { key: layout.batch({ epoch: 0, id }), value },
    ];
    await client.txn({ success: puts.map((put) => ({ put })) });
  }

  it("reads earlier ones, and the key that 0.2 left for its format", async () => {
    const layout = new Layout(prefix());
    const puts = { [layout.meta]: '{"cluster":"7"}', [layout.epoch]: "0", [`${prefix()}level`]: "1" };
    const success = Object.entries(puts).map(([key, text]) => ({ put: { key, value: text } }));
    await client.txn({ success });
    await write(1, "/earlier");
    const member = await open("a");
    await leaderOf([member]);
    await member.store.submit(set("/later", "1"));
    expect(member.store.get(storePath("/earlier")).node.value).toBe("x");
    expect(member.store.membership.strangeKeys.size).toBe(0);
    await member.stop();
  });

  it("keeps a davit out that knows less, and says why", async () => {
    const refusal = "its version is 3 and this davit knows 2; start the davit that wrote it, or a later one";
    const member = await open("a");
    await leaderOf([member]);
    await member.store.submit(set("/a", "1"));
    await write(3, "/a");
    await expect.poll(() => member.store.status, soon).toBe("lost");
    expect(member.store.trouble).toContain(refusal);
    expect(member.store.get(storePath("/a")).node.value).toBe("1");
    await expect(member.store.submit(set("/a", "2"))).rejects.toThrow(refusal);
    await member.stop();
    await expect(open("b")).rejects.toThrow(`Reading a batch of the log in etcd: ${refusal}`);
  });
});
