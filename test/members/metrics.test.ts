/** What members of a store show to Prometheus, with etcd well, full and away. */

import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

const soon = { timeout: 30_000, interval: 100 };
const limitMs = 120_000;

describe.skipIf(missing("etcd"))("the metrics of members", () => {
  let folder: string;
  let etcd: EtcdMembers;
  const davits: DavitProcess[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-metrics-"));
    etcd = await startEtcdV3({ args: ["--quota-backend-bytes=4000000"] });
  });
  afterEach(async () => {
    await Promise.all(davits.splice(0).map((davit) => davit.stop("SIGKILL")));
    await etcd.stop();
    await rm(folder, { recursive: true });
  });

  async function start(number: number): Promise<DavitProcess> {
    const davit = await startDavit({
      manifests: join(import.meta.dirname, "../../manifests/quickstart"),
      dataDir: join(folder, `data-${number}`),
      args: [
        ...["--store-etcd-endpoints", etcd.urls.map(({ origin }) => origin).join(",")],
        ...["--store-advertise-url", `http://127.0.0.1:${20_000 + number}`],
      ],
    });
    davits.push(davit);
    return davit;
  }

  /** A series of a davit; NaN while it does not exist. */
  async function seriesOf({ opsUrl }: DavitProcess, series: string): Promise<number> {
    const lines = (await (await fetch(`${opsUrl}/metrics`)).text()).split("\n");
    const found = lines.find((line) => line.startsWith(`davit_store_${series} `));
    return found === undefined ? Number.NaN : Number(found.split(" ").at(-1));
  }
  const of = (all: readonly DavitProcess[], series: string) => Promise.all(all.map((each) => seriesOf(each, series)));

  it("say who leads, who runs, and how often that changed", { timeout: limitMs }, async () => {
    const [first, second] = [await start(1), await start(2)];
    await expect.poll(() => of([first, second], "is_leader"), soon).toEqual([1, 0]);
    await expect.poll(() => of([first, second], "members"), soon).toEqual([2, 2]);
    const before = await seriesOf(second, "leader_changes_seen_total");
    // davit looks at the end of the log every two seconds.
    await expect.poll(() => seriesOf(second, "lag_seconds"), soon).toBeLessThan(5);
    await first.stop();
    await expect.poll(() => of([second], "is_leader"), soon).toEqual([1]);
    await expect.poll(() => of([second], "members"), soon).toEqual([1]);
    await expect.poll(async () => (await seriesOf(second, "leader_changes_seen_total")) - before, soon).toBe(1);
  });

  it("say that etcd is full, then that it is away", { timeout: limitMs }, async () => {
    const davit = await start(1);
    await expect.poll(() => seriesOf(davit, "is_leader"), soon).toBe(1);
    expect(await of([davit], "full")).toEqual([0]);
    expect(await of([davit], 'proposals_failed_total{reason="noSpace"}')).toEqual([0]);
    const client = EtcdClient.open({ endpoints: etcd.urls, clock: systemClock, log: silentLog, random: () => 0 });
    const ballast = (at: number) => ({ put: { key: `other/${at}`, value: randomBytes(500_000) } });
    const fill = async () => {
      for (let at = 0; at < 100; at++) await client.txn({ success: [ballast(at)] });
    };
    await expect(fill()).rejects.toMatchObject({ reason: "noSpace" });
    client.close();
    await fetch(`${davit.storeUrl}/v2/keys/a?value=1`, { method: "PUT" });
    await expect.poll(() => of([davit], "full"), soon).toEqual([1]);
    expect(await seriesOf(davit, 'proposals_failed_total{reason="noSpace"}')).toBeGreaterThan(0);
    for (const member of etcd.all) member.pause();
    await expect.poll(() => of([davit], "is_leader"), soon).toEqual([0]);
    const lag = await seriesOf(davit, "lag_seconds");
    await expect.poll(() => seriesOf(davit, "lag_seconds"), soon).toBeGreaterThan(lag + 4);
    for (const member of etcd.all) member.resume();
    await expect.poll(() => seriesOf(davit, "lag_seconds"), soon).toBeLessThan(lag + 4);
  });
});
