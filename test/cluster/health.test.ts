/**
 * What others make of an object's status, in each state that it can be in: kstatus (Flux, `helm --wait`), by its own
 * library, and Argo CD, by the script of manifests/argocd in a real Lua.
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LuaFactory } from "wasmoon";
import { parse } from "yaml";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/model/json.ts";
import { chartToolPath } from "../../tools/build/chart-tools.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { missing } from "../helpers/requirements.ts";
import { sharedCluster } from "../helpers/shared-cluster.ts";
import { Beside, type ClusterObject, group, profile } from "./beside.ts";

const patch: unknown = parse(
  readFileSync(join(import.meta.dirname, "../../manifests/argocd/argocd-cm-patch.yaml"), "utf8"),
);
const macOf = (at: number) => `52:54:00:00:05:0${at}`;
const template = (name: string) => ({ templateFrom: { configMapKeyRef: { name, key: "k" } } });
const healthy = ["Current", "Healthy"];
const failed = ["Failed", "Degraded"];
const waiting = ["InProgress", "Progressing"];

const states: readonly { what: string; object: ClusterObject; reason: string; health: readonly string[] }[] = [
  { what: "a Profile that is ready", object: profile("web"), reason: "Ready", health: healthy },
  { what: "a Group that is ready", object: group("ready", macOf(0)), reason: "Ready", health: healthy },
  {
    what: "a Group that is held",
    object: group("held", macOf(1), { hold: true }),
    reason: "Held",
    health: ["InProgress", "Suspended"],
  },
  {
    what: "a Group that another one covers",
    object: group("ready-too", macOf(0)),
    reason: "SelectorOverlap",
    health: failed,
  },
  {
    what: "a Group that waits for its Profile",
    object: group("early", macOf(2), { profileRef: { name: "later" } }),
    reason: "ProfileNotFound",
    health: waiting,
  },
  {
    what: "a Profile that waits for its ConfigMap",
    object: profile("waiting", { ignition: template("later") }),
    reason: "TemplateNotFound",
    health: waiting,
  },
  {
    what: "a Profile whose ConfigMap lacks the key",
    object: profile("keyless", { ignition: template("there") }),
    reason: "KeyNotFound",
    health: failed,
  },
  {
    what: "a Profile whose template cannot be parsed",
    object: profile("broken", { generic: { inline: "{{" } }),
    reason: "InvalidTemplate",
    health: failed,
  },
  {
    what: "a Machine that waits for its approval",
    object: machine("waiting", macOf(5)),
    reason: "Ready",
    health: healthy,
  },
  {
    what: "a Machine that is held",
    object: machine("held", macOf(6), { hold: true }),
    reason: "Held",
    health: ["InProgress", "Suspended"],
  },
  {
    what: "a Machine whose MAC address another one lists",
    object: machine("twin", macOf(7)),
    reason: "Conflicted",
    health: failed,
  },
];

function machine(name: string, mac: string, spec: JsonObject = {}): ClusterObject {
  return { kind: "Machine", name, spec: { identity: { macs: [mac] }, ...spec } };
}

describe.skipIf(missing("kube-apiserver", "kubectl", "kstatus"))("the health of", { timeout: 120_000 }, () => {
  let cluster: ClusterAccess;
  let beside: Beside;
  beforeAll(async () => {
    cluster = await sharedCluster("unseen");
    beside = await Beside.make(cluster, "health");
    await beside.put({ kind: "ConfigMap", name: "there", data: { other: "x" } });
    await beside.put(...states.map(({ object }) => object), machine("other-twin", macOf(7)));
    await beside.start();
  }, 180_000);
  afterAll(async () => {
    await beside?.stop();
    await cluster?.stop();
  });

  const healthOf = async (name: Pick<ClusterObject, "kind" | "name" | "namespace">) => {
    const object = await beside.object(name);
    return [kstatusOf(object), (await argoHealthOf(object)).status];
  };

  it.each(states)("$what is $health", async ({ object, reason, health }) => {
    await expect.poll(async () => (await beside.conditions(object)).Ready).toMatch(new RegExp(` ${reason}$`));
    expect(await healthOf(object)).toEqual(health);
    const isStalled = health === failed;
    expect((await beside.conditions(object)).Stalled).toBe(isStalled ? `True ${reason}` : undefined);
  });

  it("an object that davit has not seen is in progress", async () => {
    await beside.put({ ...group("new", macOf(3)), namespace: cluster.namespace });
    expect(await healthOf({ kind: "Group", name: "new", namespace: cluster.namespace })).toEqual(waiting);
  });

  it("a Group that is refused is failed, and that of the version after is not", async () => {
    const text = (mac: string) =>
      "apiVersion: davit.dev/v1alpha1\nkind: Group\nmetadata: {name: refused, namespace: health}\n" +
      `spec: {profileRef: {name: web}, selector: {matchLabels: {mac: ${mac}, rack: a}}}\n`;
    const name = { kind: "Group", name: "refused" } as const;
    await cluster.apply(text(""));
    await expect.poll(() => beside.conditions(name)).toMatchObject({ Stalled: "True Refused" });
    expect(await healthOf(name)).toEqual(failed);
    expect((await argoHealthOf(await beside.object(name))).message).toMatch(/^Refused: spec\.selector\.matchLabels: /);
    await cluster.apply(text(`"${macOf(4)}"`));
    await expect.poll(() => beside.conditions(name)).toMatchObject({ Ready: "True Ready" });
    expect(await healthOf(name)).toEqual(healthy);
    expect((await beside.conditions(name)).Stalled).toBeUndefined();
  });

  it("a Group that is released is ready, and one whose version was not looked at yet is in progress", async () => {
    await beside.put(group("held", macOf(1)));
    await expect.poll(() => healthOf({ kind: "Group", name: "held" })).toEqual(healthy);
    const { metadata, ...others } = await beside.object({ kind: "Group", name: "held" });
    const newer = { ...others, metadata: { ...(isJsonObject(metadata) && metadata), generation: 9 } };
    expect([kstatusOf(newer), (await argoHealthOf(newer)).status]).toEqual(waiting);
  });
});

function kstatusOf(object: JsonObject): string {
  const line = execFileSync(chartToolPath("kstatus"), { input: JSON.stringify(object), encoding: "utf8" });
  return JSON.parse(line).status;
}

/** As Argo CD asks: the script sees the object as `obj`, and returns its health. */
async function argoHealthOf(object: JsonObject): Promise<{ readonly status: string; readonly message: string }> {
  const data = isJsonObject(patch) && isJsonObject(patch.data) ? patch.data : {};
  const lua = await new LuaFactory().createEngine();
  try {
    await lua.doString(`obj = ${luaOf(object)}`);
    return await lua.doString(String(data[`resource.customizations.health.davit.dev_${object.kind}`]));
  } finally {
    lua.global.close();
  }
}

/** A value as Lua writes it. */
function luaOf(value: JsonValue): string {
  if (value === null) return "nil";
  if (Array.isArray(value)) return `{${value.map(luaOf).join(", ")}}`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `[${JSON.stringify(name)}] = ${luaOf(each)}`)
    .join(", ")}}`;
}
