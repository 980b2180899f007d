/** How far the last good version of an object goes, with a real API server: never to another object of its name. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { missing } from "../helpers/requirements.ts";
import { Beside, group, profile } from "./beside.ts";
import { type Cluster, startCluster } from "./cluster.ts";

const patience = { timeout: 30_000, interval: 20 };
const mac = "52:54:00:00:00:01";
const fromMissing = { templateFrom: { configMapKeyRef: { name: "missing", key: "text" } } };

describe.skipIf(missing("kube-apiserver"))("last good", { timeout: 120_000 }, () => {
  let cluster: Cluster;
  let beside: Beside;
  const seen = new Set<string | number>();
  beforeAll(async () => {
    cluster = await startCluster();
    beside = await Beside.make(cluster, "last-good");
  }, 180_000);
  afterAll(async () => {
    await beside?.stop();
    await cluster?.stop();
  });

  /** What the machine boots, noted in `seen`. */
  async function boots(): Promise<string | number> {
    const { status, body } = await beside.get(`/ipxe?mac=${mac}`);
    const answer = status === 200 ? (/assets\/\S+|exit/.exec(body)?.[0] ?? body) : status;
    seen.add(answer);
    return answer;
  }

  it("ends with its Profile: one created anew while davit was down gives nothing of the one that went", async () => {
    await beside.put(profile("web"), group("node", mac));
    await beside.start();
    await expect.poll(boots, patience).toBe("assets/web");
    await beside.end();
    await beside.delete({ kind: "Profile", name: "web" });
    await beside.put({ kind: "Profile", name: "web", spec: { boot: { local: "exit" }, ignition: fromMissing } });
    seen.clear();
    await beside.start();
    const web = { kind: "Profile", name: "web" } as const;
    await expect.poll(boots, patience).toBe("exit");
    await expect
      .poll(() => beside.conditions(web), patience)
      .toMatchObject({ Synced: "True Synced", Ready: "False TemplateNotFound" });
    expect([...seen].filter((answer) => answer !== 503)).toEqual(["exit"]);
  });
});
