/**
 * How much davit asks of an API server: nothing while nothing happens, and little when one object changes all the time.
 * `DAVIT_TEST_QUIET_SECONDS` sets how long nothing happens; `make test-cluster-long` takes a minute.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { residentBytesOf } from "../../bench/process-usage.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { createAll, machineGroup, pathOf, profile, readyCount, setKernel } from "./machines.ts";
import { Rack } from "./rack.ts";

const quietSeconds = Number(process.env.DAVIT_TEST_QUIET_SECONDS ?? 5);
const groupCount = 100;
const patience = { timeout: 90_000, interval: 50 };

describe.skipIf(missing("kube-apiserver"))("davit on a cluster", { timeout: 180_000 + quietSeconds * 1_000 }, () => {
  let cluster: Cluster;
  let proxy: FaultProxy;
  let rack: Rack;
  beforeAll(async () => {
    cluster = await startCluster();
    proxy = await FaultProxy.start(cluster);
    await createAll(cluster, [profile("work", "first")]);
    await createAll(
      cluster,
      Array.from({ length: groupCount }, (_, machine) => machineGroup(machine)),
    );
    const kubeconfig = cluster.kubeconfigFor("proxied", cluster.adminToken, proxy.url);
    rack = await Rack.start({ kubeconfig, args: ["--limit", "watch-silence=3s"] });
  }, 180_000);
  afterAll(async () => {
    await rack?.stop();
    await proxy?.stop();
    await cluster?.stop();
  });

  const writes = () => proxy.asked.filter(({ method }) => method !== "GET").length;

  it("writes each status once, and in quiet times nothing at all", async () => {
    await expect.poll(() => readyCount(cluster, pathOf(cluster, "groups")), patience).toBe(groupCount);
    // The count of a Profile's Groups comes a second after the last of them.
    await expect.poll(() => groupCountOf("work"), patience).toBe(groupCount);
    expect(writes()).toBeLessThanOrEqual(groupCount + 2);
    const before = writes();
    await systemClock.sleep(quietSeconds * 1_000);
    expect(writes()).toBe(before);
  });

  it("hears of thousands of changes of one object at once, and looks at it a few times: the last one counts", async () => {
    const changes = 1_500;
    const memoryBytes = residentBytesOf(rack.davit.pid);
    const reconciles = () => rack.metric("controller_runtime_reconcile_total");
    const before = await reconciles();
    proxy.disconnect();
    // The API server remembers them all, and tells them in one breath.
    let change = 0;
    const lanes = Array.from({ length: 8 }, async () => {
      while (change < changes) await setKernel(cluster, "work", `burst-${change++}`);
    });
    await Promise.all(lanes);
    await setKernel(cluster, "work", "last");
    expect(await rack.boots(1)).toBe("first");
    let deepest = 0;
    proxy.behave();
    const served = async () => {
      deepest = Math.max(deepest, await rack.metric("workqueue_depth"));
      return rack.boots(1);
    };
    await expect.poll(served, { ...patience, interval: 1 }).toBe("last");
    expect(deepest).toBeLessThanOrEqual(groupCount + 1);
    expect((await reconciles()) - before).toBeLessThan(changes / 5);
    expect(residentBytesOf(rack.davit.pid) - memoryBytes).toBeLessThan(200 * 2 ** 20);
  });

  it("follows an object that changes as fast as the API server takes it", async () => {
    const seen = new Set<string | number>();
    const reading = new AbortController();
    const reads = (async () => {
      while (!reading.signal.aborted) seen.add(await rack.boots(2));
    })();
    for (let change = 0; change < 300; change++) await setKernel(cluster, "work", `fast-${change}`);
    await expect.poll(() => rack.boots(2), patience).toBe("fast-299");
    reading.abort();
    await reads;
    expect([...seen].filter((kernel) => !/^(last|fast-\d+)$/.test(`${kernel}`))).toEqual([]);
    expect(await rack.metric("workqueue_depth", 'name="objects"')).toBe(0);
  });

  async function groupCountOf(name: string): Promise<unknown> {
    const { body } = await cluster.ask({ path: `${pathOf(cluster, "profiles")}/${name}` });
    return Object(body.status).groupCount;
  }
});
