/**
 * A real API server takes every rendering, by strict validation and with the Pod Security level `restricted`, and what its
 * policy says holds. kubeconform says the same with the API server's own schemas.
 */

import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { operatorCrdsDirectory } from "../../tools/build/operator-crds.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { Beside, group } from "../cluster/beside.ts";
import { missing } from "../helpers/requirements.ts";
import { manifestsOf, rendered, runTool, template, ways } from "./helm.ts";
import { writeSchemas } from "./openapi-schemas.ts";

const root = join(import.meta.dirname, "../..");
const namespaces = ["netboot", "infra", "team-a", "team-b", "monitoring", "davit"];

const bothFamilies = "--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112";

// As long as the tests themselves may wait.
const patience = { interval: 25, timeout: 15_000 };

// What users bring of their own, and what has to have the node's network.
const unrestricted = ["everything", "dnsmasq", "dnsmasq-ranges"];

// What a Service may have, by itself and with what it has to do with.
const serviceSettings: readonly (readonly string[])[] = [
  ["port=80"],
  ["nodePort=30080"],
  ["loadBalancerClass=example.org/lab"],
  ["loadBalancerIP=192.0.2.10"],
  ["loadBalancerSourceRanges={192.0.2.0/24}"],
  ["externalTrafficPolicy=Local"],
  ["externalIPs={192.0.2.10}"],
  ["externalIPs={192.0.2.10}", "externalTrafficPolicy=Local"],
  ["clusterIP=10.0.0.77"],
  ["clusterIP=None"],
  ["clusterIP=None", "externalIPs={192.0.2.10}"],
  ["clusterIP=fd00:10::77", "ipFamilies={IPv6}"],
  ["clusterIP=fd00:10::77", "ipFamilies={IPv4,IPv6}"],
  ["ipFamilies={IPv4,IPv6}"],
  ["ipFamilies={IPv4,IPv6}", "ipFamilyPolicy=SingleStack"],
  ["ipFamilies={IPv6,IPv4}", "ipFamilyPolicy=RequireDualStack"],
  ["ipFamilies={IPv6}", "ipFamilyPolicy=PreferDualStack"],
];

describe.skipIf(missing("kube-apiserver", "kubectl", "helm", "operator-crds"))("the API server", () => {
  let cluster: Cluster;
  const schemas = mkdtempSync(join(tmpdir(), "davit-schemas-"));
  beforeAll(async () => {
    cluster = await startCluster({ withoutCrds: true, flags: [bothFamilies] });
    await cluster.apply(namespaces.map(restrictedNamespace).join("---\n"));
    await dryRun(["-f", operatorCrdsDirectory()], { isReal: true });
  }, 180_000);
  afterAll(async () => {
    await cluster?.stop();
    await rm(schemas, { recursive: true });
  });

  async function dryRun(
    what: readonly string[],
    { input = "", isReal = false, flags = ["--warnings-as-errors"] } = {},
  ) {
    const how = isReal ? ["--server-side"] : ["--dry-run=server", "--validate=strict", ...flags];
    const { code, stdout, stderr } = await cluster.kubectl(["apply", ...how, ...what], { input });
    if (code !== 0) throw new Error(`kubectl apply ended with ${code}\n${stderr}`);
    return stdout.trimEnd().split("\n");
  }

  it.each(ways)("takes %s", async (way) => {
    const input = await rendered({ way });
    const flags = unrestricted.includes(way) ? [] : ["--warnings-as-errors"];
    expect(await dryRun(["-f", "-"], { input, flags })).toHaveLength(manifestsOf(input).length);
  });

  it("takes manifests/install.yaml", async () => {
    expect((await dryRun(["-f", join(root, "manifests/install.yaml")])).length).toBeGreaterThan(10);
  });

  it("takes manifests/etcd/etcd.yaml", async () => {
    expect(await dryRun(["-n", "netboot", "-f", join(root, "manifests/etcd/etcd.yaml")])).toHaveLength(3);
  });

  it.each(["base", "rack"])("takes manifests/kustomize/%s", async (name) => {
    const { stdout } = await cluster.kubectl(["kustomize", join(root, "manifests/kustomize", name)]);
    const lines = await dryRun(["-f", "-"], { input: stdout });
    expect(lines).toHaveLength(manifestsOf(stdout).length);
    if (name === "rack") {
      expect(stdout).toContain("--advertise-address=192.0.2.10:30080");
      expect(stdout).toContain("image: registry.example/davit:0.2.0");
      expect(manifestsOf(stdout).filter(({ metadata }) => metadata.namespace === "davit")).toEqual([]);
    }
  });

  it("takes every Service that the chart does not refuse, whatever goes together in it", async () => {
    const taken: string[] = [];
    for (const type of ["ClusterIP", "NodePort", "LoadBalancer"]) {
      for (const settings of serviceSettings) {
        const set = [`type=${type}`, ...settings].map((setting) => `service.${setting}`).join();
        const { code, stdout, stderr } = await template({ args: ["--set", set, "-s", "templates/services/boot.yaml"] });
        if (code === 0) taken.push(stdout.replace("\n  name: davit\n", `\n  name: davit-${taken.length} # ${set}\n`));
        else expect(stderr, set).toContain("do not fit together");
      }
    }
    // What the API server says names the number, and so does what was sent.
    const lines = await dryRun(["-f", "-"], { input: taken.join("---\n"), flags: [] }).catch((error: unknown) => {
      throw new Error(
        `${String(error)}\n${taken
          .join("")
          .match(/davit-\d+ #.*/g)
          ?.join("\n")}`,
      );
    });
    expect(lines).toHaveLength(taken.length);
    expect(taken.length).toBeGreaterThan(20);
  }, 60_000);

  it("refuses a rendering with a field that is not there, so that the tests above mean something", async () => {
    const input = (await rendered()).replace("      enableServiceLinks:", "      enableServiceLink:");
    await expect(dryRun(["-f", "-"], { input })).rejects.toThrow(
      'unknown field "spec.template.spec.enableServiceLink"',
    );
  });

  it("warns of a pod that is not restricted, so that the tests above mean something", async () => {
    const input = await rendered({ args: ["--set", "securityContext.allowPrivilegeEscalation=true"] });
    await expect(dryRun(["-f", "-"], { input })).rejects.toThrow("would violate PodSecurity");
  });

  describe.skipIf(missing("kubeconform"))("and kubeconform by its schemas", () => {
    beforeAll(async () => {
      await cluster.installCrds();
      const document = await vi.waitFor(() => openApiWith(cluster, "dev.davit.v1alpha1.Group"), patience);
      writeSchemas(document, schemas);
    }, 60_000);

    const conform = async (input: string) => {
      const location = join(schemas, "{{.Group}}_{{.ResourceAPIVersion}}_{{.ResourceKind}}.json");
      return await runTool("kubeconform", ["-strict", "-summary", "-schema-location", location, "-"], input);
    };

    it.each(ways)("take %s", async (way) => {
      const input = await rendered({ way });
      const { code, stdout, stderr } = await conform(input);
      expect(`${stdout}${stderr}`).toContain(`Valid: ${manifestsOf(input).length}, Invalid: 0, Errors: 0, Skipped: 0`);
      expect(code).toBe(0);
    });

    it("take the quickstart", async () => {
      const quickstart = join(root, "manifests/quickstart");
      const texts = readdirSync(quickstart).map((name) => readFileSync(join(quickstart, name), "utf8"));
      expect((await conform(texts.join("---\n"))).stdout).toContain("Valid: 3, Invalid: 0, Errors: 0, Skipped: 0");
    });

    it("refuse a field that is not there, and a value of another type", async () => {
      const text = await rendered();
      const wrong = text
        .replace("      enableServiceLinks:", "      enableServiceLink:")
        .replace("clusterIP: None", "clusterIP: 5");
      expect((await conform(wrong)).stdout).toContain("Invalid: 2, Errors: 0, Skipped: 0");
    });
  });

  describe("with the policy of several namespaces", () => {
    let infra: Beside;
    let team: Beside;
    let other: Beside;
    beforeAll(async () => {
      await cluster.installCrds();
      infra = await Beside.make(cluster, "infra");
      team = await Beside.make(cluster, "team-a");
      other = await Beside.make(cluster, "monitoring");
      await team.put({ ...group("before", "52:54:00:00:00:01"), spec: catchAll });
      const policy = manifestsOf(await rendered({ way: "namespaces" })).filter(({ kind }) =>
        kind.startsWith("Validating"),
      );
      expect(policy).toHaveLength(2);
      await cluster.apply(policy.map((object) => stringify(object)).join("---\n"));
      // The API server looks for policies now and then.
      const refuses = async () => {
        await team.delete({ kind: "Group", name: "all" });
        expect(await refusal(team.put({ ...group("all", ""), spec: catchAll }))).not.toBe("");
      };
      await vi.waitFor(refuses, patience);
      return () => Promise.all([infra, team, other].map((each) => each.stop()));
    }, 60_000);

    const catchAll = { profileRef: { name: "web" }, matchAll: true };

    it("keeps catch-alls and priorities to the admin namespace, and says so", async () => {
      expect(await refusal(team.put({ ...group("all", ""), spec: catchAll }))).toContain(
        "a Group with matchAll belongs into the namespace infra",
      );
      expect(await refusal(team.put(group("loud", "52:54:00:00:00:02", { priority: 5 })))).toContain(
        "a Group with a priority belongs into the namespace infra",
      );
      await team.put(group("plain", "52:54:00:00:00:03", { priority: 0 }));
      await infra.put({ ...group("all", ""), spec: catchAll }, group("loud", "52:54:00:00:00:02", { priority: 5 }));
    });

    it("leaves other namespaces alone, and what was there before", async () => {
      await other.put({ ...group("all", ""), spec: catchAll });
      await team.touch({ kind: "Group", name: "before" });
      const { metadata } = await team.object({ kind: "Group", name: "before" });
      expect(metadata).toMatchObject({ annotations: { touched: expect.any(String) } });
    });
  });
});

function restrictedNamespace(name: string): string {
  const labels = { "pod-security.kubernetes.io/warn": "restricted" };
  return stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels } });
}

/** What a promise was rejected with; empty when it was not. */
async function refusal(done: Promise<void>): Promise<string> {
  return await done.then(
    () => "",
    (error: unknown) => String(error),
  );
}

/** @throws {Error} while it does not have this kind. */
async function openApiWith(cluster: Cluster, kind: string): Promise<string> {
  const text = JSON.stringify((await cluster.ask({ path: "/openapi/v2" })).body);
  if (!text.includes(kind)) throw new Error(`Reading /openapi/v2: there is no ${kind} yet`);
  return text;
}
