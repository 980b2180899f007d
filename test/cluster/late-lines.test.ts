/** A connection that brings the lines of watches late makes nothing look new, and no machine is installed by it. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { createAll, machineGroup, pathOf, profile } from "./machines.ts";
import { Rack } from "./rack.ts";

const patience = { timeout: 60_000, interval: 50 };
const machine = 11;
const oldLines = 240;

describe.skipIf(missing("kube-apiserver"))("davit, while a connection brings lines late", { timeout: 180_000 }, () => {
  let cluster: ClusterAccess;
  let proxy: FaultProxy;
  let rack: Rack;
  beforeAll(async () => {
    cluster = await sharedCluster("late-lines");
    proxy = await FaultProxy.start(cluster);
    await createAll(cluster, [profile("work", "first"), installer("wipe")]);
    await createAll(cluster, [machineGroup(1), machineGroup(2), machineGroup(machine, "wipe")]);
    const kubeconfig = cluster.kubeconfigFor("slow", cluster.adminToken, proxy.url);
    rack = await Rack.start({ kubeconfig, args: ["--install-max-source-age", "10s"] });
  }, 180_000);
  afterAll(async () => {
    await rack?.stop();
    await proxy?.stop();
    await cluster?.stop();
  });

  const patch = async (name: string, body: JsonObject) => {
    const contentType = "application/merge-patch+json";
    const answer = await cluster.ask({
      method: "PATCH",
      path: `${pathOf(cluster, "groups")}/${name}`,
      contentType,
      body,
    });
    expect(answer.status).toBe(200);
  };

  it("installs no machine that was moved away, and finds the change by a list", async () => {
    await expect.poll(() => rack.boots(machine), patience).toBe("wipe");
    // So many old lines take minutes, while each of them is a sign of life.
    proxy.slowWatches(1_000);
    for (let at = 0; at < oldLines; at++) await patch("node-1", { metadata: { annotations: { at: String(at) } } });
    await patch(`node-${machine}`, { spec: { profileRef: { name: "work" } } });
    const seen: (string | number)[] = [];
    const look = async () => {
      const answer = await rack.boots(machine);
      if (seen.at(-1) !== answer) seen.push(answer);
      return answer;
    };
    await expect.poll(look, patience).toBe("first");
    expect(seen).toEqual(seen.length > 2 ? ["wipe", 503, "first"] : ["wipe", "first"]);
    expect(await rack.metric("davit_watch_restarts_total", 'reason="unproven"')).toBeGreaterThan(0);
  });

  it("installs a machine that is still to be installed, though lines are late", async () => {
    proxy.behave();
    await patch("node-2", { spec: { profileRef: { name: "wipe" } } });
    await expect.poll(() => rack.boots(2), patience).toBe("wipe");
    const relists = await rack.metric("davit_relists_total");
    proxy.slowWatches(1_000);
    for (let at = 0; at < oldLines; at++) await patch("node-1", { metadata: { annotations: { more: String(at) } } });
    const seen = new Set<string | number>();
    const look = async () => {
      const answer = await rack.boots(2);
      seen.add(answer);
      return answer;
    };
    await expect
      .poll(async () => [await look(), await rack.metric("davit_relists_total")][1], patience)
      .toBeGreaterThan(relists);
    // On a busy machine the list comes after the staleness: the machine waits, and goes on by the list.
    await expect.poll(look, patience).toBe("wipe");
    expect([...seen].filter((answer) => answer !== 503)).toEqual(["wipe"]);
  });
});

function installer(name: string): JsonObject {
  const { spec, ...rest } = profile(name, name);
  return { ...rest, spec: { ...(isJsonObject(spec) ? spec : {}), effect: "Install" } };
}
