/**
 * etcd is restored from an older copy while a davit does not reach it. When that davit is back, etcd's log is longer
 * than what it has applied, and even its revisions fit: but what it has applied last is not in that log. It must not go
 * on, and no proof of the source may be about its copy: an Install of the lost history would be given to machines.
 */

import { cp, rm } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EtcdClient, EtcdError } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { storePath } from "../../src/store/core/node.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { leaderOf, openStoreMember, type StoreMember, type StoreMemberOptions, set, settled } from "./members.ts";

const prefix = "/davit/1/";
const limitMs = 60_000;
const soon = { timeout: 20_000 };
const group = storePath("/davit/group");

interface LoseOptions {
  readonly isHeld?: boolean;
  readonly cutOff?: Partial<StoreMemberOptions>;
  readonly fresh?: Partial<StoreMemberOptions>;
}

describe.skipIf(missing("etcd"))("a member whose last records are gone, in a log that is longer", () => {
  let etcd: EtcdMembers;
  let client: EtcdClient;
  let stops: (() => Promise<void>)[] = [];
  /** In the order in which they watched first. */
  let clients: Set<EtcdClient>;
  /** Hears nothing of the log but the answers to its own batches. */
  let held: EtcdClient | undefined;

  beforeEach(async () => {
    clients = new Set();
    held = undefined;
    const { watch, txn } = EtcdClient.prototype;
    vi.spyOn(EtcdClient.prototype, "watch").mockImplementation(async function* (this: EtcdClient, ...args) {
      clients.add(this);
      const [{ key }, { signal }] = args;
      if (this === held && key.endsWith("/l/")) await new Promise((ended) => signal.addEventListener("abort", ended));
      yield* watch.apply(this, args);
    });
    vi.spyOn(EtcdClient.prototype, "txn").mockImplementation(async function (this: EtcdClient, ...args) {
      const isLook = args[0].when === undefined && JSON.stringify(args[0].success).includes("/l/head");
      if (this === held && isLook) {
        throw new EtcdError("lost", { reason: "unavailable", mayBeDone: false, endpoint: "http://etcd.test" });
      }
      return await txn.apply(this, args);
    });
    etcd = await startEtcdV3();
    client = EtcdClient.open({ endpoints: etcd.urls, clock: systemClock, log: silentLog, random: () => 0 });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await Promise.all(stops.map((stop) => stop()));
    stops = [];
    client.close();
    await etcd.stop();
  });

  async function open(name: string, options: Partial<StoreMemberOptions> = {}): Promise<StoreMember> {
    const member = await openStoreMember(name, { endpoints: etcd.urls, prefix, ...options });
    stops.push(() => member.stop());
    return member;
  }

  /** Other keys of this etcd: its revision grows, the log does not. */
  async function growTo(revision: number): Promise<void> {
    const grow = { success: [{ put: { key: "other", value: Buffer.from("x") } }] };
    while ((await client.txn(grow)).header.revision < revision);
  }

  async function head() {
    const [key] = (await client.range({ key: `${prefix}l/head` })).keys;
    return { place: key?.version ?? 0, revision: key?.modRevision ?? 0 };
  }

  async function restart(change: (dataDir: string) => Promise<unknown>): Promise<void> {
    const [server] = etcd.all;
    await server?.end();
    await change(server?.dataDir ?? "");
    await server?.start();
  }

  /**
   * The group installs only in the history that is lost: when the member that was cut off has applied that, etcd is
   * restored, and another davit leads.
   */
  async function lose({ isHeld = false, cutOff: options = {}, fresh: later = {} }: LoseOptions = {}) {
    const first = await open("a");
    await leaderOf([first]);
    const cutOff = await open("b", options);
    const [, cutOffClient] = clients;
    await first.store.submit(set("/davit/group", "boot"));
    await settled([first, cutOff]);
    await restart((dataDir) => cp(dataDir, `${dataDir}-copy`, { recursive: true }));
    await growTo((await client.status()).header.revision + 100);
    await first.store.submit(set("/davit/group", "install"));
    // A slow machine elects the next leader more than once, and each of its terms is a record of the shorter log.
    for (let record = 0; record < 4; record++) await first.store.submit(set("/filler", "lost"));
    await settled([first, cutOff]);
    const lost = await head();
    if (isHeld) held = cutOffClient;
    for (const proxy of cutOff.proxies) proxy.cut();
    await first.stop();
    await restart(async (dataDir) => {
      await rm(dataDir, { recursive: true });
      await cp(`${dataDir}-copy`, dataDir, { recursive: true });
    });
    const fresh = await open("a", later);
    await leaderOf([fresh]);
    expect(cutOff.store.getFile(group)).toMatchObject({ value: "install" });
    return { fresh, cutOff, lost };
  }

  /** The log is as long as the lost one, at an earlier revision; the next batch comes at a later one. */
  async function loseAndFit(options?: LoseOptions) {
    const { fresh, cutOff, lost } = await lose(options);
    while ((await head()).place < lost.place) await fresh.store.submit(set("/filler", "x"));
    expect(await head()).toMatchObject({ place: lost.place });
    expect((await head()).revision).toBeLessThan(lost.revision);
    await growTo(lost.revision + 1);
    return { fresh, cutOff };
  }

  async function expectLost(cutOff: StoreMember, fresh: StoreMember): Promise<void> {
    await expect.poll(() => cutOff.store.status, soon).toBe("lost");
    expect(cutOff.store.trouble).toContain("restored or emptied");
    expect(cutOff.store.getFile(storePath("/later"))).toBeUndefined();
    expect(fresh.store.getFile(group)).toMatchObject({ value: "boot" });
  }

  it("is lost when another member writes", { timeout: limitMs }, async () => {
    const { fresh, cutOff } = await loseAndFit();
    await fresh.store.submit(set("/later", "1"));
    for (const proxy of cutOff.proxies) proxy.mend();
    await expectLost(cutOff, fresh);
  });

  it("is lost when it writes itself, before anything else shows it", { timeout: limitMs }, async () => {
    const { fresh, cutOff } = await loseAndFit({ isHeld: true });
    for (const proxy of cutOff.proxies) proxy.mend();
    const refused = { name: "StoreError", refusal: "logFailed" };
    await expect(cutOff.store.submit(set("/later", "1"))).rejects.toMatchObject(refused);
    await expectLost(cutOff, fresh);
  });

  it("takes no proof for its copy, before anything else shows it", { timeout: limitMs }, async () => {
    const heard: number[] = [];
    const proofs = { own: () => undefined, heard: (atMs: number) => void heard.push(atMs) };
    const { fresh, cutOff } = await lose({
      isHeld: true,
      cutOff: { proof: proofs },
      fresh: { proof: { own: () => systemClock.monotonicMs(), heard() {} } },
    });
    for (const proxy of cutOff.proxies) proxy.mend();
    await expectLost(cutOff, fresh);
    expect(heard).toEqual([]);
  });
});
