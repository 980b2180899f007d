/** Objects for machines by number, in the namespace of a cluster, and how to write many of them. */

import { isJsonObject, type JsonObject } from "../../src/model/json.ts";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";

const apiVersion = "davit.dev/v1alpha1";

/** The path of a collection; an object's name follows. */
export function pathOf({ namespace }: ClusterAccess, plural: "profiles" | "groups" | "machines"): string {
  return `/apis/${apiVersion}/namespaces/${namespace}/${plural}`;
}

export function macOf(machine: number): string {
  const digits = machine.toString(16).padStart(8, "0");
  return `52:54:${digits.replace(/..(?!$)/g, "$&:")}`;
}

/** What its machines boot is told by the kernel's name. */
export function profile(name: string, kernel: string): JsonObject {
  return { apiVersion, kind: "Profile", metadata: { name }, spec: { boot: { kernel: `/assets/${kernel}` } } };
}

/** Without it `kubectl apply --prune` takes an object for somebody else's. */
const applied = "kubectl.kubernetes.io/last-applied-configuration";

/** The Group `node-N` of one machine, labelled `role=node`. */
export function machineGroup(machine: number, profileName = "work"): JsonObject {
  return {
    apiVersion,
    kind: "Group",
    metadata: { name: `node-${machine}`, labels: { role: "node" }, annotations: { [applied]: "{}" } },
    spec: { profileRef: { name: profileName }, selector: { matchLabels: { mac: macOf(machine) } } },
  };
}

/** A Group of everybody. */
export function catchAll(name: string, profileName: string): JsonObject {
  return {
    apiVersion,
    kind: "Group",
    metadata: { name },
    spec: { profileRef: { name: profileName }, matchAll: true },
  };
}

// An API server on two cores has no more to do at a time.
const writers = 16;

/** @throws {Error} for the first object that is not created. */
export async function createAll(cluster: ClusterAccess, objects: Iterable<JsonObject>): Promise<void> {
  const waiting = objects[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: writers }, async () => {
      for (let next = waiting.next(); next.done !== true; next = waiting.next()) await create(cluster, next.value);
    }),
  );
}

async function create(cluster: ClusterAccess, body: JsonObject): Promise<void> {
  const path = pathOf(cluster, body.kind === "Profile" ? "profiles" : "groups");
  const answer = await cluster.ask({ method: "POST", path, body });
  if (answer.status !== 201) throw new Error(`Creating ${JSON.stringify(body.metadata)}: ${JSON.stringify(answer)}`);
}

/** Has a Profile boot another kernel; resolves when the API server has answered. */
export async function setKernel(cluster: ClusterAccess, name: string, kernel: string): Promise<void> {
  const body = { spec: { boot: { kernel: `/assets/${kernel}` } } };
  const path = `${pathOf(cluster, "profiles")}/${name}`;
  const answer = await cluster.ask({ method: "PATCH", path, body, contentType: "application/merge-patch+json" });
  if (answer.status !== 200) throw new Error(`Changing profile ${name}: ${JSON.stringify(answer)}`);
}

/** How many objects of a collection are ready, as their status says. */
export async function readyCount(cluster: ClusterAccess, path: string): Promise<number> {
  const { body } = await cluster.ask({ path });
  const items: readonly unknown[] = Array.isArray(body.items) ? body.items : [];
  return items.filter(isReady).length;
}

function isReady(object: unknown): boolean {
  const status = isJsonObject(object) && isJsonObject(object.status) ? object.status : {};
  const conditions: readonly unknown[] = Array.isArray(status.conditions) ? status.conditions : [];
  return conditions.some((each) => isJsonObject(each) && each.type === "Ready" && each.status === "True");
}
