/** A real API server with the chart's roles and policy: who approves cannot install, and who installs cannot approve. */

import { beforeAll, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import type { JsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { type Manifest, manifestsOf, rendered } from "./helm.ts";

const patience = { interval: 100, timeout: 15_000 };
const grant = { generation: 1, ledger: "9f3c0a52", until: "2026-12-01T18:00:00Z" };
const users = {
  viewer: "davit-machine-viewer.netboot",
  approver: "davit-machine-approver.netboot",
  installer: "davit-machine-installer.netboot",
} as const;
type User = keyof typeof users;

describe.skipIf(missing("kube-apiserver", "kubectl", "helm"))("with the policy of installs", () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await startCluster();
    const manifests = manifestsOf(await rendered({ way: "cluster-scope" })).filter(isOfPolicy);
    expect(manifests.map(({ kind }) => kind).filter((kind) => kind === "ClusterRole")).toHaveLength(3);
    const objects = [...manifests, ...Object.entries(users).map(([user, role]) => bindingOf(user, role))];
    await cluster.apply(objects.map((object) => stringify(object)).join("---\n"));
    await cluster.apply([machine("node7", {}), group("web", {})].map((object) => stringify(object)).join("---\n"));
    // The API server looks for policies and roles now and then. Before that the change is made, and is none the next time.
    let tries = 0;
    await vi.waitFor(async () => {
      expect(await patch("installer", "machine/node7", { approved: tries++ % 2 === 0 })).toContain("the verb approve");
      expect(await patch("approver", "machine/node7", { hold: true })).toBe("");
    }, patience);
    return () => cluster.stop();
  }, 180_000);

  it.each<[User, string, JsonObject, string]>([
    ["viewer", "machine/node7", { hold: true }, "forbidden"],
    ["approver", "machine/node7", { install: grant }, "the verb install on machines.davit.dev"],
    ["approver", "group/web", { hold: true }, "forbidden"],
    ["installer", "machine/node7", { approved: true }, "the verb approve on machines.davit.dev"],
    ["installer", "group/open", { approval: null }, "the verb approve on groups.davit.dev"],
  ])("%s may not change %s by %j", async (user, object, spec, refusal) => {
    await cluster.apply(stringify(group("open", { approval: "Required" })));
    expect(await patch(user, object, spec)).toContain(refusal);
  });

  it.each<[User, string, JsonObject]>([
    ["approver", "machine/node7", { approved: true }],
    ["approver", "machine/node7", { approved: false }],
    ["installer", "machine/node7", { install: grant }],
    ["installer", "machine/node7", { install: null }],
    ["installer", "machine/node7", { hold: true }],
    ["installer", "group/web", { install: { ...grant, scope: "All" } }],
    ["installer", "group/web", { install: null, hold: true }],
  ])("%s may change %s by %j", async (user, object, spec) => {
    expect(await patch(user, object, spec)).toBe("");
  });

  it("an approval and a grant stay with their machine", async () => {
    const objects = [machine("both", { approved: true, install: grant }), group("all", { install: grant })];
    await cluster.apply(objects.map((object) => stringify(object)).join("---\n"));
    const identity = { macs: ["52:54:00:00:00:99"] };
    expect(await patch("approver", "machine/both", { identity })).toContain("verb install on machines.davit.dev");
    expect(await patch("installer", "machine/both", { identity })).toContain("verb approve on machines.davit.dev");
    // Somebody who may edit Groups, as by the cluster's role `edit`.
    await cluster.apply(stringify(bindingOf("editor", "cluster-admin-without-verbs")));
    await cluster.apply(stringify(editorRole));
    const other = { selector: { matchLabels: { mac: "52:54:00:00:00:98" } } };
    await vi.waitFor(async () => expect(await patch("editor", "group/all", { hold: true })).toBe(""), patience);
    expect(await patch("editor", "group/all", other)).toContain("verb install on groups.davit.dev");
    expect(await patch("editor", "group/all", { install: null })).toBe("");
    expect(await patch("editor", "group/all", other)).toBe("");
  });

  /** Patches an object as a user. @returns why it is refused; empty if it is not. */
  async function patch(user: string, object: string, spec: JsonObject): Promise<string> {
    const [kind = "", name = ""] = object.split("/");
    const words = ["patch", `${kind}s.davit.dev`, name, "--type=merge", "-p", JSON.stringify({ spec }), "--as", user];
    const { code, stderr } = await cluster.kubectl(words);
    return code === 0 ? "" : stderr;
  }
});

const editorRole = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: { name: "cluster-admin-without-verbs" },
  rules: [{ apiGroups: ["davit.dev"], resources: ["groups"], verbs: ["get", "update", "patch"] }],
};

function isOfPolicy({ kind, metadata }: Manifest): boolean {
  if (kind.startsWith("ValidatingAdmissionPolicy")) return String(metadata.name).includes("-installs.");
  return kind === "ClusterRole" && String(metadata.name).includes("-machine-");
}

function bindingOf(user: string, role: string): JsonObject {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: `test-${user}` },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
  };
}

function machine(name: string, spec: JsonObject): JsonObject {
  const identity = { macs: [`52:54:00:00:00:0${name.length}`] };
  return { apiVersion: "davit.dev/v1alpha1", kind: "Machine", metadata: { name }, spec: { identity, ...spec } };
}

function group(name: string, spec: JsonObject): JsonObject {
  const selector = { matchLabels: { mac: `52:54:00:00:01:0${name.length}` } };
  const all = { profileRef: { name: "web" }, selector, ...spec };
  return { apiVersion: "davit.dev/v1alpha1", kind: "Group", metadata: { name }, spec: all };
}
