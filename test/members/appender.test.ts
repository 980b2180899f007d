/** How an appender puts proposals into batches, and what it says of them when etcd does not answer or the log ends. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { WalError } from "../../src/store/core/log-port.ts";
import { Appender } from "../../src/store/etcd/appender.ts";
import { logStart } from "../../src/store/etcd/delivery.ts";
import { Layout } from "../../src/store/etcd/layout.ts";
import { LeaderClock } from "../../src/store/etcd/leader-clock.ts";
import { type EtcdProxy, startEtcdProxy } from "../helpers/etcd-proxy.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

describe.skipIf(missing("etcd"))("an appender", () => {
  let etcd: EtcdMembers;
  let proxy: EtcdProxy;
  let client: EtcdClient;

  beforeEach(async () => {
    etcd = await startEtcdV3();
    proxy = await startEtcdProxy(etcd.urls[0] ?? new URL("http://none"));
    client = EtcdClient.open({
      endpoints: [proxy.url],
      clock: systemClock,
      log: silentLog,
      random: Math.random,
      withinMs: 2_000,
    });
  });
  afterEach(async () => {
    client.close();
    await proxy.stop();
    await etcd.stop();
  });

  const layout = new Layout("/davit/");

  function openAppender(leaderRevision: () => number | undefined = () => undefined): Appender {
    return new Appender({
      client,
      layout,
      clock: systemClock,
      leaderClock: new LeaderClock(systemClock.nowMs),
      run: "1",
      epoch: 0,
      delivery: () => ({ add() {}, position: logStart }),
      wentBack() {},
      lost() {},
      leaderRevision,
      look() {},
      observe() {},
    });
  }

  async function batches(): Promise<number> {
    return (await client.range({ key: new Layout("/davit/").head })).keys[0]?.version ?? 0;
  }

  it("writes what comes beside a batch with the next one, and all of it before it is drained", async () => {
    await client.txn({ success: [{ put: { key: new Layout("/davit/").epoch, value: Buffer.from("0") } }] });
    const appender = openAppender();
    for (const byte of [1, 2, 3, 4]) void appender.propose(Uint8Array.of(byte)).catch(() => undefined);
    await appender.drain();
    expect(await batches()).toBe(2);
    appender.end(new WalError("closed", "The log ends"));
  });

  it("lets a full batch not wait for the one before it", async () => {
    proxy.pause();
    const appender = openAppender();
    for (const size of [1, 600_000, 600_000]) void appender.propose(new Uint8Array(size)).catch(() => undefined);
    expect(appender.queuedBytes).toBe(600_000);
    appender.end(new WalError("closed", "The log ends"));
  });

  it("says of what was sent that it may be there, and of the rest that it is not, when the log ends", async () => {
    proxy.pause();
    const appender = openAppender();
    const [first, second] = [1, 2].map((byte) => appender.propose(Uint8Array.of(byte)));
    const waiting = Promise.allSettled([first, second]);
    appender.end(new WalError("damaged", "The log ends"));
    const late = appender.propose(Uint8Array.of(4));
    await expect(first).rejects.toThrow("The log ends; the write may be there");
    await expect(second).rejects.toThrow(/^The log ends$/);
    await expect(late).rejects.toThrow(/^The log ends$/);
    await waiting;
  });

  it("gives less time to what has waited for its turn", async () => {
    const txn = vi.spyOn(client, "txn");
    proxy.pause();
    const appender = openAppender();
    await Promise.allSettled([1, 2, 3].map((byte) => appender.propose(Uint8Array.of(byte))));
    const [first = 0, second = 0] = txn.mock.calls.map(([, options]) => options?.withinMs);
    expect(second).toBeLessThan(first);
  });

  it("writes no fenced record of the time before another member led, even if this one leads again", async () => {
    const direct = EtcdClient.open({
      endpoints: etcd.urls,
      clock: systemClock,
      log: silentLog,
      random: Math.random,
      withinMs: 2_000,
    });
    const { epoch, leader } = layout;
    const lead = async () => {
      await direct.deleteRange({ key: leader });
      const made = { put: { key: leader, value: "{}" } };
      return (await direct.txn({ success: [made, { put: { key: epoch, value: "0" } }] })).header.revision;
    };
    let revision = await lead();
    const appender = openAppender(() => revision);
    proxy.pause();
    const sent = [1, 2].map((byte) => appender.propose(Uint8Array.of(byte)));
    const planned = appender.propose(Uint8Array.of(3), { fenced: true });
    revision = await lead();
    const later = appender.propose(Uint8Array.of(4), { fenced: true });
    proxy.resume();
    await expect(planned).rejects.toMatchObject({ name: "WalError", reason: "deposed" });
    appender.end(new WalError("closed", "It ends"));
    await Promise.allSettled([...sent, later]);
    direct.close();
  });
});
