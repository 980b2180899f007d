/** Machine objects in a cluster: what machines get while they change, and what their statuses show. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { catchAll, createAll, macOf, profile } from "./machines.ts";
import { Poll } from "./poll.ts";
import { Rack } from "./rack.ts";

const timeoutMs = 240_000;
const patience = { timeout: 60_000 };
const [installedOne, approvedOne] = [1, 2];
// A person waits for it.
const approvalMs = 7_000;

describe.skipIf(missing("kube-apiserver", "kubectl"))("Machine objects", { timeout: timeoutMs }, () => {
  let cluster: ClusterAccess;
  let rack: Rack;

  beforeAll(async () => {
    cluster = await sharedCluster("machine-objects");
    const installer = profile("install", "installer");
    const effect = { ...installer, spec: { ...(installer.spec as JsonObject), effect: "Install" } };
    await createAll(cluster, [
      profile("work", "work"),
      effect,
      catchAll("installer", "install"),
      groupOf("installed", { mac: macOf(installedOne), os: "installed" }),
      groupOf("approved", { mac: macOf(approvedOne) }, { approval: "Required" }),
    ]);
    await apply(machineOf("node-1", installedOne, { labels: { os: "installed" } }));
    rack = await Rack.start({ kubeconfig: cluster.kubeconfig });
  }, timeoutMs);
  afterAll(async () => {
    await rack?.stop();
    await cluster?.stop();
  });

  async function apply(object: JsonObject): Promise<void> {
    await cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(object) });
  }

  async function patch(name: string, spec: JsonObject): Promise<void> {
    await cluster.kubectl(["patch", "machines.davit.dev", name, "--type=merge", "-p", JSON.stringify({ spec })]);
  }

  async function statusOf(name: string): Promise<JsonObject> {
    const { body } = await cluster.ask({
      path: `/apis/davit.dev/v1alpha1/namespaces/machine-objects/machines/${name}`,
    });
    return isJsonObject(body.status) ? body.status : {};
  }

  async function conditionsOf(name: string): Promise<Readonly<Record<string, unknown>>> {
    const { conditions } = await statusOf(name);
    const all: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
    return Object.fromEntries(all.filter(isJsonObject).map(({ type, reason }) => [String(type), reason]));
  }

  it("keep their machines from the installer while they are replaced, and when a label goes", async () => {
    await expect.poll(() => rack.boots(installedOne), patience).toBe("work");
    const poll = Poll.of(() => rack.boots(installedOne));
    const machine = machineOf("node-1", installedOne, { labels: { os: "installed" } });
    for (let round = 0; round < 3; round++) {
      await cluster.kubectl(["replace", "--force", "-f", "-"], { input: JSON.stringify(machine) });
      await expect.poll(() => rack.boots(installedOne), patience).toBe("work");
    }
    await patch("node-1", { labels: null });
    await expect.poll(() => rack.boots(installedOne), patience).toBe(503);
    await patch("node-1", { labels: { os: "installed" } });
    await expect.poll(() => rack.boots(installedOne), patience).toBe("work");
    await poll.stop();
    expect(poll.answers()).toEqual(new Set(["work", 503]));
  });

  it("are approved within seconds, by kubectl patch", async () => {
    await apply(machineOf("node-2", approvedOne));
    await expect
      .poll(() => conditionsOf("node-2"), patience)
      .toMatchObject({ Approved: "NotApproved", Ready: "Ready" });
    expect(await rack.boots(approvedOne)).toBe(503);
    await patch("node-2", { approved: true });
    await expect.poll(() => rack.boots(approvedOne), { timeout: approvalMs, interval: 100 }).toBe("work");
    await patch("node-2", { approved: false });
    await expect.poll(() => rack.boots(approvedOne), patience).toBe(503);
  });

  it("show a hold, and another Machine with the same address", async () => {
    await patch("node-1", { hold: true });
    await expect.poll(() => conditionsOf("node-1"), patience).toMatchObject({ Ready: "Held" });
    await expect.poll(() => statusOf("node-1"), patience).toMatchObject({ phase: "Held" });
    await apply(machineOf("node-3", installedOne));
    await expect.poll(() => conditionsOf("node-3"), patience).toMatchObject({ Identified: "Conflicted" });
    expect(await rack.boots(installedOne)).toBe(503);
  });
});

function machineOf(name: string, machine: number, spec: JsonObject = {}): JsonObject {
  const identity = { macs: [macOf(machine)] };
  return { apiVersion: "davit.dev/v1alpha1", kind: "Machine", metadata: { name }, spec: { identity, ...spec } };
}

function groupOf(name: string, matchLabels: JsonObject, spec: JsonObject = {}): JsonObject {
  const { spec: whole, ...rest } = catchAll(name, "work");
  return { ...rest, spec: { profileRef: (whole as JsonObject).profileRef ?? {}, selector: { matchLabels }, ...spec } };
}
