/** Machines, grants and the ledger's mark in a real API server, as davit and `davit machine` write them. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ApiClient } from "../../src/kubernetes/client/client.ts";
import { loadClusterAccess } from "../../src/kubernetes/client/kube-config.ts";
import { ConfigMapMark } from "../../src/kubernetes/ledger-mark.ts";
import { MachineCreator } from "../../src/kubernetes/machine-creator.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { MachinesBed } from "../commands/machines-under-test.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

const apiVersion = "davit.dev/v1alpha1";
const machines = `/apis/${apiVersion}/namespaces/default/machines`;
const markPath = "/api/v1/namespaces/default/configmaps/davit-ledger";
const identity = { macs: ["52:54:00:a1:9c:ae"] };
const place = { namespace: "default", name: "mac-525400a19cae" };

describe.skipIf(missing("kube-apiserver", "kubectl"))("in a real API server", () => {
  let cluster: Cluster;
  let client: ApiClient;

  beforeAll(async () => {
    cluster = await startCluster();
    const access = await loadClusterAccess({ kubeconfig: cluster.kubeconfig, environment: {} });
    const shared = { access, clock: systemClock, log: silentLog, random: () => 0 };
    client = new ApiClient({ ...shared, metrics: createMetrics("1"), version: "1" });
  }, 180_000);
  afterAll(async () => {
    await client?.stop();
    await cluster?.stop();
  });

  const read = async (path: string): Promise<JsonObject> => (await cluster.ask({ path })).body;
  const write = async (method: "PATCH" | "POST" | "DELETE", path: string, body?: JsonObject) =>
    await cluster.ask({ method, path, ...(body && { body }), contentType: "application/merge-patch+json" });

  describe("the ledger's mark", () => {
    const markOf = () => new ConfigMapMark({ client, clock: systemClock, namespace: "default" });
    const data = async () => (await read(markPath)).data;

    afterEach(async () => {
      await cluster.ask({ method: "DELETE", path: markPath });
    });

    it("is created, raised by patches, and never goes back", async () => {
      const mark = markOf();
      expect(await mark.read()).toBeUndefined();
      await mark.write("9f3c0a52", 3);
      await mark.write("9f3c0a52", 12);
      expect(await markOf().read()).toEqual({ id: "9f3c0a52", index: 12 });
      const other = markOf();
      await other.write("9f3c0a52", 20);
      await mark.write("9f3c0a52", 15);
      expect(await data()).toEqual({ id: "9f3c0a52", index: "20" });
      await mark.write("9f3c0a52", 21);
      expect(await data()).toEqual({ id: "9f3c0a52", index: "21" });
    });

    it("keeps what else is in the ConfigMap, also when somebody changes it in between", async () => {
      const mark = markOf();
      await mark.write("9f3c0a52", 3);
      await write("PATCH", markPath, { metadata: { labels: { team: "racks" } } });
      await mark.write("9f3c0a52", 4);
      const { metadata } = await read(markPath);
      expect(isJsonObject(metadata) ? metadata.labels : undefined).toEqual({ team: "racks" });
      expect(await data()).toEqual({ id: "9f3c0a52", index: "4" });
    });

    it("of many writers at once ends at the highest index", async () => {
      const marks = Array.from({ length: 5 }, markOf);
      await markOf().write("9f3c0a52", 1);
      const writes = marks.map(async (mark, at) => {
        for (let index = 2 + at; index < 40; index += 5) await mark.write("9f3c0a52", index).catch(() => undefined);
      });
      await Promise.all(writes);
      await markOf().write("9f3c0a52", 40);
      expect(await data()).toEqual({ id: "9f3c0a52", index: "40" });
    });

    it("belongs to one ledger: a former one does not get it back", async () => {
      const former = markOf();
      await former.write("00000001", 90);
      await markOf().write("9f3c0a52", 1);
      await expect(former.write("00000001", 91)).rejects.toThrow("has the mark of another ledger");
      expect(await data()).toEqual({ id: "9f3c0a52", index: "1" });
    });
  });

  describe("a pending Machine", () => {
    let creator: MachineCreator;

    beforeEach(() => {
      creator = new MachineCreator({ client });
    });
    afterEach(async () => {
      creator.stop();
      await cluster.ask({ method: "DELETE", path: `${machines}/${place.name}` });
    });

    it("is created once, and deleted while only its status has changed", async () => {
      expect(await creator.create({ ...place, identity })).toBe("created");
      expect(await creator.create({ ...place, identity })).toBe("exists");
      const path = `${machines}/${place.name}`;
      expect(await read(path)).toMatchObject({
        metadata: { generation: 1, labels: { "davit.dev/pending": "true" } },
        spec: { identity },
      });
      const status = { status: { phase: "Waiting" } };
      expect((await write("PATCH", `${path}/status`, status)).status).toBe(200);
      expect(await creator.deleteUntouched(place)).toBe("deleted");
      expect(await creator.deleteUntouched(place)).toBe("gone");
      expect((await cluster.ask({ path })).status).toBe(404);
    });

    it.each<[string, JsonObject]>([
      ["approved", { spec: { approved: true } }],
      ["held", { spec: { hold: true } }],
      ["labelled", { metadata: { labels: { rack: "7" } } }],
      ["noted", { metadata: { annotations: { note: "keep" } } }],
    ])("stays once a person has %s it", async (_what, patch) => {
      await creator.create({ ...place, identity });
      expect((await write("PATCH", `${machines}/${place.name}`, patch)).status).toBe(200);
      expect(await creator.deleteUntouched(place)).toBe("touched");
      expect(await read(`${machines}/${place.name}`)).toMatchObject(patch);
    });

    it("reports a namespace that does not exist", async () => {
      await expect(creator.create({ ...place, namespace: "none", identity })).rejects.toThrow("(404 NotFound)");
    });
  });

  describe("davit machine", () => {
    let bed: MachinesBed;
    const kubeconfig = () => ["--kubeconfig", cluster.kubeconfig];

    beforeEach(async () => {
      bed = await MachinesBed.start();
      const object = { apiVersion, kind: "Machine", metadata: { name: "node7" }, spec: { identity } };
      await cluster.ask({ method: "POST", path: machines, body: object });
    });
    afterEach(async () => {
      await cluster.ask({ method: "DELETE", path: `${machines}/node7` });
      await bed.stop();
    });

    it("approves, holds, releases and installs a Machine that kubectl shows", async () => {
      for (const verb of ["approve", "hold"]) expect((await bed.run(verb, "node7", ...kubeconfig())).code).toBe(0);
      expect(await read(`${machines}/node7`)).toMatchObject({ spec: { approved: true, hold: true } });
      expect((await bed.run("release", "node7", ...kubeconfig())).code).toBe(0);
      const ran = await bed.run("install", "machine/node7", ...kubeconfig());
      expect(ran).toMatchObject({ code: 0, errors: "" });
      expect((await bed.run("install", "machine/node7", ...kubeconfig())).code).toBe(0);
      const install = { generation: 2, ledger: "9f3c0a52", until: "2026-11-26T12:00:00Z" };
      expect(await read(`${machines}/node7`)).toMatchObject({ spec: { approved: true, hold: false, install } });
    });

    it("prints a command that kubectl takes", async () => {
      bed.fake.grants.set("machine/default/node7", undefined);
      const { output } = await bed.run("install", "machine/node7", "--print", ...kubeconfig());
      const [command = ""] = output.split("\n");
      const [, words = "", patch = ""] = /^kubectl (.*) --patch '(.*)'$/.exec(command) ?? [];
      const { code, stderr } = await cluster.kubectl([...words.split(" "), "--patch", patch]);
      expect([code, stderr]).toEqual([0, ""]);
      expect(await read(`${machines}/node7`)).toMatchObject({ spec: { install: { generation: 1 } } });
    });

    it("names what the CRD refuses, and what is not there", async () => {
      const gone = await bed.run("approve", "node8", ...kubeconfig());
      expect(gone).toMatchObject({ code: 1, errors: expect.stringContaining("it does not exist in the cluster") });
    });

    it("works with the rights that docs/operate/machines.md names, and with no others", async () => {
      await cluster.apply(rolesText);
      const { stdout } = await cluster.kubectl(["create", "token", "person"]);
      const mine = cluster.kubeconfigFor("person", stdout.trim());
      const approved = await bed.run("approve", "node7", "--kubeconfig", mine);
      expect(approved).toMatchObject({ code: 0, errors: "" });
      const refused = await bed.run("install", "group/web", "--kubeconfig", mine);
      expect(refused.errors).toBe(
        'Reading Group default/web: your account lacks the right for groups in namespace "default" (403)\n',
      );
    });
  });
});

const rolesText = `
apiVersion: v1
kind: ServiceAccount
metadata: { name: person, namespace: default }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: person, namespace: default }
rules:
  - { apiGroups: [davit.dev], resources: [machines], verbs: [get, patch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: person, namespace: default }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: person }
subjects: [{ kind: ServiceAccount, name: person, namespace: default }]
`;
