/** What the other suites rely on when they ask a real API server. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";

const configMaps = "/api/v1/namespaces/default/configmaps";

function configMap(name: string): string {
  return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ${name}}}`;
}

describe.skipIf(missing("kube-apiserver", "kubectl"))("a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  }, 180_000);
  afterAll(() => cluster?.stop());

  const statusOf = async (name: string) => (await cluster.ask({ path: `${configMaps}/${name}` })).status;

  it("is of the version that is pinned, and kubectl of the same", async () => {
    const { stdout } = await cluster.kubectl(["version", "-o", "json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      clientVersion: { gitVersion: "v1.35.8" },
      serverVersion: { gitVersion: "v1.35.8" },
    });
  });

  it("says what kubectl could not do", async () => {
    await expect(cluster.apply("{apiVersion: v1, kind: Nothing, metadata: {name: a}}")).rejects.toThrow(/Nothing/);
    expect(await cluster.kubectl(["get", "configmap", "nobody"])).toMatchObject({ code: 1, stdout: "" });
  });

  it("gives a ServiceAccount no more than its Role", async () => {
    await cluster.apply(
      [
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reads}, rules: [",
        "{apiGroups: [davit.dev], resources: [profiles], verbs: [list]}]}\n---\n",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reads},",
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads},",
        "subjects: [{kind: ServiceAccount, name: reader, namespace: default}]}",
      ].join(""),
    );
    const token = await cluster.serviceAccountToken("default", "reader");
    const kubeconfig = cluster.kubeconfigFor("reader", token);
    expect(await cluster.kubectl(["get", "profiles.davit.dev"], { kubeconfig })).toMatchObject({ code: 0 });
    expect((await cluster.kubectl(["get", "groups.davit.dev"], { kubeconfig })).stderr).toContain(
      'User "system:serviceaccount:default:reader" cannot list resource "groups"',
    );
  });

  it("takes a token of a minute, and none that has expired", async () => {
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const review = async (token: string) => (await cluster.ask({ method: "POST", path, body: {}, token })).status;
    expect(await review(await cluster.shortToken("default", "brief", 60))).toBe(201);
    expect(await review(await cluster.shortToken("default", "brief", -1))).toBe(401);
  });

  it("keeps its data, its address and its certificate over a crash", async () => {
    await cluster.apply(configMap("kept"));
    await cluster.kill();
    await expect(statusOf("kept")).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
    await cluster.restart();
    expect(await statusOf("kept")).toBe(200);
  }, 60_000);

  it("is silent while it is paused, and goes on", async () => {
    await cluster.pause();
    const answer = statusOf("nobody");
    const first = await Promise.race([answer, systemClock.sleep(300).then(() => "silence")]);
    cluster.resume();
    expect([first, await answer]).toEqual(["silence", 404]);
  });

  it("goes back to an older revision", async () => {
    const copy = await cluster.copyEtcd();
    // More than what the API server itself writes at its start.
    const names = ["later", ...Array.from({ length: 200 }, (_, at) => `later-${at}`)];
    await Promise.all(
      names.map((name) => cluster.ask({ method: "POST", path: configMaps, body: { metadata: { name } } })),
    );
    expect(await statusOf("later")).toBe(200);
    const before = await cluster.ask({ path: configMaps });
    await cluster.restoreEtcd(copy);
    expect(await statusOf("later")).toBe(404);
    const after = await cluster.ask({ path: configMaps });
    expect(revisionOf(after.body)).toBeLessThan(revisionOf(before.body));
  }, 60_000);

  it("starts with other flags", async () => {
    const knobs = ["--min-request-timeout=5", "--etcd-compaction-interval=15s", "--max-requests-inflight=1"];
    await cluster.restart([...knobs, "--enable-admission-plugins=AlwaysDeny"]);
    expect((await cluster.kubectl(["create", "configmap", "denied"])).stderr).toContain("admission control is denying");
  }, 60_000);
});

describe.skipIf(missing("kube-apiserver"))("a cluster that was stopped", () => {
  it("leaves no process and no file", async () => {
    const cluster = await startCluster({ withoutCrds: true });
    const directory = dirname(cluster.kubeconfig);
    expect(processesOf(directory)).toHaveLength(2);
    await cluster.stop();
    expect(processesOf(directory)).toEqual([]);
    expect(existsSync(directory)).toBe(false);
  }, 180_000);

  it("leaves none when it could not start, and says why", async () => {
    const start = startCluster({ flags: ["--no-such-flag"] });
    await expect(start).rejects.toThrow(/^kube-apiserver has ended:\n(.|\n)*unknown flag: --no-such-flag/);
    expect(processesOf("--no-such-flag")).toEqual([]);
  }, 180_000);
});

/** Command lines with this word. One of a process that has ended is empty, though its parent may not know yet. */
function processesOf(word: string): readonly string[] {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return ids.map(commandLine).filter((line) => line.includes(word));
}

function commandLine(id: string): string {
  try {
    return readFileSync(`/proc/${id}/cmdline`, "utf8");
  } catch {
    // It ended since the directory was read.
    return "";
  }
}

function revisionOf({ metadata }: JsonObject): number {
  return isJsonObject(metadata) ? Number(metadata.resourceVersion) : Number.NaN;
}
