/** How far the last good version of an object goes, with a real API server: never to another object of its name. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { Beside, group, profile } from "./beside.ts";
import { Poll } from "./poll.ts";

const patience = { timeout: 30_000, interval: 20 };
const mac = "52:54:00:00:00:01";
const fromMissing = { templateFrom: { configMapKeyRef: { name: "missing", key: "text" } } };

describe.skipIf(missing("kube-apiserver", "kubectl"))("last good", { timeout: 120_000 }, () => {
  let cluster: ClusterAccess;
  let beside: Beside;
  const seen = new Set<string | number>();
  beforeAll(async () => {
    cluster = await sharedCluster("last-good");
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

  it("stays for a fleet whose Profile prints a variable that nothing defines, and no object of it is ready", async () => {
    const fleet = Array.from({ length: 20 }, (_, at) => `52:54:00:00:01:${at + 10}`);
    const own = await Beside.make(cluster, "fleet");
    const text = (generic: string) => profile("web", { generic: { inline: generic } });
    const named = (at: number) => `node-${at}`;
    try {
      await own.put(text("disk={{disk}}"));
      await own.put(...fleet.map((each, at) => group(named(at), each, { metadata: { disk: "sda" } })));
      await own.start();
      const wait = (kind: string, seconds: number, condition: string) =>
        cluster.kubectl(["-n", "fleet", "wait", `--for=${condition}`, kind, "--all", `--timeout=${seconds}s`]);
      expect((await wait("groups.davit.dev", 60, "condition=Ready")).code).toBe(0);
      const poll = Poll.of(async () => {
        const answers = await Promise.all(fleet.map((each) => own.get(`/generic?mac=${each}`)));
        return [...new Set(answers.map(({ status, body }) => (status === 200 ? body : String(status))))].join();
      });
      await own.put(text("disk={{disc}}"));
      expect((await wait("groups.davit.dev", 60, "condition=Ready=False")).code).toBe(0);
      const isReady = await wait("groups.davit.dev,profiles.davit.dev", 1, "condition=Ready");
      await poll.stop();
      expect([...poll.answers()]).toEqual(["disk=sda"]);
      expect(isReady.code).not.toBe(0);
      expect(await own.message({ kind: "Profile", name: "web" })).toContain('the variable "disc" is not defined');
      expect(await own.metric("davit_resources", { kind: "Group", ready: "false" })).toBe(20);
      const events = async () => (await cluster.kubectl(["-n", "fleet", "get", "events"])).stdout;
      await expect.poll(events, patience).toContain("UndefinedVariable");
      await own.put(profile("web", { generic: { inline: "disk={{disk}}" }, ignition: { inline: "{{disk}}" } }));
      await expect.poll(events, patience).toMatch(/RenderFailed .*profile\/web .*Read Ignition result/);
      await expect.poll(events, patience).toMatch(/RenderFailed .*group\/node-/);
      expect(await own.get(`/generic?mac=${fleet[0]}`)).toMatchObject({ status: 200, body: "disk=sda" });
    } finally {
      await own.stop();
    }
  });
});
