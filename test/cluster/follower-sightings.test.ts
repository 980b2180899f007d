/** A machine that boots from a follower shows in its Machine like one that boots from the writer, and opens nothing. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { historyPath } from "../../src/model/history-batch.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import {
  type DavitBootProcess,
  type DavitProcess,
  localAuthorization,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";

const soon = { timeout: 60_000, interval: 100 };
const machines = "/apis/davit.dev/v1alpha1/namespaces/follower-sightings/machines";
const macOf = (number: number) => `52:54:00:00:00:0${number}`;
const machineOf = (number: number) => `
apiVersion: davit.dev/v1alpha1
kind: Machine
metadata: {name: node-${number}}
spec: {identity: {macs: ["${macOf(number)}"]}}
---`;

const objects = `
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: work}
spec: {boot: {kernel: /assets/linux}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: rack}
spec: {profileRef: {name: work}, selector: {matchLabels: {role: rack}}, enroll: true}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: locked}
spec: {profileRef: {name: work}, selector: {matchLabels: {role: locked}}, approval: Required}
---${[1, 2, 3].map(machineOf).join("")}
`;

describe.skipIf(missing("kube-apiserver", "kubectl"))("a machine that asks a follower", { timeout: 120_000 }, () => {
  let cluster: ClusterAccess;
  let folder: string;
  let writer: DavitProcess;
  let follower: DavitBootProcess;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-sightings-"));
    cluster = await sharedCluster("follower-sightings");
    await cluster.apply(objects);
    writer = await startDavit({ kubeconfig: cluster.kubeconfig, dataDir: join(folder, "data") });
    follower = await startDavitBoot(storeOf(writer));
  }, 240_000);
  afterAll(async () => {
    await follower?.stop();
    await writer?.stop();
    await cluster?.stop();
    await rm(folder, { recursive: true });
  });

  const ask = async ({ bootUrl }: DavitBootProcess, number: number, role = "rack") =>
    (await fetch(`${bootUrl}/ipxe?role=${role}&mac=${macOf(number)}`)).status;

  async function statusOf(name: string): Promise<JsonObject> {
    const { body } = await cluster.ask({ path: `${machines}/${name}` });
    return isJsonObject(body.status) ? body.status : {};
  }

  it("shows its phase, its address and when it asked, as at the writer", async () => {
    expect([await ask(follower, 1), await ask(writer, 2)]).toEqual([200, 200]);
    const shown = (lastSeen: unknown) => ({
      phase: "Booted",
      address: "127.0.0.1",
      group: "follower-sightings/rack",
      profile: "follower-sightings/work",
      lastSeen,
      boot: { at: lastSeen, stage: "ipxe", result: "served" },
    });
    await expect.poll(() => statusOf("node-2"), soon).toMatchObject(shown(expect.any(String)));
    await expect.poll(() => statusOf("node-1"), soon).toMatchObject(shown(expect.any(String)));
  });

  it("has a line of kubectl with its Group, Profile, phase and when it asked", async () => {
    await expect.poll(() => statusOf("node-1"), soon).toMatchObject({ phase: "Booted" });
    const lines = async (...more: readonly string[]) => {
      const { stdout } = await cluster.kubectl(["get", "machines.davit.dev", "node-1", ...more]);
      return stdout.trimEnd().split("\n");
    };
    const [head, line] = await lines();
    expect(head).toMatch(/^NAME +MAC +GROUP +PROFILE +PHASE +INSTALL +SEEN$/);
    expect(line).toMatch(
      /^node-1 +52:54:00:00:00:01 +follower-sightings\/rack +follower-sightings\/work +Booted +\d+\w+$/,
    );
    const [wideHead, wide] = await lines("-o", "wide");
    expect(wideHead).toMatch(/ SEEN +UUID +ADDRESS +RENDERED$/);
    expect(wide).toMatch(/ 127\.0\.0\.1( |$)/);
  });

  it("is no new Machine, and no follower can approve one by what it hands on", async () => {
    expect(await ask(follower, 3, "locked")).toBe(503);
    const forgedRequest = (mac: string) => [
      ...[1, "192.0.2.1", "ipxe", null, 0, 200, null, "follower-sightings/rack", 100, 100, { mac }],
      ...[null, "follower-sightings/work", null, "approved", "Installed"],
    ];
    const requests = ["52:54:00:00:00:09", macOf(3)].map(forgedRequest);
    const run = "0123456789abcdef";
    const forged = await fetch(`${writer.storeUrl}${historyPath}`, {
      method: "POST",
      headers: await localAuthorization(writer.dataDir),
      body: JSON.stringify({ via: "pod-1", run, first: 0, dropped: 0, agoMs: [0, 0], requests }),
    });
    expect([forged.status, await forged.json()]).toEqual([200, { taken: 2 }]);
    await expect.poll(() => statusOf("node-3"), soon).toMatchObject({ group: "follower-sightings/rack" });
    expect([await ask(writer, 3, "locked"), await ask(follower, 3, "locked")]).toEqual([503, 503]);
    // Both came together, so an enrolment would have begun before the status.
    expect(await ask(writer, 8)).toBe(200);
    await expect.poll(async () => (await cluster.ask({ path: `${machines}/mac-525400000008` })).status, soon).toBe(200);
    expect((await cluster.ask({ path: `${machines}/mac-525400000009` })).status).toBe(404);
  });

  it("needs a follower's credentials to be handed on", async () => {
    const sent = await fetch(`${writer.storeUrl}${historyPath}`, { method: "POST", body: "{}" });
    expect(sent.status).toBe(401);
  });
});
