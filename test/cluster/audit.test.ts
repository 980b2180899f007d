/** The audit log beside a real API server: it names the field manager of each change, and nobody where it cannot. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { createAll, machineGroup, pathOf, profile } from "./machines.ts";
import { Rack } from "./rack.ts";

describe.skipIf(missing("kube-apiserver"))("the audit log", { timeout: 180_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "davit-audit-cluster-"));
  const path = join(folder, "audit.log");
  let cluster: ClusterAccess;
  let rack: Rack;
  beforeAll(async () => {
    cluster = await sharedCluster("audit");
    await createAll(cluster, [profile("work", "linux"), machineGroup(1)]);
    rack = await Rack.start({ kubeconfig: cluster.kubeconfig, args: ["--audit-log", path] });
  }, 180_000);
  afterAll(async () => {
    await rack.stop();
    await cluster.stop();
    rmSync(folder, { recursive: true });
  });

  const lines = (): readonly JsonObject[] => {
    const texts = readFileSync(path, "utf8").split("\n").slice(0, -1);
    return texts.map((text) => parseJsonObject(text) ?? { unreadable: text });
  };

  it("names who changed an object, by the API server's record, in the version that machines get", async () => {
    await expect.poll(() => lines().length).toBe(2);
    const group = `${pathOf(cluster, "groups")}/node-1`;
    // davit's own first status is a version, too.
    await expect
      .poll(async () => (await cluster.ask({ path: group })).body)
      .toMatchObject({
        status: { observedGeneration: 1 },
      });
    // The record has times in seconds: of two managers in one second it does not say who was later.
    const { creationTimestamp } = Object((await cluster.ask({ path: group })).body.metadata);
    await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(creationTimestamp) + 1_000);
    const body = { spec: { hold: true } };
    const patch = { method: "PATCH", path: `${group}?fieldManager=rack-tool`, body } as const;
    const answer = await cluster.ask({ ...patch, contentType: "application/merge-patch+json" });
    expect(answer.status).toBe(200);
    await expect.poll(() => lines().length).toBe(3);
    expect(lines().at(-1)).toMatchObject({
      action: "updated",
      kind: "Group",
      name: "node-1",
      generation: 2,
      resourceVersion: isJsonObject(answer.body.metadata) ? answer.body.metadata.resourceVersion : undefined,
      manager: "rack-tool",
      operation: "Update",
      managedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      changed: ["hold"],
      serving: { before: "served", after: "held" },
    });
    expect((await cluster.ask({ method: "DELETE", path: group })).status).toBe(200);
    await expect.poll(() => lines().length).toBe(4);
    expect(lines().at(-1)).toMatchObject({ action: "removed", kind: "Group", name: "node-1" });
    expect(lines().at(-1)).not.toHaveProperty("manager");
  });
});
