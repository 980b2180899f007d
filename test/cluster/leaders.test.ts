/**
 * Three davits follow a cluster in turn, and one of them knows an older state: it stood still, or its way to the API
 * server shows the past. Machines ask all three, and no answer goes back to an older state.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.ts";
import { nextTurn } from "../../src/lib/slices.ts";
import { isJsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { createAll, machineGroup, macOf, pathOf, profile, setKernel } from "./machines.ts";
import { type ClusterMember, ClusterMembers } from "./members.ts";

const soon = { timeout: 60_000, interval: 50 };
const timeoutMs = 120_000;
const machine = 1;

/** What a member answered: `wipe-N` or `disk-N` of the state N, or a status. */
type Answer = string | number;

describe.skipIf(missing("kube-apiserver", "etcd"))("of three davits on a cluster", { timeout: timeoutMs }, () => {
  let cluster: ClusterAccess;
  let members: ClusterMembers;
  let state = 0;
  /** The answers of each member that differ from the one before. */
  const answers = new Map<string, Answer[]>();
  const stopping = new AbortController();
  let polls: readonly Promise<void>[] = [];

  beforeAll(async () => {
    cluster = await sharedCluster("leaders");
    const wipe = profile("wipe", "wipe-0");
    const { spec } = wipe;
    await createAll(cluster, [
      profile("disk", "disk-0"),
      { ...wipe, spec: { ...(isJsonObject(spec) ? spec : {}), effect: "Install" } },
    ]);
    await createAll(cluster, [machineGroup(machine, "wipe")]);
    const limits = ["--install-max-source-age", "4s", "--limit", "watch-silence=3s", "--limit", "source-grace=1s"];
    members = await ClusterMembers.start({ cluster, args: [...limits, "--tombstone-ttl", "5s"] });
    polls = members.all.map((member) => poll(member));
  }, 180_000);

  afterAll(async () => {
    stopping.abort();
    await Promise.all(polls);
    await members?.stop();
    await cluster?.stop();
  });

  async function bootOf({ bootUrl }: ClusterMember): Promise<Answer> {
    try {
      const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(20_000)]);
      const response = await fetch(`${bootUrl}/ipxe?mac=${macOf(machine)}`, { signal });
      const text = await response.text();
      return /^kernel \S*\/assets\/(\S+)/m.exec(text)?.[1] ?? response.status;
    } catch {
      // It is down, or stands still.
      return 0;
    }
  }

  async function poll(member: ClusterMember): Promise<void> {
    const own: Answer[] = [];
    answers.set(member.name, own);
    while (!stopping.signal.aborted) {
      const answer = await bootOf(member);
      if (own.at(-1) !== answer) own.push(answer);
      await nextTurn();
    }
  }

  /** Changes the Profile, then the Group, so that the machine gets this Profile in its next state. */
  async function change(name: "disk" | "wipe"): Promise<string> {
    const kernel = `${name}-${++state}`;
    await setKernel(cluster, name, kernel);
    const answer = await cluster.ask({
      method: "PATCH",
      path: `${pathOf(cluster, "groups")}/node-${machine}`,
      body: { spec: { profileRef: { name } } },
      contentType: "application/merge-patch+json",
    });
    expect(answer.status).toBe(200);
    return kernel;
  }

  /** The version of the cluster at this moment. */
  async function version(): Promise<string> {
    const { metadata } = (await cluster.ask({ path: `${pathOf(cluster, "groups")}?limit=1` })).body;
    return isJsonObject(metadata) ? String(metadata.resourceVersion) : "";
  }

  async function allGive(kernel: string, some: readonly ClusterMember[] = members.all): Promise<void> {
    for (const member of some) await expect.poll(() => bootOf(member), soon).toBe(kernel);
  }

  async function leader(other?: ClusterMember): Promise<ClusterMember> {
    await expect.poll(() => members.leader !== undefined && members.leader !== other, soon).toBe(true);
    if (members.leader === undefined) throw new Error("no member leads");
    return members.leader;
  }

  const others = (member: ClusterMember) => members.all.filter((each) => each !== member);

  /** Every answer that follows one of a later state. Empty if no member went back. */
  function rollbacks(): readonly string[] {
    return [...answers].flatMap(([name, own]) => {
      const given = own.filter((answer) => typeof answer === "string");
      const goesBack = (at: number) => stateOf(given[at] ?? "") < stateOf(given[at - 1] ?? "");
      return given.flatMap((answer, at) => (goesBack(at) ? [`${name}: ${given[at - 1]}, then ${answer}`] : []));
    });
  }

  it("a leader that stood still brings nothing back that it had planned", async () => {
    await allGive(await change("disk"));
    const old = await leader();
    // Its batch leaves it, and reaches etcd only when another member has led for a while.
    for (const way of old.etcd) way.pause();
    await change("wipe");
    await systemClock.sleep(500);
    old.pause();
    await leader(old);
    const installs = `wipe-${state}`;
    await allGive(installs, others(old));
    const kernel = await change("disk");
    await allGive(kernel, others(old));
    for (const way of old.etcd) way.resume();
    old.resume();
    await allGive(kernel);
    await allGive(await change("wipe"));
    expect(rollbacks()).toEqual([]);
  });

  it("a new leader that is shown the past brings nothing back", async () => {
    await allGive(await change("wipe"));
    const past = await version();
    const old = await leader();
    const kernel = await change("disk");
    await allGive(kernel);
    for (const { api } of others(old)) api.showPast(past);
    const lists = ({ api }: ClusterMember) => api.asked.filter(({ path }) => path.includes("/groups?limit=500")).length;
    const before = new Map(members.all.map((member) => [member, lists(member)]));
    await old.kill();
    const stale = await leader(old);
    // It has asked for everything more than once, and could have believed the answer.
    await expect.poll(() => lists(stale) - (before.get(stale) ?? 0), soon).toBeGreaterThan(2);
    expect(await Promise.all(others(old).map(bootOf))).toEqual([kernel, kernel]);
    for (const { api } of others(old)) api.behave();
    await old.start();
    await allGive(await change("wipe"));
    expect(rollbacks()).toEqual([]);
  });

  it("a leader that is shown the past is followed by one that is not, and brings nothing back", async () => {
    await allGive(await change("wipe"));
    const old = await leader();
    old.api.showPast(await version());
    const kernel = await change("disk");
    old.pause();
    await leader(old);
    await allGive(kernel, others(old));
    old.resume();
    await allGive(kernel);
    old.api.behave();
    await allGive(await change("wipe"));
    expect(rollbacks()).toEqual([]);
  });
});

function stateOf(kernel: Answer): number {
  return Number(String(kernel).split("-")[1] ?? 0);
}
