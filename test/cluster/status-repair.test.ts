/** A status is there for every object, whatever becomes of it: made anew in an instant, or wiped by somebody. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { Beside, group, profile } from "./beside.ts";

const patience = { timeout: 60_000, interval: 200 };
const apiVersion = "davit.dev/v1alpha1";
const groups = `/apis/${apiVersion}/namespaces/repaired/groups`;

describe.skipIf(missing("kube-apiserver"))("the status of", { timeout: 120_000 }, () => {
  let cluster: ClusterAccess;
  let beside: Beside;
  beforeAll(async () => {
    cluster = await sharedCluster("status-repair");
    beside = await Beside.make(cluster, "repaired");
    await beside.put(profile("web"));
    await beside.start();
  }, 180_000);
  afterAll(async () => {
    await beside?.stop();
    await cluster?.stop();
  });

  const macOf = (at: number) => `52:54:00:00:02:${at.toString(16).padStart(2, "0")}`;
  const ready = { Ready: "True Ready" };

  it("a Group that is deleted and created in one step is that of the new one", async () => {
    const names = Array.from({ length: 60 }, (_, at) => ({ kind: "Group", name: `anew-${at}` }) as const);
    await Promise.all(names.map(({ name }, at) => beside.put(group(name, macOf(at)))));
    for (const name of names) await expect.poll(() => beside.conditions(name), patience).toMatchObject(ready);
    for (let round = 0; round < 5; round++) {
      await Promise.all(
        names.map(async ({ name }, at) => {
          const { spec = {} } = group(name, macOf(at));
          const body = { apiVersion, kind: "Group", metadata: { name }, spec };
          await cluster.ask({ method: "DELETE", path: `${groups}/${name}` });
          expect((await cluster.ask({ method: "POST", path: groups, body })).status).toBe(201);
        }),
      );
    }
    for (const name of names) await expect.poll(() => beside.conditions(name), patience).toMatchObject(ready);
  });

  it.each(["Group", "Profile"] as const)("a %s that was wiped by hand is written again", async (kind) => {
    const name = kind === "Group" ? "wiped" : "web";
    await beside.put(group("wiped", "52:54:00:00:03:01"));
    await expect.poll(() => beside.conditions({ kind, name }), patience).toMatchObject(ready);
    const path = `/apis/${apiVersion}/namespaces/repaired/${kind.toLowerCase()}s/${name}/status`;
    const body = { status: null };
    for (let time = 0; time < 2; time++) {
      const answer = await cluster.ask({ method: "PATCH", path, body, contentType: "application/merge-patch+json" });
      expect(answer).toMatchObject({ status: 200 });
      expect(answer.body.status).toEqual({ observedGeneration: -1 });
      await expect.poll(() => beside.conditions({ kind, name }), patience).toMatchObject(ready);
    }
  });
});
