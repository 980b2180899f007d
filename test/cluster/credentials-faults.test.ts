/** What davit does when the API server does not let it in, or not all at once. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { createAll, machineGroup, pathOf, profile, readyCount, setKernel } from "./machines.ts";
import { Rack } from "./rack.ts";

const patience = { timeout: 60_000, interval: 50 };
const timeoutMs = 120_000;
const account = "davit";
/** Long enough for davit's start on a busy machine. */
const lifetimeSeconds = 15;
/** Long enough for a retry of each watch. */
const emptyMs = 5_000;

// What docs/internals/controller.md asks for, without Secrets.
const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: davit, namespace: default}
rules:
  - {apiGroups: [davit.dev], resources: [profiles, groups, machines], verbs: [get, list, watch]}
  - {apiGroups: [davit.dev], resources: [profiles/status, groups/status, machines/status], verbs: [patch]}
  - {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch]}
  - {apiGroups: [events.k8s.io], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: davit, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: davit}
subjects: [{kind: ServiceAccount, name: ${account}, namespace: default}]
`;

describe.skipIf(missing("kube-apiserver", "kubectl"))("davit", { timeout: timeoutMs }, () => {
  let cluster: Cluster;
  let folder: string;
  let rack: Rack | undefined;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-credentials-"));
    cluster = await startCluster();
    await cluster.apply(role);
    await createAll(cluster, [profile("work", "before")]);
    await createAll(cluster, [machineGroup(1)]);
  }, 180_000);
  afterAll(async () => {
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });
  beforeEach(async () => {
    await setKernel(cluster, "work", "before");
    return async () => {
      await rack?.stop();
      rack = undefined;
    };
  }, timeoutMs);

  async function start(kubeconfig: string): Promise<Rack> {
    rack = await Rack.start({ kubeconfig, args: ["--limit", "watch-silence=3s"] });
    return rack;
  }

  it("goes on with the token of a file that was renewed after the old one had expired", async () => {
    const tokenFile = join(folder, "token");
    await writeFile(tokenFile, await cluster.shortToken("default", account, lifetimeSeconds));
    const { started, refusals } = await startWithTokenFile(tokenFile);
    await expect.poll(refusals, patience).toBeGreaterThan(2);
    await setKernel(cluster, "work", "unheard");
    expect(await started.boots(1)).toBe("before");
    expect(await started.readiness()).toBe(200);
    // For a moment, who replaces a file in place leaves it empty.
    await writeFile(tokenFile, "");
    await setTimeout(emptyMs);
    await writeFile(tokenFile, await cluster.serviceAccountToken("default", account));
    await expect.poll(() => started.boots(1), patience).toBe("unheard");
    const total = await refusals();
    await setKernel(cluster, "work", "after");
    await expect.poll(() => started.boots(1), patience).toBe("after");
    expect(await refusals()).toBe(total);
  });

  async function startWithTokenFile(tokenFile: string) {
    const kubeconfig = cluster.kubeconfigFor("token-file", "replaced");
    const text = await readFile(kubeconfig, "utf8");
    await writeFile(kubeconfig, text.replace('"token": "replaced"', `"tokenFile": ${JSON.stringify(tokenFile)}`));
    const started = await start(kubeconfig);
    return { started, refusals: () => started.metric("rest_client_requests_total", 'code="401"') };
  }

  it.each([
    { name: "as text in its kubeconfig", isFile: false },
    { name: "in a file", isFile: true },
  ])("goes on when the API server's authority is another, and it has it $name", async ({ isFile }) => {
    const kubeconfig = cluster.kubeconfigFor("rotated", cluster.adminToken);
    const caFile = join(folder, "ca.pem");
    const trustFile = async () => {
      await writeFile(caFile, cluster.ca);
      const text = await readFile(kubeconfig, "utf8");
      const inFile = `"certificate-authority": ${JSON.stringify(caFile)}`;
      await writeFile(kubeconfig, text.replace(/"certificate-authority-data": "[^"]*"/, inFile));
    };
    if (isFile) await trustFile();
    const started = await start(kubeconfig);
    await cluster.rotateCertificate();
    const distrusted = () => started.davit.log.some(({ problem }) => /UNABLE_TO_VERIFY|SELF_SIGNED/.test(`${problem}`));
    await expect.poll(distrusted, patience).toBe(true);
    await setKernel(cluster, "work", "unheard");
    expect(await started.boots(1)).toBe("before");
    expect(await started.readiness()).toBe(200);
    if (isFile) await writeFile(caFile, cluster.ca);
    else cluster.kubeconfigFor("rotated", cluster.adminToken);
    await expect.poll(() => started.boots(1), patience).toBe("unheard");
  });

  it("gets everything done by an API server that has a place for one request at a time", async () => {
    const count = 60;
    await createAll(
      cluster,
      Array.from({ length: count }, (_, at) => machineGroup(1_000 + at)),
    );
    const token = await cluster.serviceAccountToken("default", account);
    const limits = ["--max-requests-inflight=1", "--max-mutating-requests-inflight=1"];
    await cluster.restart([...limits, "--enable-priority-and-fairness=false"]);
    const started = await start(cluster.kubeconfigFor("account", token));
    await expect.poll(() => readyCount(cluster, pathOf(cluster, "groups")), patience).toBe(count + 1);
    const throttled = await started.metric("rest_client_requests_total", 'code="429"');
    expect(throttled).toBeGreaterThan(0);
    // Backoff: nobody asks in a loop.
    expect(throttled).toBeLessThan(10 * count);
    expect(await started.metric("rest_client_requests_total", 'code="403"')).toBe(0);
    await setKernel(cluster, "work", "after");
    await expect.poll(() => started.boots(1), patience).toBe("after");
  });
});
