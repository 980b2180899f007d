/** What a member reads about the leader may arrive after it has become the leader itself. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Layout } from "../../src/store/etcd/layout.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { type HeardLog, heardLog, openStoreMember, set } from "./members.ts";

const prefix = "/davit/1/";
const soon = { timeout: 10_000 };
const { membership, leader } = new Layout(prefix);

describe.skipIf(missing("etcd"))("a member that became the leader", () => {
  let etcd: EtcdMembers;
  let client: EtcdClient;
  beforeEach(async () => {
    etcd = await startEtcdV3();
    client = EtcdClient.open({ endpoints: etcd.urls, clock: systemClock, log: silentLog, random: () => 0 });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    client.close();
    await etcd.stop();
  });

  const makeLeader = () => client.txn({ success: [{ put: { key: leader, value: Buffer.from('{"id":"former"}') } }] });
  const removeLeader = () => client.txn({ success: [{ delete: { key: leader } }] });

  it.each([
    { what: "list without a leader", prepare: async () => {} },
    { what: "list with the former leader", prepare: makeLeader, whileHeld: removeLeader },
  ])("leads on when an older $what arrives", async ({ prepare, whileHeld }) => {
    await prepare();
    const { range, txn } = EtcdClient.prototype;
    const log: HeardLog = { ...heardLog(), child: () => log };
    const mayClaim = Promise.withResolvers<void>();
    let isHeld = true;
    vi.spyOn(EtcdClient.prototype, "txn").mockImplementation(async function (this: EtcdClient, ...args) {
      if (args[0].when?.some(({ key }) => key === leader)) await mayClaim.promise;
      return txn.apply(this, args);
    });
    vi.spyOn(EtcdClient.prototype, "range").mockImplementation(async function (this: EtcdClient, ...args) {
      const answer = await range.apply(this, args);
      if (args[0].end !== membership.end || !isHeld) return answer;
      isHeld = false;
      await whileHeld?.();
      mayClaim.resolve();
      await expect.poll(() => log.messages, soon).toContain("elected leader");
      return answer;
    });
    const member = await openStoreMember("a", { endpoints: etcd.urls, prefix, log });
    try {
      await expect.poll(() => isHeld).toBe(false);
      for (let at = 0; at < 20; at++) await member.store.submit(set(`/key/${at}`, "x"));
      expect(log.messages).not.toContain("leads no more");
    } finally {
      await member.stop();
    }
  });
});
