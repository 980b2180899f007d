/** A tenant with rights in one namespace edits Groups for a machine that the admin's Group has: it never waits. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Cluster, startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { Beside, type ClusterObject, group, profile } from "./beside.ts";
import { Poll } from "./poll.ts";

const mac = "52:54:00:a1:9c:ae";
const timeoutMs = 180_000;
const patience = { timeout: 60_000 };

describe.skipIf(missing("kube-apiserver", "kubectl"))("a tenant who edits Groups", { timeout: timeoutMs }, () => {
  let cluster: Cluster;
  let tenant: Beside;
  let poll: Poll<number> | undefined;

  beforeEach(async () => {
    cluster = await startCluster();
    tenant = await Beside.make(cluster, "team-b");
    await cluster.ask({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: "infra" } } });
  }, timeoutMs);
  afterEach(async () => {
    await poll?.stop();
    await tenant.stop();
    await cluster.stop();
  }, timeoutMs);

  /** The tenant's Group, for the same machine by another selector each time. */
  const attack = (at: number): ClusterObject =>
    group("attack", "", { selector: { matchLabels: at % 2 === 0 ? { mac } : { mac, os: "1" } } });

  it("has no machine wait that the admin's Group wins", async () => {
    const infra = { namespace: "infra" };
    const selector = { matchLabels: { role: "db" } };
    await tenant.put(
      profile("web"),
      { ...profile("web"), ...infra },
      { ...group("database", "", { selector, priority: 1000 }), ...infra },
      attack(0),
    );
    await tenant.start([], { scope: ["--all-namespaces", "--admin-namespace", "infra"] });
    const answer = async () => (await tenant.get(`/ipxe?mac=${mac}&role=db&os=1`)).status;
    const tenants = async () => (await tenant.get(`/ipxe?mac=${mac}`)).status;
    await expect.poll(answer, patience).toBe(200);
    const polling = Poll.of(answer);
    poll = polling;
    for (let at = 1; at <= 20; at++) await tenant.put(attack(at));
    await expect.poll(tenants, patience).toBe(200);
    expect(polling.answers()).toEqual(new Set([200]));
  });
});
