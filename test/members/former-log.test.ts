/** A prefix in etcd that was emptied and is used again. etcd still has the deleted batches, and reports them to a watch. */

import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { storePath } from "../../src/store/core/node.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { leaderOf, membersOnOneEtcd, set } from "./members.ts";

describe.skipIf(missing("etcd"))("a store in a prefix that had another one", () => {
  const members = membersOnOneEtcd();

  it("takes nothing of the former log", { timeout: 60_000 }, async () => {
    const former = await members.open("m0");
    await leaderOf([former]);
    for (let at = 0; at < 20; at++) await former.store.submit(set("/former", String(at)));
    await former.stop();
    members.all = [];
    const { endpoints, prefix } = members;
    const client = EtcdClient.open({ endpoints, clock: systemClock, log: silentLog, random: () => 0 });
    try {
      await client.deleteRange({ key: prefix, end: `${prefix.slice(0, -1)}0` });
    } finally {
      client.close();
    }

    const member = await members.open("m0");
    await leaderOf([member]);
    await member.store.submit(set("/new", "1"));
    // etcd reports old revisions to a new watch after up to 100 ms.
    await setTimeout(500);
    await member.store.submit(set("/new", "2"));
    expect(member.log.messages).not.toContain("log is lost");
    expect(member.store.get(storePath("/new")).node.value).toBe("2");
    expect(() => member.store.get(storePath("/former"))).toThrow();
  });
});
