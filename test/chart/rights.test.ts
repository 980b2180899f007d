/** With exactly the rights that the chart renders, davit does its whole job, and is never refused anything. */

import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { Beside, profile } from "../cluster/beside.ts";
import { requestsTo } from "../cluster/metric.ts";
import { missing } from "../helpers/requirements.ts";
import { type Manifest, manifestsOf, objectsIn, rendered, within } from "./helm.ts";

const kinds = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
const account = "system:serviceaccount:netboot:davit";
const namespaces = ["netboot", "infra", "team-a", "team-b"];
const secretText = "as in the Secret";

interface Way {
  readonly way: string;
  /** Values beside those of the way. */
  readonly set: string;
  /** Namespaces with objects that machines get. */
  readonly read: readonly string[];
}

const all: readonly Way[] = [
  { way: "default", set: "rbac.secrets.names={worker-tokens}", read: ["netboot"] },
  { way: "namespaces", set: "tombstoneTtl=60s", read: ["infra", "team-a", "team-b"] },
  { way: "cluster-scope", set: "tombstoneTtl=60s", read: ["infra", "netboot"] },
];

describe.skipIf(missing("kube-apiserver", "kubectl", "helm"))("davit with the rights of", () => {
  let cluster: Cluster;
  let beside: Beside;
  beforeAll(async () => {
    cluster = await startCluster();
    return () => cluster.stop();
  }, 180_000);
  afterEach(() => beside?.stop());

  it.each(all)(
    "$way does all of its work",
    async ({ way, set, read }) => {
      beside = await Beside.make(cluster, "netboot");
      const places = await Promise.all(read.map((namespace) => Beside.make(cluster, namespace)));
      const manifests = manifestsOf(await rendered({ way, args: ["--set", set] }));
      const rights = manifests.filter(({ kind }) => kinds.includes(kind));
      await cluster.apply(rights.map((object) => stringify(object)).join("---\n"));
      for (const place of places) await fill(place);
      const token = await cluster.serviceAccountToken("netboot", "davit");
      await beside.start([], { kubeconfig: cluster.kubeconfigFor("davit", token), scope: scopeOf(manifests) });
      for (const place of places) {
        expect(await beside.get(`/generic?mac=${macOf(place)}`)).toEqual({ status: 200, body: secretText });
        await expect
          .poll(() => place.conditions({ kind: "Profile", name: "web" }))
          .toMatchObject({ Ready: "True Ready" });
        await expect
          .poll(async () => (await cluster.kubectl(["-n", place.namespace, "get", "events"])).stdout)
          .toContain("Warning");
        await place.put({ kind: "ConfigMap", name: "texts", data: { text: "#cloud-config\nhostname: edited\n" } });
        await expect.poll(async () => (await beside.get(`/cloud?mac=${macOf(place)}`)).body).toContain("edited");
      }
      expect(await requestsTo(cluster, { code: "403" })).toBe(0);
      await cluster.kubectl(["delete", "-f", "-"], { input: rights.map((object) => stringify(object)).join("---\n") });
      await Promise.all(places.map((place) => place.stop()));
    },
    60_000,
  );

  it("a store of its own publishes its authority in one ConfigMap, and changes none but that of its ledger", async () => {
    beside = await Beside.make(cluster, "netboot");
    const name = "davit-store-ca";
    const manifests = manifestsOf(await rendered({ way: "followers" }));
    const needed = manifests.filter(({ kind, metadata }) => kinds.includes(kind) || metadata.name === name);
    await cluster.apply(needed.map((object) => stringify(object)).join("---\n"));
    const kubeconfig = cluster.kubeconfigFor("davit", await cluster.serviceAccountToken("netboot", "davit"));
    await cluster.kubectl(["config", "set-context", "--current", "--namespace", "netboot"], { kubeconfig });
    await beside.start(["--store-own-certificate", "--store-ca-configmap", name], { kubeconfig });
    const published = async () => within(await beside.object({ kind: "ConfigMap", name }), "data")["ca.crt"];
    await expect.poll(published).toContain("-----BEGIN CERTIFICATE-----");
    expect(await requestsTo(cluster, { code: "403" })).toBe(0);
    const may = async (...words: readonly string[]) => {
      const { stdout } = await cluster.kubectl(["auth", "can-i", "-n", "netboot", "--as", account, ...words]);
      return stdout.trim();
    };
    expect(await may("patch", "configmap/davit-store-ca")).toBe("yes");
    for (const words of [
      ["patch", "configmap/other"],
      ["delete", "configmap/davit-ledger"],
      // The mark of another release.
      ["patch", "configmap/spare-davit-ledger"],
      ["delete", "configmap/davit-store-ca"],
      ["get", "secrets"],
      ["update", "profiles.davit.dev"],
      ["create", "tokenreviews.authentication.k8s.io"],
    ]) {
      expect(await may(...words), words.join(" ")).toBe("no");
    }
  });
});

describe.skipIf(missing("helm"))("rights of", () => {
  it("followers have none", async () => {
    const bindings = manifestsOf(await rendered({ way: "followers" })).filter(({ kind }) =>
      kind.endsWith("RoleBinding"),
    );
    expect(bindings.length).toBeGreaterThan(1);
    expect(bindings.flatMap(({ subjects }) => objectsIn(subjects)).map(({ name }) => name)).not.toContain("davit-boot");
  });
});

/** A Profile with texts of a ConfigMap and of a Secret, a machine that boots it, and a Group that is not ready. */
async function fill(place: Beside): Promise<void> {
  const from = (kind: string, name: string) => ({ templateFrom: { [kind]: { name, key: "text" } } });
  const labels = { "davit.dev/allow-template": "true" };
  const text = Buffer.from(secretText).toString("base64");
  const group = (name: string, mac: string, to: string) =>
    ({ kind: "Group", name, spec: { profileRef: { name: to }, selector: { matchLabels: { mac } } } }) as const;
  await place.put(
    { kind: "Secret", name: "worker-tokens", labels, data: { text } },
    { kind: "ConfigMap", name: "texts", data: { text: "#cloud-config\n" } },
    profile("web", { generic: from("secretKeyRef", "worker-tokens"), cloudConfig: from("configMapKeyRef", "texts") }),
    group("node", macOf(place), "web"),
    group("lost", macOf(place).replace("52:54", "52:55"), "none"),
  );
}

/** The machine of a namespace. */
function macOf({ namespace }: Beside): string {
  return `52:54:00:00:00:0${namespaces.indexOf(namespace)}`;
}

/** What the rendered command line says of namespaces; the release's own where it says nothing, as in a pod. */
function scopeOf(manifests: readonly Manifest[]): readonly string[] {
  const [serve] = manifests.filter(({ kind }) => kind === "StatefulSet");
  if (serve === undefined) throw new Error("Reading a rendering: there is no StatefulSet");
  const [davit = {}] = objectsIn(within(serve, "spec", "template", "spec").containers);
  const scope = [davit.args]
    .flat()
    .map(String)
    .filter((arg) => /^--(namespace|all-namespaces|admin-namespace)\b/.test(arg));
  return scope.length > 0 ? scope : ["--namespace", "netboot"];
}
