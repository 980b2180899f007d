/** Events of a Group in a cluster: what its grant has opened for machines without a Machine object. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import {
  bootNow,
  configOf,
  hourMs,
  installAssets,
  installObjects,
  ledgerId,
  macOf,
  report,
} from "../helpers/install-world.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";

const patience = { timeout: 60_000 };

describe.skipIf(missing("kube-apiserver", "kubectl"))("events of a Group", { timeout: 240_000 }, () => {
  let cluster: ClusterAccess;
  let davit: DavitProcess;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-group-events-"));
    cluster = await sharedCluster("group-events");
    await cluster.apply(installObjects(undefined));
    const args = await installAssets(folder);
    davit = await startDavit({ kubeconfig: cluster.kubeconfig, dataDir: join(folder, "data"), args });
  }, 240_000);
  afterAll(async () => {
    await davit?.stop();
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  async function events(): Promise<readonly string[]> {
    const columns = "custom-columns=R:.reason,T:.type,N:.note,K:.regarding.kind,O:.regarding.name,U:.regarding.uid";
    const listed = ["get", "events.events.k8s.io", "--no-headers", "-o", columns];
    const { stdout } = await cluster.kubectl(listed);
    return stdout
      .split("\n")
      .map((line) => line.replace(/\s+/g, " ").trim())
      .filter((line) => / Group /.test(line));
  }

  it("name a machine that claims, and then how its install ended", async () => {
    const grant = { generation: 1, ledger: await ledgerId(davit), until: new Date(Date.now() + hourMs).toISOString() };
    await cluster.apply(installObjects(grant));
    await expect.poll(() => bootNow(davit, 1), patience).toBe("install");
    expect(await report(davit, await configOf(davit), "failed")).toBe(200);
    const { stdout: uid } = await cluster.kubectl([
      "get",
      "groups.davit.dev",
      "-o",
      "jsonpath={.items[0].metadata.uid}",
    ]);
    await expect
      .poll(events, patience)
      .toEqual(
        expect.arrayContaining([
          expect.stringMatching(
            `^Claimed Normal mac/${macOf(1).replaceAll("-", ":")} has claimed its install \\(generation 1\\) Group \\S+ ${uid}$`,
          ),
          expect.stringMatching(
            `^Failed Warning mac/${macOf(1).replaceAll("-", ":")} has failed to install \\(generation 1\\) Group \\S+ ${uid}$`,
          ),
        ]),
      );
  });
});
