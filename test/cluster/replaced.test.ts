/**
 * The first law while objects are replaced: `kubectl replace --force` deletes an object and creates it anew, and a rename
 * is a delete and a create. Between the two a machine gets its own Group's boot or 503, never the installer.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { catchAll, createAll, pathOf, profile } from "./machines.ts";
import { Poll } from "./poll.ts";
import { Rack } from "./rack.ts";

const timeoutMs = 120_000;
const patience = { timeout: 60_000 };
const rounds = 5;

const selectors: Readonly<Record<string, { readonly selector: JsonObject; readonly query: string }>> = {
  uuid: {
    selector: { matchLabels: { uuid: "00000000-0000-4000-8000-000000000001" } },
    query: "uuid=00000000-0000-4000-8000-000000000001",
  },
  mac: { selector: { matchLabels: { mac: "52:54:00:00:00:01" } }, query: "mac=52-54-00-00-00-01" },
  serial: { selector: { matchLabels: { serial: "SN-1" } }, query: "serial=SN-1" },
  hostname: { selector: { matchLabels: { hostname: "n1" } }, query: "hostname=n1" },
  "a pattern": {
    selector: { matchExpressions: [{ key: "serial", operator: "Prefix", values: ["SN-"] }] },
    query: "serial=SN-2",
  },
  "a role": { selector: { matchLabels: { role: "web" } }, query: "role=web" },
};

describe.skipIf(missing("kube-apiserver", "kubectl"))("while an object is replaced", { timeout: timeoutMs }, () => {
  let cluster: ClusterAccess;
  let rack: Rack;
  let poll: Poll<string | number> | undefined;

  beforeAll(async () => {
    cluster = await sharedCluster("replaced");
    const installer = profile("install", "installer");
    await createAll(cluster, [profile("work", "work"), installWith(installer), catchAll("installer", "install")]);
    rack = await Rack.start({ kubeconfig: cluster.kubeconfig });
  }, timeoutMs);
  afterAll(async () => {
    await rack?.stop();
    await cluster?.stop();
  });
  beforeEach(() => {
    poll = undefined;
  });
  afterEach(async () => {
    await poll?.stop();
    await cluster.kubectl(["delete", "groups.davit.dev", "--all", "--wait=false"]);
    await createAll(cluster, [catchAll("installer", "install")]);
  });

  const bootOf = (query: string) => rack.bootOf(query);

  async function begin(group: JsonObject, query: string): Promise<Poll<string | number>> {
    await createAll(cluster, [group]);
    await expect.poll(() => bootOf(query), patience).toBe("work");
    const begun = Poll.of(() => rack.bootOf(query));
    poll = begun;
    return begun;
  }

  it.each(Object.keys(selectors))("a Group by %s keeps its machine from the installer", async (label) => {
    const { selector, query } = selectors[label] ?? { selector: {}, query: "" };
    const group = groupOf("node", selector);
    const polled = await begin(group, query);
    for (let round = 0; round < rounds; round++) {
      await cluster.kubectl(["replace", "--force", "-f", "-"], { input: JSON.stringify(group) });
      await expect.poll(() => bootOf(query), patience).toBe("work");
    }
    expect(polled.answers()).toEqual(new Set(["work", 503]));
  });

  it("a Group that gets another name keeps its machine from the installer", async () => {
    const { selector, query } = selectors.serial ?? { selector: {}, query: "" };
    const polled = await begin(groupOf("node-0", selector), query);
    for (let round = 0; round < rounds; round++) {
      await cluster.ask({ method: "DELETE", path: `${pathOf(cluster, "groups")}/node-${round}` });
      await expect.poll(() => bootOf(query), patience).toBe(503);
      await createAll(cluster, [groupOf(`node-${round + 1}`, selector)]);
      await expect.poll(() => bootOf(query), patience).toBe("work");
    }
    expect(polled.answers()).toEqual(new Set(["work", 503]));
  });

  it("a Profile has its machines wait, and never sends them to their next boot device", async () => {
    const { selector, query } = selectors.serial ?? { selector: {}, query: "" };
    const polled = await begin(groupOf("node", selector), query);
    for (let round = 0; round < rounds; round++) {
      const work = JSON.stringify(profile("work", "work"));
      await cluster.kubectl(["replace", "--force", "-f", "-"], { input: work });
      await expect.poll(() => bootOf(query), patience).toBe("work");
    }
    await cluster.ask({ method: "DELETE", path: `${pathOf(cluster, "profiles")}/work` });
    await expect.poll(() => bootOf(query), patience).toBe(503);
    await createAll(cluster, [profile("work", "work")]);
    await expect.poll(() => bootOf(query), patience).toBe("work");
    expect(polled.answers()).toEqual(new Set(["work", 503]));
  });
});

function installWith(object: JsonObject): JsonObject {
  return { ...object, spec: { ...(object.spec as JsonObject), effect: "Install" } };
}

function groupOf(name: string, selector: JsonObject): JsonObject {
  const { spec, ...rest } = catchAll(name, "work");
  return { ...rest, spec: { profileRef: (spec as JsonObject).profileRef ?? {}, selector } };
}
