/** `davit serve --kubernetes` beside a real API server: what its users type, and what they and their machines see. */

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { Beside } from "./beside.ts";

const quickstart = join(import.meta.dirname, "../../manifests/quickstart");
const firstMachine = "/ipxe?mac=52-54-00-a1-9c-ae";

describe.skipIf(missing("kube-apiserver", "kubectl"))("what kubectl applies", () => {
  let cluster: ClusterAccess;
  let beside: Beside;
  beforeAll(async () => {
    cluster = await sharedCluster("serve");
    beside = await Beside.make(cluster, "first");
    await beside.start(["--tombstone-ttl", "1s"]);
    await kubectl("apply", "-f", quickstart);
    await kubectl("wait", "--for=condition=Ready", "--timeout=20s", "davit", "--all");
  }, 180_000);
  afterAll(async () => {
    await beside?.stop();
    await cluster?.stop();
  });

  /** What it prints; ages and times differ from run to run. */
  async function kubectl(...args: readonly string[]): Promise<string> {
    const { stdout, stderr } = await cluster.kubectl(["-n", "first", ...args]);
    return (stderr + stdout).replaceAll(/\b\d+[ms](\d+s)?$/gm, "AGE").replaceAll(/ +$/gm, "");
  }

  const edit = (patch: object) =>
    kubectl("patch", "profiles.davit.dev", "quickstart", "--type=merge", "-p", JSON.stringify(patch));

  it("is what machines boot", async () => {
    expect(await beside.get(firstMachine)).toEqual({
      status: 200,
      body: [
        "#!ipxe",
        `kernel /assets/quickstart/vmlinuz console=tty0 console=ttyS0 davit.url=${beside.davit.bootUrl} ` +
          "davit.role=lookout initrd=initrd.gz",
        "initrd /assets/quickstart/initrd.gz",
        "boot\n",
      ].join("\n"),
    });
    expect((await beside.get("/ipxe")).body).toContain("davit.role=visitor");
  });

  it("shows in columns", async () => {
    await expect.poll(() => kubectl("get", "profiles.davit.dev")).toMatch(/^quickstart +True +Ready +2 /m);
    expect(await kubectl("get", "profiles.davit.dev")).toMatchInlineSnapshot(`
      "NAME         READY   REASON   EFFECT   GROUPS   AGE
      quickstart   True    Ready             2        AGE
      "
    `);
    expect(await kubectl("get", "profiles.davit.dev", "-o", "wide")).toMatchInlineSnapshot(`
      "NAME         READY   REASON   EFFECT   GROUPS   KERNEL                       CONFIGS                       AGE
      quickstart   True    Ready             2        /assets/quickstart/vmlinuz   ipxe,ignition,cloud,generic   AGE
      "
    `);
    expect(await kubectl("get", "dgrp")).toMatchInlineSnapshot(`
      "NAME            READY   PROFILE      SELECTOR                PRIORITY   HOLD   RENDERED   AGE
      everyone-else   True    quickstart   <all>                   0                 True       AGE
      first-machine   True    quickstart   mac=52:54:00:a1:9c:ae   0                 True       AGE
      "
    `);
    expect(await kubectl("get", "dgrp", "-o", "wide")).toMatchInlineSnapshot(`
      "NAME            READY   PROFILE      SELECTOR                PRIORITY   HOLD   RENDERED   REASON   AGE
      everyone-else   True    quickstart   <all>                   0                 True       Ready    AGE
      first-machine   True    quickstart   mac=52:54:00:a1:9c:ae   0                 True       Ready    AGE
      "
    `);
  });

  it("is served as soon as it is edited", async () => {
    await edit({ spec: { boot: { args: ["quiet"] } } });
    await expect.poll(async () => (await beside.get(firstMachine)).body).toContain("vmlinuz quiet initrd=initrd.gz\n");
    await kubectl("wait", "--for=condition=Ready", "--timeout=20s", "davit", "--all");
  });

  it("is described with what is wrong with it, and one event, while the version before is served", async () => {
    const served = await beside.get(`/generic${firstMachine.slice(5)}`);
    await edit({ spec: { generic: { inline: '{"role": "{{role}", "rack": {{rack.row}}' } } });
    expect(await kubectl("wait", "--for=condition=Ready=false", "--timeout=20s", "dprof/quickstart")).toBe(
      "profile.davit.dev/quickstart condition met\n",
    );
    const describe = () => kubectl("describe", "profiles.davit.dev", "quickstart");
    await expect.poll(describe).toContain("Warning  InvalidTemplate");
    const told = (await describe()).replaceAll(/(Last Transition Time: +)\S+/g, "$1TIME");
    expect(told.slice(told.indexOf("\nStatus:") + 1).replace(/\d+s +davit/, "AGE davit")).toMatchInlineSnapshot(`
      "Status:
        Conditions:
          Last Transition Time:  TIME
          Message:               spec.generic: line 1, column 17: Parse template: this is not allowed here
          Observed Generation:   3
          Reason:                InvalidTemplate
          Status:                False
          Type:                  Accepted
          Last Transition Time:  TIME
          Message:               Every reference is resolved
          Observed Generation:   3
          Reason:                Resolved
          Status:                True
          Type:                  ResolvedRefs
          Last Transition Time:  TIME
          Message:               Machines still get the last good version, until this one is repaired
          Observed Generation:   3
          Reason:                ServingLastGood
          Status:                False
          Type:                  Synced
          Last Transition Time:  TIME
          Message:               spec.generic: line 1, column 17: Parse template: this is not allowed here
          Observed Generation:   3
          Reason:                InvalidTemplate
          Status:                False
          Type:                  Ready
          Last Transition Time:  TIME
          Message:               spec.generic: line 1, column 17: Parse template: this is not allowed here
          Observed Generation:   3
          Reason:                InvalidTemplate
          Status:                True
          Type:                  Stalled
        Configs:                 ipxe,ignition,cloud,generic
        Group Count:             2
        Observed Generation:     3
      Events:
        Type     Reason           Age   From                  Message
        ----     ------           ----  ----                  -------
        Warning  InvalidTemplate  AGE davit.dev/controller  spec.generic: line 1, column 17: Parse template: this is not allowed here
      "
    `);
    expect(await beside.get(`/generic${firstMachine.slice(5)}`)).toEqual(served);
    await edit({ spec: { generic: { inline: "{}" } } });
    await kubectl("wait", "--for=condition=Ready", "--timeout=20s", "dprof/quickstart");
  });

  it("raised no event about what was applied a moment later", async () => {
    // The Group's file comes before its Profile's, and there was time enough for an event since.
    expect(await kubectl("get", "events")).not.toContain("ProfileNotFound");
  });

  it("is deleted: machines that were named wait for a moment, then nothing is left", async () => {
    await kubectl("delete", "-f", quickstart);
    await expect.poll(() => beside.get("/ipxe")).toEqual({ status: 404, body: "404 no matching group\n" });
    const named: number[] = [];
    await expect
      .poll(async () => {
        const { status } = await beside.get(firstMachine);
        named.push(status);
        return status;
      })
      .toBe(404);
    expect(new Set(named)).toEqual(new Set([503, 404]));
  });
});
