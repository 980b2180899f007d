/** Which objects davit reads and what it may do: CRDs that come late, namespaces, tenancy, and the Role of the documents. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { freePorts } from "../../tools/cluster/ports.ts";
import { missing } from "../helpers/requirements.ts";
import { Beside, group, profile } from "./beside.ts";
import { requestsTo, sumOf } from "./metric.ts";

const page = (name: string) => readFileSync(join(import.meta.dirname, "../../docs", name), "utf8");
const mac = "52:54:00:a1:9c:ae";
const ask = `/ipxe?mac=${mac}`;

describe.skipIf(missing("kube-apiserver", "kubectl"))("davit", () => {
  let cluster: Cluster;
  let beside: Beside;
  beforeAll(async () => {
    cluster = await startCluster({ withoutCrds: true });
    return () => cluster.stop();
  }, 180_000);
  afterEach(() => beside?.stop());

  it("starts before its CRDs are there, asks for them now and then, and is ready when they are", async () => {
    beside = await Beside.make(cluster, "early");
    const [ops = 0] = await freePorts(1);
    const started = beside.start(["--ops-address", `127.0.0.1:${ops}`]);
    const opsUrl = `http://127.0.0.1:${ops}`;
    const asked = async () => {
      const response = await fetch(`${opsUrl}/metrics`).catch(() => undefined);
      return sumOf((await response?.text()) ?? "", "davit_watch_restarts_total", { reason: "refused" });
    };
    await expect.poll(asked, { timeout: 45_000 }).toBeGreaterThanOrEqual(4);
    expect(await (await fetch(`${opsUrl}/readyz`)).text()).toContain("first list is not in the store");
    const why = await (await fetch(`${opsUrl}/readyz?verbose`)).text();
    expect(why).toContain("does not know groups.davit.dev (404): install the CRDs, kubectl apply -f crds/");
    await cluster.installCrds();
    await beside.put(profile("web"), group("node", "52:54:00:00:00:11"));
    const davit = await started;
    await expect.poll(() => beside.get("/ipxe?mac=52:54:00:00:00:11")).toMatchObject({ status: 200 });
    // Three resources, each at 0.8 s, then twice as long each time, 10 s at most.
    expect(await asked()).toBeLessThanOrEqual(30);
    // Once for each resource. While a CRD begins to be served, the API server may give another reason.
    const failures = davit.log.filter(({ msg }) => msg === "not following the cluster, what is known stays");
    expect(failures.filter((failure) => JSON.stringify(failure).includes("(404)"))).toHaveLength(3);
  }, 90_000);

  it("reads one namespace, several, all, or the context's own unless told", async () => {
    const racks = ["red", "green", "default"];
    for (const namespace of racks) {
      beside = await Beside.make(cluster, namespace);
      await beside.put(profile("web"), group("node", "", { selector: { matchLabels: { rack: namespace } } }));
    }
    const scopes = [["--namespace", "red"], ["--namespace", "red", "--namespace", "green"], ["--all-namespaces"], []];
    const served = await Promise.all(
      scopes.map(async (scope, at) => {
        const davit = await beside.start([], { scope, dataDir: join(beside.dataDir, String(at)) });
        const answers = racks.map(async (rack) => (await beside.get(`/ipxe?rack=${rack}`, davit)).status);
        return await Promise.all(answers);
      }),
    );
    expect(served).toEqual([
      [200, 404, 404],
      [200, 200, 404],
      [200, 200, 200],
      [404, 404, 200],
    ]);
  });

  it("keeps everything while a namespace to read is not there, and takes it for empty when it is", async () => {
    beside = await Beside.make(cluster, "moving");
    await beside.put(profile("web"), group("node", "52:54:00:00:00:12"));
    await beside.start();
    await beside.end();
    await beside.start([], { scope: ["--namespace", "mooving"] });
    expect(await beside.get("/ipxe?mac=52:54:00:00:00:12")).toMatchObject({ status: 200 });
    expect(await beside.ops("/readyz?verbose")).toContain('[!] namespace "mooving": it does not exist: create it');
    await cluster.ask({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: "mooving" } } });
    // Asked after every ten seconds.
    await expect
      .poll(() => beside.get("/ipxe?mac=52:54:00:00:00:12"), { timeout: 30_000 })
      .toMatchObject({ status: 503 });
    expect(await beside.ops("/readyz?verbose")).not.toContain("mooving");
    expect((await cluster.kubectl(["-n", "mooving", "get", "events", "-o", "name"])).stdout).toBe("");
  }, 90_000);

  it("has a machine wait that two namespaces claimed at once, unless the admin namespace has a Group for it", async () => {
    const a = await Beside.make(cluster, "team-a");
    const b = await Beside.make(cluster, "team-b");
    const infra = await Beside.make(cluster, "infra");
    beside = await Beside.make(cluster, "lab");
    for (const team of [a, b]) await team.put(profile("web"), group("node-1", mac));
    await a.put({ ...group("all", ""), spec: { profileRef: { name: "web" }, matchAll: true } });
    await b.put(group("loud", "52:54:00:00:00:01", { priority: 5 }));
    await beside.start(["--admin-namespace", "infra"], { scope: ["--all-namespaces"] });
    const told = async (team: Beside, name: string) => {
      const { Ready = "" } = await team.conditions({ kind: "Group", name });
      return `| \`${Ready.replace("False ", "")}\` | \`${await team.message({ kind: "Group", name })}\` |`;
    };
    expect(await beside.get(ask)).toMatchObject({ status: 503 });
    expect(await beside.get("/ipxe?mac=52:54:00:00:00:99")).toMatchObject({ status: 404 });
    await expect.poll(() => told(a, "node-1")).toContain("SelectorTie");
    await expect.poll(() => told(b, "loud")).toContain("NotPermitted");
    await expect.poll(() => told(a, "all")).toContain("NotPermitted");
    for (const line of [await told(a, "node-1"), await told(b, "loud")])
      expect(page("reference/crds/group.md")).toContain(line);
    await infra.put(profile("admin"), group("node-1", mac, { profileRef: { name: "admin" } }));
    await expect.poll(async () => (await beside.get(ask)).body).toContain("kernel /assets/admin");
    await Promise.all([a, b, infra].map((each) => each.stop()));
  });

  it("decides by no name: two Groups of a namespace for one machine have it wait, a later claim of another one has no effect", async () => {
    beside = await Beside.make(cluster, "owner");
    const thief = await Beside.make(cluster, "a-thief");
    const wipe = { profileRef: { name: "wipe" } };
    await beside.put(profile("disk"), profile("wipe"), group("fcos-3", mac, { profileRef: { name: "disk" } }));
    await thief.put(profile("wipe"));
    await beside.start([], { scope: ["--namespace", "owner", "--namespace", "a-thief"] });
    const seen = new Set<string>();
    const look = async () => {
      const { status, body } = await beside.get(ask);
      seen.add(status === 200 ? (/kernel \S+/.exec(body)?.[0] ?? body) : String(status));
    };
    const conflicts = async (team: Beside, name: string) => {
      await look();
      const { Conflicted, Ready } = await team.conditions({ kind: "Group", name });
      return [Conflicted, Ready];
    };
    await look();
    await thief.put(group("dup", mac, wipe));
    await expect.poll(() => conflicts(thief, "dup")).toEqual(["True ClaimedBefore", "False ClaimedBefore"]);
    expect(await conflicts(beside, "fcos-3")).toEqual(["False NoConflict", "True Ready"]);
    expect(seen).toEqual(new Set(["kernel /assets/disk"]));
    await beside.put(group("dup", mac, wipe));
    const tied = ["True SelectorTie", "False SelectorTie"];
    for (const name of ["dup", "fcos-3"]) await expect.poll(() => conflicts(beside, name)).toEqual(tied);
    seen.clear();
    await look();
    expect(seen).toEqual(new Set(["503"]));
    const events = async () => (await cluster.kubectl(["-n", "owner", "get", "events"])).stdout;
    await expect.poll(events).toMatch(/SelectorTie\s+group\/fcos-3/i);
    await Promise.all([beside.delete({ kind: "Group", name: "dup" }), look()]);
    await expect.poll(() => conflicts(beside, "fcos-3")).toEqual(["False NoConflict", "True Ready"]);
    seen.delete("503");
    expect(seen).toEqual(new Set(["kernel /assets/disk"]));
    await thief.stop();
  }, 60_000);

  it("does all of its work with the Role of the documents, and is never refused anything", async () => {
    beside = await Beside.make(cluster, "davit");
    const [, role = ""] = /^## RBAC$.*?^```yaml\n(.*?)^```$/ms.exec(page("internals/controller.md")) ?? [];
    const token = await cluster.serviceAccountToken("davit", "davit");
    expect(await cluster.apply(role)).toContain("role.rbac.authorization.k8s.io/davit created");
    const secret = { kind: "Secret", name: "worker-tokens", labels: { "davit.dev/allow-template": "true" } } as const;
    await beside.put({ ...secret, data: { text: Buffer.from("secret").toString("base64") } });
    await beside.put({ kind: "ConfigMap", name: "texts", data: { text: "#cloud-config\n" } });
    const from = (kind: string, name: string) => ({ templateFrom: { [kind]: { name, key: "text" } } });
    const spec = { generic: from("secretKeyRef", "worker-tokens"), cloudConfig: from("configMapKeyRef", "texts") };
    await beside.put(profile("web", spec), group("node", mac), profile("bad", { generic: { inline: "{{" } }));
    const kubeconfig = cluster.kubeconfigFor("davit", token);
    await cluster.kubectl(["config", "set-context", "--current", "--namespace=davit"], { kubeconfig });
    await beside.start([], { kubeconfig });
    expect(await beside.get(`/generic?mac=${mac}`)).toEqual({ status: 200, body: "secret" });
    await beside.put({ kind: "ConfigMap", name: "texts", data: { text: "#cloud-config\nhostname: edited\n" } });
    await expect.poll(async () => (await beside.get(`/cloud?mac=${mac}`)).body).toContain("edited");
    await expect
      .poll(() => beside.conditions({ kind: "Profile", name: "bad" }))
      .toMatchObject({ Ready: expect.any(String) });
    await expect.poll(() => beside.conditions({ kind: "Profile", name: "web" })).toMatchObject({ Ready: "True Ready" });
    await expect
      .poll(async () => (await cluster.kubectl(["-n", "davit", "get", "events"])).stdout)
      .toContain("Warning");
    expect(await requestsTo(cluster, { code: "403" })).toBe(0);
    expect(beside.davit.log.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg)).toEqual([
      "object is not ready",
    ]);
  });

  it("takes a Secret that its Role does not name for one that is not there", async () => {
    beside = await Beside.make(cluster, "davit");
    const generic = { templateFrom: { secretKeyRef: { name: "other-tokens", key: "text" } } };
    await beside.put({
      kind: "Secret",
      name: "other-tokens",
      labels: { "davit.dev/allow-template": "true" },
      data: {},
    });
    await beside.put(
      profile("denied", { generic }),
      group("denied", "52:54:00:00:00:02", { profileRef: { name: "denied" } }),
    );
    const token = await cluster.serviceAccountToken("davit", "davit");
    await beside.start([], { kubeconfig: cluster.kubeconfigFor("davit", token) });
    const denied = { kind: "Profile", name: "denied" } as const;
    await expect.poll(() => beside.conditions(denied)).toMatchObject({ ResolvedRefs: "False TemplateNotFound" });
    expect((await beside.get("/ipxe?mac=52:54:00:00:00:02")).body).toContain("kernel /assets/denied");
  });
});
