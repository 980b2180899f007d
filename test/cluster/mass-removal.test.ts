/**
 * The first law: however the Groups of thousands of machines go, none of these machines ever gets the catch-all that
 * installs. `DAVIT_TEST_GROUPS` sets how many; `make test-cluster-long` takes 5,000.
 */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { catchAll, createAll, machineGroup, pathOf, profile } from "./machines.ts";
import { Rack } from "./rack.ts";
import { Roll } from "./roll.ts";

const count = Number(process.env.DAVIT_TEST_GROUPS ?? 100);
const machines = Array.from({ length: count }, (_, machine) => machine);
const stranger = count + 1;
const installer = catchAll("installer", "install");
const patience = { timeout: 60_000 + count * 20, interval: 100 };
// Writing an object takes some 5 ms, and up to ten times that on a busy machine.
const timeoutMs = 120_000 + count * 200;

describe.skipIf(missing("kube-apiserver", "kubectl"))(
  `when ${count} Groups of machines go, none of these machines gets the catch-all`,
  { timeout: timeoutMs },
  () => {
    let cluster: Cluster;
    let rack: Rack;
    let roll: Roll;
    beforeAll(async () => {
      cluster = await startCluster();
      await createAll(cluster, [profile("work", "work"), profile("install", "installer")]);
      rack = await Rack.start({ kubeconfig: cluster.kubeconfig });
    }, timeoutMs);
    afterAll(async () => {
      await rack?.stop();
      await cluster?.stop();
    });
    beforeEach(async () => {
      await fill();
      roll = Roll.call(rack, machines);
      return () => roll.stop();
    }, timeoutMs);

    const groups = () => expect.poll(() => rack.metric("davit_resources", 'kind="Group"'), patience);

    /** The catch-all is removed first and comes last, as docs/internals/controller.md has it. */
    async function fill(): Promise<void> {
      await cluster.ask({ method: "DELETE", path: `${pathOf(cluster, "groups")}/installer` });
      await groups().toBe(0);
      await createAll(
        cluster,
        machines.map((machine) => machineGroup(machine)),
      );
      await groups().toBe(count);
      await createAll(cluster, [installer]);
      await expect.poll(() => rack.boots(stranger), patience).toBe("installer");
    }

    async function removeCrd(): Promise<void> {
      await cluster.kubectl(["delete", "crd", "groups.davit.dev"]);
      await groups().toBe(0);
    }

    it("with their CRD", async () => {
      await removeCrd();
      expect(await rack.boots(stranger)).toBe(404);
      expect(await roll.answersOf(machines)).toEqual(new Set([503]));
      expect(roll.answers()).toEqual(new Set(["work", 503]));
      await cluster.installCrds();
    });

    it("with their CRD, when it is back with the catch-all before all others", async () => {
      await removeCrd();
      await cluster.installCrds();
      await createAll(cluster, [installer]);
      await expect.poll(() => rack.boots(stranger), patience).toBe("installer");
      expect(await roll.answersOf(machines.slice(0, 100))).toEqual(new Set([503]));
      await createAll(
        cluster,
        machines.map((machine) => machineGroup(machine)),
      );
      await groups().toBe(count + 1);
      expect(await roll.answersOf(machines)).toEqual(new Set(["work"]));
      expect(roll.answers()).toEqual(new Set(["work", 503]));
      await cluster.kubectl(["delete", "groups.davit.dev", "--all", "--wait=false"]);
      await groups().toBe(0);
    });

    it("with all of the namespace, by kubectl delete --all", async () => {
      await cluster.kubectl(["delete", "groups.davit.dev", "--all", "--wait=false"]);
      await groups().toBe(0);
      expect(await roll.answersOf(machines)).toEqual(new Set([503]));
      expect(roll.answers()).toEqual(new Set(["work", 503]));
    });

    it("by a label that the catch-all has not", async () => {
      await cluster.kubectl(["delete", "groups.davit.dev", "--wait=false", "-l", "role=node"]);
      await groups().toBe(1);
      expect(await roll.answersOf(machines)).toEqual(new Set([503]));
      expect(await rack.boots(stranger)).toBe("installer");
      expect(roll.answers()).toEqual(new Set(["work", 503]));
    });

    it("by a prune that keeps the catch-all", async () => {
      const prune = ["--prune", "-l", "role=node", "--prune-allowlist=davit.dev/v1alpha1/Group"];
      const input = JSON.stringify({ ...installer, metadata: { name: "installer", labels: { role: "node" } } });
      const { code } = await cluster.kubectl(["apply", ...prune, "-f", "-"], { input });
      expect(code).toBe(0);
      await groups().toBe(1);
      expect(await roll.answersOf(machines)).toEqual(new Set([503]));
      expect(roll.answers()).toEqual(new Set(["work", 503]));
    });
  },
);
