/** What davit does not see happen: while it is down, while the API server is away, and beside another davit. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import type { DavitProcess } from "../../tools/davit-process.ts";
import { missing } from "../helpers/requirements.ts";
import { Beside, group, profile } from "./beside.ts";
import { requestsTo } from "./metric.ts";

const macs = ["a", "b", "c", "d"].map((digit) => `52:54:00:00:00:0${digit}`);
const tellingMs = 2_000;
const [goes = "", stays = "", changes = "", comes = ""] = macs;

describe.skipIf(missing("kube-apiserver", "kubectl"))("davit", () => {
  let cluster: Cluster;
  let beside: Beside;
  let count = 0;
  beforeAll(async () => {
    cluster = await startCluster();
    return () => cluster.stop();
  }, 180_000);

  beforeEach(async () => {
    beside = await Beside.make(cluster, `run-${count++}`);
    await beside.put(profile("web"), profile("other"), group("goes", goes), group("stays", stays));
    await beside.put(group("changes", changes));
    await beside.start();
  });
  afterEach(() => beside.stop());

  const kernel = async (mac: string, davit = beside.davit) => {
    const { status, body } = await beside.get(`/ipxe?mac=${mac}`, davit);
    return status === 200 ? body.split("\n")[1] : status;
  };
  const told = (message: string) => beside.davit.log.filter(({ msg }) => msg === message);

  it.each(["SIGTERM", "SIGKILL"] as const)(
    "notices at its first list what came, changed and went after a %s",
    async (signal) => {
      expect(await Promise.all([goes, stays, changes, comes].map((mac) => kernel(mac)))).toEqual([
        "kernel /assets/web",
        "kernel /assets/web",
        "kernel /assets/web",
        404,
      ]);
      await beside.davit.stop(signal);
      await beside.delete({ kind: "Group", name: "goes" });
      await beside.put(group("changes", changes, { profileRef: { name: "other" } }), group("comes", comes));
      await beside.start();
      expect(await Promise.all([goes, stays, changes, comes].map((mac) => kernel(mac)))).toEqual([
        503,
        "kernel /assets/web",
        "kernel /assets/other",
        "kernel /assets/web",
      ]);
      expect(told("object removed")).toMatchObject([{ kind: "Group", name: "goes" }]);
      await expect
        .poll(() => beside.conditions({ kind: "Group", name: "comes" }))
        .toMatchObject({ Ready: "True Ready" });
    },
  );

  it("serves the copy on disk when the API server is away at its start, stays ready, and tells so", async () => {
    await beside.end();
    await cluster.kill();
    await beside.start(["--limit", "source-grace=300ms"]);
    expect(await kernel(stays)).toBe("kernel /assets/web");
    expect(told("source not heard in time, serving the copy on disk")).toHaveLength(1);
    expect(told("not following the cluster, what is known stays").length).toBeGreaterThan(0);
    expect(await beside.ops("/readyz?verbose")).toMatch(
      /^\[!\] cluster: waiting for the first list.*\n\[!\] cluster: Nothing listens .*\(ECONNREFUSED\)\n(.*\n)*ok\n$/m,
    );
    expect(await beside.metric("davit_watch_connected", { resource: "groups" })).toBe(0);
    expect(await beside.metric("davit_cache_age_seconds")).toBeGreaterThan(0);
    await cluster.restart();
    await beside.put(group("comes", comes));
    await expect.poll(() => kernel(comes)).toBe("kernel /assets/web");
    expect(told("the cluster answers again")).toContainEqual(
      expect.objectContaining({ awaySeconds: expect.any(Number) }),
    );
    await expect.poll(() => beside.ops("/readyz?verbose")).not.toContain("cluster:");
  }, 60_000);

  it("answers from the store when the API server goes, and takes up what changed when it is back", async () => {
    await cluster.kill();
    await expect.poll(() => beside.metric("davit_watch_connected", { resource: "groups" })).toBe(0);
    expect(await kernel(stays)).toBe("kernel /assets/web");
    expect(await beside.ops("/readyz")).toBe("ok\n");
    expect(await beside.ops("/readyz?verbose")).toMatch(/\[!\] cluster: not followed now, heard \d+ s ago.*\n/);
    await cluster.restart();
    await beside.delete({ kind: "Group", name: "goes" });
    await beside.put(group("changes", changes, { profileRef: { name: "other" } }));
    await expect.poll(() => kernel(changes)).toBe("kernel /assets/other");
    await expect.poll(() => kernel(goes)).toBe(503);
  }, 60_000);

  it("has a twin on the same cluster: both answer machines, their statuses are one, and then nothing is written", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "davit-twin-"));
    onTestFinished(() => rm(dataDir, { recursive: true }));
    const both = [beside.davit, await beside.start([], { dataDir })];
    const names = macs.map((_, at) => ({ kind: "Group", name: `many-${at}` }) as const);
    await beside.put(...macs.map((mac, at) => group(`many-${at}`, mac, { metadata: { at } })));
    // The Groups of the same machines that come before them by name are what they conflict with.
    for (const name of names.slice(0, 3)) {
      await expect.poll(() => beside.conditions(name)).toMatchObject({ Conflicted: expect.any(String) });
    }
    await expect
      .poll(() => beside.conditions({ kind: "Group", name: "many-3" }))
      .toMatchObject({ Ready: "True Ready" });
    for (const davit of both) await expect.poll(() => kernel(comes, davit)).toBe("kernel /assets/web");
    // Events come in their order: who has a Group's newest metadata has heard of everything before.
    let asked = 0;
    const writesOfOneRound = async () => {
      const before = await requestsTo(cluster, { group: "davit.dev", subresource: "status" });
      await beside.touch(...names, { kind: "Profile", name: "web" });
      asked += 1;
      await beside.put(group("many-3", comes, { metadata: { asked } }));
      const metadata = async (davit: DavitProcess) => (await beside.get(`/metadata?mac=${comes}`, davit)).body;
      for (const davit of both) await expect.poll(() => metadata(davit)).toContain(`ASKED=${asked}\n`);
      // A status is told after the machine was answered, and after what it would get was tried.
      await systemClock.sleep(tellingMs);
      return (await requestsTo(cluster, { group: "davit.dev", subresource: "status" })) - before;
    };
    // Each of the two may tell that it has seen the new version of that Group; nobody has anything else to tell.
    // On a busy machine, what the round before had to tell may be counted too: four in the worst round, where telling
    // of every object that was touched would be nine and more.
    await expect.poll(writesOfOneRound).toBeLessThanOrEqual(2);
    for (let round = 0; round < 3; round += 1) expect(await writesOfOneRound()).toBeLessThanOrEqual(4);
    const tries = await Promise.all(
      both.map((davit) => beside.metric("rest_client_requests_total", { method: "PATCH" }, davit)),
    );
    // Nine objects: at first, when another Group of its machine came, when a count changed, and one in each round.
    for (const patches of tries) expect(patches).toBeLessThanOrEqual(3 * 9 + asked);
  });
});
