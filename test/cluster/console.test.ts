/** The console in a cluster: the API server decides what a person may see and change, and its log names the person. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { createAll, macOf, profile } from "./machines.ts";
import { Rack } from "./rack.ts";

const timeoutMs = 240_000;
const patience = { timeout: 60_000 };

describe.skipIf(missing("kube-apiserver", "kubectl"))("the console in a cluster", { timeout: timeoutMs }, () => {
  let cluster: ClusterAccess;
  let rack: Rack;
  const tokens = new Map<string, string>();

  beforeAll(async () => {
    cluster = await sharedCluster("console");
    await createAll(cluster, [profile("work", "work"), approvedGroup()]);
    await apply(machineOf("node-1", 1));
    for (const [name, verbs] of [
      ["approver", ["get", "list", "patch"]],
      ["viewer", ["get", "list"]],
      ["stranger", []],
    ] as const) {
      await grant(name, verbs);
      tokens.set(name, (await cluster.kubectl(["create", "token", name])).stdout.trim());
    }
    rack = await Rack.start({ kubeconfig: cluster.kubeconfig });
  }, timeoutMs);
  afterAll(async () => {
    await rack?.stop();
    await cluster?.stop();
  });

  async function apply(object: JsonObject): Promise<void> {
    await cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(object) });
  }

  async function grant(name: string, verbs: readonly string[]): Promise<void> {
    await cluster.kubectl(["create", "serviceaccount", name]);
    if (verbs.length === 0) return;
    const resources = ["machines.davit.dev", "groups.davit.dev", "profiles.davit.dev"];
    const role = [`--verb=${verbs.join(",")}`, `--resource=${resources.join(",")}`];
    await cluster.kubectl(["create", "clusterrole", name, ...role]);
    await cluster.kubectl([
      "create",
      "clusterrolebinding",
      name,
      `--clusterrole=${name}`,
      `--serviceaccount=console:${name}`,
    ]);
  }

  const bearer = (name: string) => ({ authorization: `Bearer ${tokens.get(name) ?? name}` });
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(`${rack.davit.opsUrl}${path}`, { redirect: "manual", ...init });
    return { status: answer.status, body: await answer.text() };
  };
  const act = async (name: string, fields: Readonly<Record<string, string>>) => {
    const { origin } = new URL(rack.davit.opsUrl);
    const token = new URLSearchParams({ token: tokens.get(name) ?? name });
    const signIn = { method: "POST", headers: { origin }, body: token, redirect: "manual" } as const;
    const signedIn = await fetch(`${rack.davit.opsUrl}/console/sign-in`, signIn);
    const headers = { cookie: signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? "", origin };
    const { body } = await ask("/console/", { headers });
    const form = /name="form" value="([^"]+)"/.exec(body)?.[1] ?? "";
    const page = (await ask("/console/machines/console/node-1", { headers })).body;
    const shown = /name="machine" value="([^"]+)"/.exec(page)?.[1] ?? "console/node-1 none 1";
    const sent = new URLSearchParams({ form, back: "/console/", machine: shown, ...fields });
    return await ask("/console/actions", { method: "POST", headers, body: sent });
  };
  const machine = async () => {
    const path = "/apis/davit.dev/v1alpha1/namespaces/console/machines/node-1";
    return (await cluster.ask({ path })).body;
  };

  it("admits accounts that may list davit's objects, and says to others what they lack", async () => {
    expect((await ask("/console/", { headers: bearer("viewer") })).body).toContain(
      "system:serviceaccount:console:viewer",
    );
    const stranger = await ask("/console/", { headers: bearer("stranger") });
    expect(stranger.status).toBe(401);
    expect(stranger.body).toContain("may not list profiles.davit.dev");
    expect((await ask("/console/", { headers: bearer("no.such.token") })).status).toBe(401);
  });

  it("shows buttons to accounts that may change Machines, and to no other", async () => {
    const buttons = async (name: string) => {
      const { body } = await ask("/console/machines/console/node-1", { headers: bearer(name) });
      return [...body.matchAll(/<button name="action" value="(\w+)"/g)].map(([, action]) => action);
    };
    expect(await buttons("approver")).toEqual(["approve", "hold"]);
    expect(await buttons("viewer")).toEqual([]);
  });

  it("lets the API server refuse a change that the account may not make", async () => {
    const sent = await act("viewer", { action: "approve" });
    expect(sent.status).toBe(403);
    expect(sent.body).toContain("is not changed: your account may not patch machines.davit.dev");
    expect(await machine()).toMatchObject({ spec: { identity: { macs: [macOf(1)] } } });
    expect(await rack.boots(1)).toBe(503);
  });

  it("approves as the person: the machine boots, and the object names who has changed it", async () => {
    await expect
      .poll(async () => (await ask("/console/waiting", { headers: bearer("approver") })).body, patience)
      .toContain(macOf(1));
    const sent = await act("approver", { action: "approve" });
    expect(sent.body).toContain("is approved");
    await expect.poll(() => rack.boots(1), patience).toBe("work");
    const { metadata, spec } = await machine();
    expect(spec).toMatchObject({ approved: true });
    const managers = isJsonObject(metadata) && Array.isArray(metadata.managedFields) ? metadata.managedFields : [];
    expect(managers.filter(isJsonObject).map(({ manager }) => manager)).toContain("davit-console");
    expect((await act("approver", { action: "hold" })).body).toContain("is held");
    await expect.poll(() => rack.boots(1), patience).toBe(503);
    expect((await act("approver", { action: "release" })).body).toContain("is released");
    await expect.poll(() => rack.boots(1), patience).toBe("work");
  });

  it("approves nothing that the page did not show: neither another machine of the same name, nor a later version", async () => {
    const name = "console/swapped";
    const object = (mac: string) => ({
      apiVersion: "davit.dev/v1alpha1",
      kind: "Machine",
      metadata: { name: "swapped" },
      spec: { identity: { macs: [mac] } },
    });
    const shown = async (mac: string) => {
      const page = async () => (await ask(`/console/machines/${name}`, { headers: bearer("approver") })).body;
      await expect.poll(page, patience).toContain(mac);
      return /name="machine" value="([^"]+)"/.exec(await page())?.[1] ?? "";
    };
    const isApproved = async () => {
      const { body } = await cluster.ask({ path: "/apis/davit.dev/v1alpha1/namespaces/console/machines/swapped" });
      return isJsonObject(body.spec) && body.spec.approved === true;
    };
    await apply(object(macOf(7)));
    const first = await shown(macOf(7));
    // Edited: the object is the same one, and names another machine.
    await apply(object(macOf(8)));
    const edited = await act("approver", { action: "approve", machine: first });
    expect(edited.body).toContain("is not changed: it has changed since the page was loaded");
    expect(await isApproved()).toBe(false);
    const second = await shown(macOf(8));
    // Made again: another object of the same name.
    await cluster.kubectl(["delete", "machines.davit.dev", "swapped"]);
    await apply(object(macOf(9)));
    for (const action of ["approve", "release"]) {
      expect((await act("approver", { action, machine: second })).body).toContain("has changed since");
    }
    expect((await act("approver", { action: "approve", machine: name })).body).toContain("is not changed: load");
    expect(await isApproved()).toBe(false);
    expect((await act("approver", { action: "hold", machine: second })).body).toContain("is held");
    await apply(object(macOf(9)));
    const third = await shown(macOf(9));
    expect((await act("approver", { action: "approve", machine: third })).body).toContain("is approved");
    expect(await isApproved()).toBe(true);
  });

  it("refuses a machine's name that leads elsewhere", async () => {
    for (const name of ["console/none", "console/../../secrets/x", "kube-system", "a/b/c"]) {
      expect((await act("approver", { action: "approve", machine: name })).body).toContain("is not changed: ");
    }
  });
});

function approvedGroup(): JsonObject {
  const spec = { profileRef: { name: "work" }, matchAll: true, approval: "Required" };
  return { apiVersion: "davit.dev/v1alpha1", kind: "Group", metadata: { name: "approved" }, spec };
}

function machineOf(name: string, number: number): JsonObject {
  const spec = { identity: { macs: [macOf(number)] } };
  return { apiVersion: "davit.dev/v1alpha1", kind: "Machine", metadata: { name }, spec };
}
