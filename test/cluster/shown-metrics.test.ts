/**
 * What the alerts and the dashboard ask for is what a davit in a cluster and its follower show: promtool finds each
 * metric with each label in their real `/metrics`.
 */

import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { isJsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { freePorts } from "../../tools/cluster/ports.ts";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";
import { alerts, groupingsIn, panelQueries, selectorsIn } from "../chart/queries.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing, promtoolPath } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { createAll, machineGroup, macOf, profile } from "./machines.ts";
import { Rack } from "./rack.ts";

const run = promisify(execFile);
const limitMs = 180_000;

/** What the metrics of Node have, which davit does not name. */
const ofNode = /^nodejs_active_\w+_total non-counter metrics should not have "_total" suffix$/;

describe.skipIf(missing("kube-apiserver", "promtool"))(
  "a davit in a cluster, its follower, and a member on an etcd",
  { timeout: limitMs },
  () => {
    const folder = mkdtempSync(join(tmpdir(), "davit-shown-"));
    let cluster: ClusterAccess;
    let rack: Rack;
    let follower: DavitBootProcess;
    let etcd: EtcdMembers;
    let member: DavitProcess;
    const exposed = new Map<string, string>();

    beforeAll(async () => {
      cluster = await sharedCluster("shown-metrics");
      await createAll(cluster, [profile("work", "linux"), machineGroup(1)]);
      const backups = ["--backup-every", "1h", "--backup-dir", join(folder, "backups")];
      const assets = ["--assets-dir", folder, "--fetch-assets-from", "assets.example"];
      const audit = ["--audit-log", join(folder, "audit.log")];
      rack = await Rack.start({ kubeconfig: cluster.kubeconfig, args: [...backups, ...assets, ...audit] });
      follower = await startDavitBoot(storeOf(rack.davit));
      etcd = await startEtcdV3();
      const [port = 0] = await freePorts(1);
      const shared = [
        "--store-etcd-endpoints",
        etcd.urls.map(String).join(","),
        "--store-address",
        `127.0.0.1:${port}`,
      ];
      const manifests = join(import.meta.dirname, "../../manifests/quickstart");
      member = await startDavit({ manifests, dataDir: join(folder, "member"), args: shared });
      for (const { bootUrl } of [rack.davit, follower]) {
        await (await fetch(`${bootUrl}/ipxe?mac=${macOf(1)}`)).text();
      }
      for (const [pod, { opsUrl }] of Object.entries({ "davit-0": rack.davit, "davit-boot": follower, member })) {
        exposed.set(pod, await (await fetch(`${opsUrl}/metrics`)).text());
      }
    }, limitMs);
    afterAll(async () => {
      await member.stop();
      await etcd.stop();
      await follower.stop();
      await rack.stop();
      await cluster.stop();
      rmSync(folder, { recursive: true });
    });

    it("show metrics that promtool reads, and finds well named", () => {
      for (const input of exposed.values()) {
        const { status, stdout, stderr } = spawnSync(promtoolPath, ["check", "metrics"], { input, encoding: "utf8" });
        expect(stdout).toBe("");
        expect(stderr.split("\n").filter((line) => line !== "" && !ofNode.test(line))).toEqual([]);
        // 3 is advice: that about Node.
        expect([0, 3]).toContain(status);
      }
    });

    it("show each metric of an alert or a panel, with each of its labels", async () => {
      const queries = [...alerts.map(({ expr }) => String(expr)), ...panelQueries];
      const asked = [...queries.flatMap(selectorsIn), ...queries.flatMap(groupingsIn)];
      expect(asked.length).toBeGreaterThan(80);
      const series = [...exposed].flatMap(([pod, text]) =>
        [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, metric = "", labels = "", value = ""]) => ({
          series: `${metric}{${[`pod="${pod}"`, ...(labels === "" ? [] : [labels])].join(",")}}`,
          values: `${value} ${value}`,
        })),
      );
      const promql_expr_test = asked.map(({ metric, labels }) => ({
        expr: `group(${metric}{${labels.map((label) => `${label}!=""`).join(",")}})`,
        eval_time: "1m",
        exp_samples: [{ labels: "{}", value: 1 }],
      }));
      const path = join(folder, "shown.yaml");
      writeFileSync(path, stringify({ tests: [{ interval: "1m", input_series: series, promql_expr_test }] }));
      const failed = await run(promtoolPath, ["test", "rules", path]).then(
        () => "",
        (error: unknown) => (isJsonObject(error) ? `${error.stdout}${error.stderr}` : String(error)),
      );
      expect(failed).toBe("");
    });
  },
);
