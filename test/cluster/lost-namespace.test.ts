/**
 * A namespace whose RoleBinding is withdrawn, beside another one: holds and narrowing go through everywhere at once, and
 * after a while only the machines of the namespace that is not heard wait.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { Beside, type ClusterObject, group, profile } from "./beside.ts";

// A namespace counts as lost after a minute.
const patience = { timeout: 150_000, interval: 200 };
const scope = ["--namespace", "north", "--namespace", "south"];
const args = ["--limit", "watch-silence=3s", "--tombstone-ttl", "2s", "--admin-namespace", "north"];
const mac = (last: number) => `52:54:00:00:00:0${last}`;
const installer = { profileRef: { name: "installer" } };
const catchAll = { kind: "Group", name: "all", spec: { ...installer, matchAll: true } } as const;
const [, role = ""] =
  /^## RBAC$.*?^```yaml\n(.*?)^```$/ms.exec(
    readFileSync(join(import.meta.dirname, "../../docs/internals/controller.md"), "utf8"),
  ) ?? [];

describe.skipIf(missing("kube-apiserver", "kubectl"))("a namespace that davit may no longer read", () => {
  let cluster: ClusterAccess;
  let north: Beside;
  let south: Beside;
  let kubeconfig: string;
  beforeAll(async () => {
    cluster = await sharedCluster("lost-namespace");
    [north, south] = [await Beside.make(cluster, "north"), await Beside.make(cluster, "south")];
    kubeconfig = cluster.kubeconfigFor("davit", await cluster.serviceAccountToken("north", "davit"));
    await allow("north");
    await allow("south");
    for (const each of [north, south]) await each.put(profile("installer", { effect: "Install" }), profile("disk"));
    await north.put(catchAll, one(1), one(2), one(3));
    await south.put(one(4), one(5));
    await north.start(args, { scope, kubeconfig });
  }, 180_000);
  afterAll(async () => {
    await north?.stop();
    await south?.stop();
    await cluster?.stop();
  });

  const one = (machine: number, spec: ClusterObject["spec"] = {}) =>
    group(`node-${machine}`, mac(machine), { ...installer, ...spec });
  const allow = (namespace: string) =>
    cluster.apply(
      role.replaceAll("namespace: davit", `namespace: ${namespace}`).replace(/(subjects:.*namespace: ).*/s, "$1north"),
    );
  const boots = async (machine: number) => {
    const { status, body } = await north.get(`/ipxe?mac=${mac(machine)}`);
    return status === 200 ? (/assets\/(\S+)/.exec(body)?.[1] ?? body) : status;
  };
  const booted = (machine: number) => expect.poll(() => boots(machine), patience);
  const withdraw = async () => {
    const path = "/apis/rbac.authorization.k8s.io/v1/namespaces/south/rolebindings/davit";
    expect((await cluster.ask({ method: "DELETE", path })).status).toBe(200);
    await expect.poll(() => north.metric("davit_watch_connected", { resource: "groups" }), patience).toBe(0);
  };

  it("holds up no hold, no narrowing and no deletion, and after a minute no change of another one", async () => {
    await booted(9).toBe("installer");
    await withdraw();
    await north.put(one(1, { hold: true }), one(2, { selector: { matchLabels: { mac: mac(2), os: "none" } } }));
    await north.delete({ kind: "Group", name: "node-3" });
    await north.put(one(6, { profileRef: { name: "disk" } }));
    for (const machine of [1, 2, 3]) await expect.poll(() => boots(machine)).toBe(503);
    expect(await boots(4)).toBe("installer");
    // What widens waits until it is known what the other one has.
    await booted(6).toBe("disk");
    expect([await boots(4), await boots(5), await boots(9)]).toEqual([503, 503, 503]);
    expect(await north.ops("/readyz?verbose")).toContain('namespace "south": not heard of: its machines wait');
    await north.put(one(7));
    await expect.poll(() => boots(7)).toBe("installer");
    await south.delete({ kind: "Group", name: "node-5" });
    await allow("south");
    await booted(4).toBe("installer");
    await booted(5).toBe("installer");
    await booted(9).toBe("installer");
    expect(await north.ops("/readyz?verbose")).not.toContain("not heard of");
  }, 300_000);

  it("at a start has installs wait until it is read, of other namespaces, too", async () => {
    await north.end();
    const path = "/apis/rbac.authorization.k8s.io/v1/namespaces/south/rolebindings/davit";
    expect((await cluster.ask({ method: "DELETE", path })).status).toBe(200);
    await north.put(one(1, { hold: false }), one(6, { hold: true }));
    await north.start([...args, "--limit", "source-grace=1s"], { scope, kubeconfig });
    // Nothing was ever whole in this run, so nobody knows what the other namespace says.
    for (const machine of [1, 4, 9]) expect(await boots(machine)).toBe(503);
    // Its Profile installs nothing: what the store has is served until its hold is read.
    await expect.poll(() => boots(6)).toBe(503);
    await allow("south");
    await booted(1).toBe("installer");
    await booted(4).toBe("installer");
    await booted(9).toBe("installer");
    expect(await boots(6)).toBe(503);
  }, 300_000);
});
