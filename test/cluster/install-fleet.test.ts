/**
 * Many machines at once, beside an API server: what davit writes there is bounded by time, not by machines, and a
 * machine that boots its disk does not wait for them. `DAVIT_TEST_MACHINES` and `DAVIT_TEST_STRANGERS` are the numbers.
 * It prints a table of writes, memory and times.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { residentBytesOf } from "../../bench/process-usage.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { bootOf, hourMs, installAssets, installObjects, ledgerId, macOf } from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { FaultProxy } from "./fault-proxy.ts";

const fleet = Number(process.env.DAVIT_TEST_MACHINES ?? 200);
const strangers = Number(process.env.DAVIT_TEST_STRANGERS ?? 2_000);
const limitMs = 240_000 + fleet * 60 + strangers * 20;
const lanes = 64;
const soon = { timeout: 60_000, interval: 100 };
const late = "503 permit not logged yet";

/** A machine that always boots, and a Group that enrols all others of its role. */
const others = `---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: work}
spec: {boot: {kernel: /assets/linux}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: known}
spec: {selector: {matchLabels: {mac: "52:54:00:ff:ff:ff"}}, profileRef: {name: work}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: unknown}
spec: {selector: {matchLabels: {role: stranger}}, profileRef: {name: work}, approval: Required, enroll: true}
`;

interface Row {
  readonly what: string;
  readonly seconds: number;
  readonly writes: Readonly<Record<string, number>>;
  readonly memoryMiB: { readonly before: number; readonly after: number };
  readonly knownMs: { readonly p50: number; readonly p99: number; readonly count: number };
}

describe.skipIf(missing("kube-apiserver", "kubectl"))("beside an API server", { timeout: limitMs }, () => {
  let cluster: ClusterAccess;
  let clusters = 0;
  let proxy: FaultProxy;
  let folder: string;
  let davit: DavitProcess;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-fleet-"));
    cluster = await sharedCluster(`install-fleet-${clusters++}`);
    proxy = await FaultProxy.start(cluster);
    await cluster.apply(installObjects(undefined) + others);
    const kubeconfig = cluster.kubeconfigFor("proxied", cluster.adminToken, proxy.url);
    davit = await startDavit({ kubeconfig, dataDir: join(folder, "data"), args: await installAssets(folder) });
    await expect.poll(() => known(), soon).toBe(200);
  }, 240_000);
  afterEach(async () => {
    await davit?.stop();
    await proxy?.stop();
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  const known = async () => statusOf("mac=52:54:00:ff:ff:ff");
  async function statusOf(query: string): Promise<number> {
    const response = await fetch(`${davit.bootUrl}/ipxe?${query}`);
    await response.text();
    return response.status;
  }

  /** How often davit has written each kind of thing. */
  function writes(from: number): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { method, path } of proxy.asked.slice(from)) {
      if (method === "GET") continue;
      const [, resource = path, status = ""] =
        /\/(configmaps|machines|groups|profiles|events)(?:\/[^/?]+(\/status)?)?(?:\?|$)/.exec(path) ?? [];
      const what = `${method} ${resource}${status}`;
      counts[what] = (counts[what] ?? 0) + 1;
    }
    return counts;
  }

  /** Does the work, and meanwhile asks as a known machine again and again. */
  async function measured(what: string, work: () => Promise<void>): Promise<Row> {
    const [from, before, beganMs] = [proxy.asked.length, residentBytesOf(davit.pid), performance.now()];
    const times: number[] = [];
    let isOver = false;
    const probe = async () => {
      while (!isOver) {
        const askedMs = performance.now();
        expect(await known()).toBe(200);
        times.push(performance.now() - askedMs);
        await systemClock.sleep(20);
      }
    };
    const probing = probe();
    await work().finally(() => {
      isOver = true;
    });
    await probing;
    const sorted = times.toSorted((a, b) => a - b);
    const at = (part: number) => Number((sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(1));
    const mib = (bytes: number) => Math.round(bytes / 2 ** 20);
    const row: Row = {
      what,
      seconds: Math.ceil((performance.now() - beganMs) / 1_000),
      writes: writes(from),
      memoryMiB: { before: mib(before), after: mib(residentBytesOf(davit.pid)) },
      knownMs: { p50: at(0.5), p99: at(0.99), count: times.length },
    };
    process.stdout.write(`${JSON.stringify(row)}\n`);
    return row;
  }

  async function forEach(count: number, work: (number: number) => Promise<void>): Promise<void> {
    let next = 0;
    const lane = async () => {
      while (next < count) await work(next++);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }

  it(`${fleet} machines that install at once write its mark, and no object of each`, async () => {
    await measured("quiet", () => systemClock.sleep(5_000));
    const until = new Date(Date.now() + 6 * hourMs).toISOString();
    await cluster.apply(installObjects({ generation: 1, ledger: await ledgerId(davit), until }));
    await expect.poll(() => bootOf(davit, 1_000_000), soon).toBe("install");
    const row = await measured(`${fleet} installs`, () =>
      forEach(fleet, async (number) => {
        for (;;) {
          const boot = await bootOf(davit, number);
          if (boot === "install") return;
          expect(boot).toBe(late);
          await systemClock.sleep(1_000);
        }
      }),
    );
    expect(row.writes["POST machines"]).toBeUndefined();
    expect(row.writes["PATCH machines/status"]).toBeUndefined();
    // A mark is written at most five times a second, for all claims since the last one.
    expect(row.writes["PATCH configmaps"] ?? 0).toBeLessThanOrEqual(5 * row.seconds + 1);
    expect(row.memoryMiB.after - row.memoryMiB.before).toBeLessThan(256);
  });

  it(`${strangers} unknown machines become a bounded number of Machines`, async () => {
    // What as many requests cost by themselves.
    await measured(`${strangers} requests of a known machine`, () =>
      forEach(strangers, async () => {
        expect(await known()).toBe(200);
      }),
    );
    const created = async () => {
      const { items } = (await cluster.ask({ path: "/apis/davit.dev/v1alpha1/machines" })).body as { items: unknown[] };
      return items.length;
    };
    const row = await measured(`${strangers} unknown machines`, async () => {
      await forEach(strangers, async (number) => {
        expect(await statusOf(`role=stranger&mac=${macOf(number)}`)).toBe(503);
      });
      // The history learns of a request after its answer.
      await expect.poll(created).toBeGreaterThan(0);
    });
    expect(await created()).toBeLessThanOrEqual(1_000);
    expect(row.writes["POST machines"] ?? 0).toBeLessThanOrEqual(50 + 5 * row.seconds);
    expect(row.writes["PATCH machines/status"] ?? 0).toBeLessThanOrEqual(500 + 50 * row.seconds);
    expect(row.memoryMiB.after - row.memoryMiB.before).toBeLessThan(256);
  });
});
