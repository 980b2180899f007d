/** A machine that nobody knows becomes a Machine, and boots soon after a person has approved it. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { runCommand } from "../helpers/command-under-test.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";

const mac = "52:54:00:a1:9c:ae";
const path = "/apis/davit.dev/v1alpha1/namespaces/machine-enrolment/machines/mac-525400a19cae";
const soon = { timeout: 60_000, interval: 200 };

const objects = `
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: { name: work }
spec: { boot: { kernel: /assets/linux } }
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: { name: rack }
spec:
  profileRef: { name: work }
  selector: { matchLabels: { role: rack } }
  approval: Required
  enroll: true
`;

describe.skipIf(missing("kube-apiserver", "kubectl"))("in a cluster", () => {
  let cluster: ClusterAccess;
  let folder: string;
  let davit: DavitProcess;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-enrolment-"));
    cluster = await sharedCluster("machine-enrolment");
    await cluster.apply(objects);
    davit = await startDavit({ kubeconfig: cluster.kubeconfig, dataDir: join(folder, "data") });
  }, 240_000);
  afterAll(async () => {
    await davit?.stop();
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  const status = async () => (await fetch(`${davit.bootUrl}/ipxe?role=rack&mac=${mac}`)).status;
  const run = async (...words: readonly string[]) => {
    const places = ["--ops-url", davit.opsUrl, "--kubeconfig", cluster.kubeconfig];
    return await runCommand(["machine", ...words, ...places]);
  };

  it("an unknown machine waits as a Machine until davit machine approves it", async () => {
    expect(await status()).toBe(503);
    await expect.poll(async () => (await cluster.ask({ path })).status, soon).toBe(200);
    expect((await cluster.ask({ path })).body).toMatchObject({
      metadata: { labels: { "davit.dev/pending": "true" } },
      spec: { identity: { macs: [mac] } },
    });
    // davit finds the Machine by the address when it has seen what it created.
    const approved = { code: 0, errors: "", output: "Machine machine-enrolment/mac-525400a19cae is approved\n" };
    await expect.poll(async () => await run("approve", mac), soon).toEqual(approved);
    await expect.poll(status, { timeout: 20_000, interval: 200 }).toBe(200);
    expect((await run("hold", "mac-525400a19cae")).code).toBe(0);
    await expect.poll(status, { timeout: 20_000, interval: 200 }).toBe(503);
    const held = await runCommand(["machine", "list", "--phase", "Held", "--ops-url", davit.opsUrl]);
    expect(held.output).toContain("machine-enrolment/mac-525400a19cae");
  }, 180_000);

  it("the ledger's mark is in its ConfigMap, and names the ledger that davit machine shows", async () => {
    const { output } = await runCommand(["machine", "ledger", "--output", "json", "--ops-url", davit.opsUrl]);
    const { id, health } = JSON.parse(output);
    expect(health).toBe("ok");
    const { body } = await cluster.ask({ path: "/api/v1/namespaces/machine-enrolment/configmaps/davit-ledger" });
    expect(body).toMatchObject({ data: { id, index: expect.stringMatching(/^\d+$/) } });
  }, 180_000);
});
