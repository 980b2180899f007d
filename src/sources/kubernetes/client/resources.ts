/** The resources that davit reads, and their paths on the API server. */

import { toRfc3339 } from "../../../lib/clock.ts";
import { apiGroup, apiVersion, type ObjectKind } from "../../../model/objects/source.ts";

export interface Resource {
  readonly kind: ObjectKind;
  readonly apiVersion: string;
  /** The plural name: the last part of the path, and the value of the metrics' label `resource`. */
  readonly plural: "profiles" | "groups" | "machines" | "configmaps" | "secrets";
  readonly root: string;
}

const davit = { apiVersion, root: `/apis/${apiVersion}` } as const;
const core = { apiVersion: "v1", root: "/api/v1" } as const;

export const resources = {
  Profile: { ...davit, kind: "Profile", plural: "profiles" },
  Group: { ...davit, kind: "Group", plural: "groups" },
  Machine: { ...davit, kind: "Machine", plural: "machines" },
  ConfigMap: { ...core, kind: "ConfigMap", plural: "configmaps" },
  Secret: { ...core, kind: "Secret", plural: "secrets" },
} as const satisfies Record<ObjectKind, Resource>;

/** Returns the path at which a resource is listed and watched; without a namespace, in all of them. */
export function collectionPath({ root, plural }: Resource, namespace?: string): string {
  return namespace === undefined ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
}

/** Returns the path of one object. Names are DNS names, so they need no escapes. */
export function objectPath(resource: Resource, namespace: string, name: string): string {
  return `${collectionPath(resource, namespace)}/${name}`;
}

const eventsVersion = "events.k8s.io/v1";

/** Returns the path at which davit writes events of objects in a namespace. */
export function eventsPath(namespace: string): string {
  return `/apis/${eventsVersion}/namespaces/${namespace}/events`;
}

/** Makes an event of davit at this time. */
export function eventObject(nowMs: number, fields: Readonly<Record<string, unknown>>): object {
  // MicroTime has microseconds.
  const eventTime = toRfc3339(nowMs).replace("Z", "000Z");
  const reportingController = `${apiGroup}/controller`;
  return { apiVersion: eventsVersion, kind: "Event", eventTime, reportingController, ...fields };
}
