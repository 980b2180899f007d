/** What machines and operators notice of an API server that is silent, gone, restored, or forgets: nothing. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isJsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { catchAll, createAll, machineGroup, macOf, pathOf, profile, setKernel } from "./machines.ts";
import { Rack } from "./rack.ts";

// Retries wait up to ten seconds after a row of failures, and machines of tests are busy.
const patience = { timeout: 60_000, interval: 50 };
const timeoutMs = 120_000;
const staleness = ["--install-max-source-age", "10s"];

describe.skipIf(missing("kube-apiserver"))("davit, when the API server", { timeout: timeoutMs }, () => {
  let cluster: Cluster;
  let proxy: FaultProxy;
  let rack: Rack;
  let kernels = 0;
  beforeAll(async () => {
    cluster = await startCluster();
    proxy = await FaultProxy.start(cluster);
    await createAll(cluster, [profile("work", "first"), profile("spare", "spare")]);
    await createAll(
      cluster,
      [1, 2, 3].map((machine) => machineGroup(machine)),
    );
    const kubeconfig = cluster.kubeconfigFor("proxied", cluster.adminToken, proxy.url);
    rack = await Rack.start({
      kubeconfig,
      args: ["--limit", "watch-silence=3s", "--limit", "source-grace=1s", ...staleness],
    });
  }, 180_000);
  afterAll(async () => {
    await rack?.stop();
    await proxy?.stop();
    await cluster?.stop();
  });
  beforeEach(async () => {
    await expect.poll(() => rack.metric("davit_watch_connected"), patience).toBe(4);
  }, timeoutMs);

  /** Changes the Profile of machines 1 to 3. @returns the kernel that they boot from then on. */
  async function change(): Promise<string> {
    const kernel = `kernel-${++kernels}`;
    await setKernel(cluster, "work", kernel);
    return kernel;
  }

  /** Writes what davit does not follow. */
  const passRevisions = async (count: number) => {
    const path = "/api/v1/namespaces/default/services";
    const body = { metadata: { name: "passing" }, spec: { clusterIP: "None" } };
    await cluster.ask({ method: "POST", path, body });
    const touch = { method: "PATCH", path: `${path}/passing`, contentType: "application/merge-patch+json" } as const;
    for (let at = 0; at < count; at++) {
      const answer = await cluster.ask({ ...touch, body: { metadata: { annotations: { at: String(at) } } } });
      expect(answer.status).toBe(200);
    }
  };
  const generationOf = async (name: string) => {
    const { metadata } = (await cluster.ask({ path: `${pathOf(cluster, "profiles")}/${name}` })).body;
    return isJsonObject(metadata) ? metadata.generation : undefined;
  };
  const boots = (machine: number) => expect.poll(() => rack.boots(machine), patience);
  const restarts = (reason: string) => rack.metric("davit_watch_restarts_total", `reason="${reason}"`);

  it.each<[what: string, away: () => Promise<void> | void, back: () => void]>([
    ["silent", () => cluster.pause(), () => cluster.resume()],
    ["not to be reached", () => proxy.disconnect(), () => proxy.behave()],
  ])(
    "is %s for longer than --install-max-source-age: an Install waits, what boots goes on, and all is as before",
    async (_, away, back) => {
      const kinds = [
        [11, "wipe", "Install"],
        [12, "marked", "Boot"],
      ] as const;
      for (const [machine, name, effect] of kinds) {
        const { spec, ...rest } = profile(name, name);
        const marked = { ...rest, spec: { ...(isJsonObject(spec) ? spec : {}), effect } };
        if ((await rack.boots(machine)) === 404) await createAll(cluster, [marked, machineGroup(machine, name)]);
      }
      const all = async () => await Promise.all([1, 11, 12].map((machine) => rack.boots(machine)));
      const work = await rack.boots(1);
      await expect.poll(all, patience).toEqual([work, "wipe", "marked"]);
      const seen = new Set<string>();
      const look = async () => {
        const answers = await all();
        seen.add(answers.join(" "));
        return answers;
      };
      await away();
      try {
        await expect.poll(look, patience).toEqual([work, 503, "marked"]);
        expect(await rack.metric("davit_install_doubt", 'doubt="stale"')).toBe(1);
        expect(await rack.readiness()).toBe(200);
      } finally {
        back();
      }
      await expect.poll(look, patience).toEqual([work, "wipe", "marked"]);
      expect(seen).toEqual(new Set([`${work} wipe marked`, `${work} 503 marked`]));
    },
  );

  it("is silent: machines are answered, the age grows, and a change of just before is not lost", async () => {
    const before = await rack.boots(1);
    const silences = await restarts("silent");
    const kernel = await change();
    await cluster.pause();
    try {
      await expect.poll(() => restarts("silent"), patience).toBeGreaterThan(silences);
      expect([before, kernel]).toContain(await rack.boots(1));
      expect(await rack.readiness()).toBe(200);
      await expect.poll(() => rack.metric("davit_cache_age_seconds"), patience).toBeGreaterThan(2);
    } finally {
      cluster.resume();
    }
    await boots(1).toBe(kernel);
    await expect.poll(() => rack.metric("davit_cache_age_seconds"), patience).toBeLessThan(2);
    await boots(1).toBe(await change());
  });

  it("is killed and comes again: nothing that changed just before or after it is lost", async () => {
    const before = await rack.boots(1);
    const kernel = await change();
    await cluster.kill();
    await expect.poll(() => rack.metric("davit_watch_connected"), patience).toBe(0);
    expect([before, kernel]).toContain(await rack.boots(1));
    expect(await rack.readiness()).toBe(200);
    await cluster.restart();
    await boots(1).toBe(kernel);
    await boots(1).toBe(await change());
  });

  it("is away while davit restarts: its copy is served, and what went meanwhile goes when it is back", async () => {
    const kernel = await change();
    await boots(1).toBe(kernel);
    await rack.restart(async () => {
      await cluster.ask({ method: "DELETE", path: `${pathOf(cluster, "groups")}/node-2` });
      await cluster.kill();
    });
    expect(await rack.boots(1)).toBe(kernel);
    expect(await rack.boots(2)).toBe(kernel);
    expect(await rack.readiness()).toBe(200);
    await cluster.restart();
    await boots(2).toBe(503);
    expect(await rack.boots(1)).toBe(kernel);
    await createAll(cluster, [machineGroup(2)]);
    await boots(2).toBe(kernel);
  });

  it("went back to an older state: what came since is gone, what went is back, and new changes are heard", async () => {
    const old = await change();
    await boots(1).toBe(old);
    const copy = await cluster.copyEtcd();
    await boots(1).toBe(await change());
    await createAll(cluster, [machineGroup(4, "spare")]);
    await cluster.ask({ method: "DELETE", path: `${pathOf(cluster, "groups")}/node-3` });
    // More revisions than the API server makes by itself when it starts.
    await createAll(
      cluster,
      Array.from({ length: 200 }, (_, at) => machineGroup(100 + at, "spare")),
    );
    await boots(299).toBe("spare");
    await boots(3).toBe(503);
    await cluster.restoreEtcd(copy);
    await boots(1).toBe(old);
    await boots(3).toBe(old);
    await boots(4).toBe(503);
    await boots(299).toBe(503);
    expect(await rack.boots(2)).toBe(old);
    await boots(1).toBe(await change());
  });

  it("lost one change and has newer ones: what is lost is found, and the next change of the same generation", async () => {
    const old = await change();
    await boots(1).toBe(old);
    const copy = await cluster.copyEtcd();
    // More revisions than the API server makes by itself when it starts.
    await passRevisions(200);
    const lost = await change();
    await boots(1).toBe(lost);
    const generation = await generationOf("work");
    proxy.disconnect();
    await expect.poll(() => rack.metric("davit_watch_connected"), patience).toBe(0);
    await cluster.restoreEtcd(copy);
    // It has a history from here on, which by then leads beyond the versions that were heard.
    await cluster.ask({ path: `${pathOf(cluster, "profiles")}?resourceVersion=0` });
    await passRevisions(400);
    proxy.behave();
    await boots(1).toBe(old);
    const kernel = await change();
    expect(await generationOf("work")).toBe(generation);
    await boots(1).toBe(kernel);
  });

  it("no longer has the history since the connection was lost: deletions are found by a list", async () => {
    const kernel = await change();
    await createAll(cluster, [machineGroup(5)]);
    await boots(5).toBe(kernel);
    const relists = await rack.metric("davit_relists_total");
    proxy.disconnect();
    await expect.poll(() => rack.metric("davit_watch_connected"), patience).toBe(0);
    await cluster.ask({ method: "DELETE", path: `${pathOf(cluster, "groups")}/node-5` });
    const later = await change();
    // What it remembers begins with its start.
    await cluster.restart(["--min-request-timeout=5", "--etcd-compaction-interval=15s"]);
    expect(await rack.boots(5)).toBe(kernel);
    proxy.behave();
    await boots(5).toBe(503);
    await boots(1).toBe(later);
    expect(await rack.metric("davit_relists_total")).toBeGreaterThan(relists);
  });

  it("ends every watch after seconds: changes are heard across the ends, without a list or a failure", async () => {
    const relists = await rack.metric("davit_relists_total");
    const failures = await rack.metric("davit_watch_restarts_total");
    const watches = proxy.asked.filter(({ path }) => path.includes("watch=1")).length;
    while (proxy.asked.filter(({ path }) => path.includes("watch=1")).length < watches + 9) {
      await boots(1).toBe(await change());
    }
    expect(await rack.metric("davit_relists_total")).toBe(relists);
    expect(await rack.metric("davit_watch_restarts_total")).toBe(failures);
  });

  it("answers half of all requests with 500: changes and statuses arrive in the end", async () => {
    // Two in a row of each path: a list and the watch after it must both be answered.
    const counts = new Map<string, number>();
    proxy.misbehave(({ method, path }) => {
      const what = `${method} ${path.split("?", 1)[0]}`;
      const count = counts.get(what) ?? 0;
      counts.set(what, count + 1);
      return count % 4 < 2 ? 500 : undefined;
    });
    try {
      const kernel = await change();
      await createAll(cluster, [machineGroup(6)]);
      await boots(1).toBe(kernel);
      await boots(6).toBe(kernel);
      const status = () =>
        cluster.ask({ path: `${pathOf(cluster, "groups")}/node-6` }).then(({ body }) => JSON.stringify(body.status));
      await expect.poll(status, patience).toContain('"type":"Ready"');
    } finally {
      proxy.behave();
    }
    expect(await rack.readiness()).toBe(200);
  });

  it("crashes: machines that ask all the time get what is theirs, and never what is for everybody", async () => {
    await createAll(cluster, [catchAll("everyone", "spare")]);
    await boots(999).toBe("spare");
    const seen = new Set<string | number>();
    const kernel = await rack.boots(1);
    const asking = new AbortController();
    const asks = (async () => {
      while (!asking.signal.aborted) for (const machine of [1, 2, 3]) seen.add(await rack.boots(machine));
    })();
    await cluster.restart();
    await expect.poll(() => rack.metric("davit_watch_connected"), patience).toBe(4);
    asking.abort();
    await asks;
    expect(seen).toEqual(new Set([kernel]));
  });
});

describe("the machines of these suites", () => {
  it("have addresses of their own", () => {
    expect([0, 1, 0x01_02_03_04].map(macOf)).toEqual(["52:54:00:00:00:00", "52:54:00:00:00:01", "52:54:01:02:03:04"]);
  });
});
