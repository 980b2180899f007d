/** Patches Machines and Groups in the cluster, by a person's kubeconfig. */

import { systemClock } from "../../lib/clock.ts";
import { silentLog } from "../../lib/log.ts";
import { random } from "../../lib/ports.ts";
import { StartError } from "../../lib/start-error.ts";
import { isJsonObject, type JsonObject } from "../../model/json.ts";
import type { Environment } from "../../options/parsing.ts";
import type { Paths } from "../../options/rules.ts";
import type { ApiClient } from "../../sources/kubernetes/client/client.ts";
import { readVersion } from "../core/version.ts";
import type { NamedObject } from "./options.ts";

export interface ClusterOptions {
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly environment: Environment;
}

export interface ObjectPlace extends Omit<NamedObject, "namespace"> {
  readonly namespace: string;
}

/** The objects of a cluster. */
interface ClusterObjects {
  /** The namespace of the context or of the pod. */
  readonly namespace: string;
  /** @throws {StartError} if the object does not exist or may not be read. */
  read(place: ObjectPlace): Promise<JsonObject>;
  /** @throws {StartError} if the object does not exist or may not be changed. */
  patch(place: ObjectPlace, patch: object): Promise<void>;
}

/** Returns the cluster that an option, `KUBECONFIG`, a pod's account or `~/.kube/config` names; undefined for none. */
export function clusterOf(
  { kubeconfig, context }: Pick<ClusterOptions, "kubeconfig" | "context">,
  environment: Environment,
  { isFile }: Paths,
): ClusterOptions | undefined {
  const { KUBECONFIG: listed, KUBERNETES_SERVICE_HOST: inPod, HOME: home } = environment;
  const isNamed = (kubeconfig ?? context ?? (listed || inPod || undefined)) !== undefined;
  const hasFile = home !== undefined && home !== "" && isFile(`${home}/.kube/config`);
  return isNamed || hasFile ? { kubeconfig, context, environment } : undefined;
}

/** Runs `work` with the cluster's objects. It loads the client only here, because that takes time and memory. */
export async function withCluster<Result>(
  options: ClusterOptions,
  work: (objects: ClusterObjects) => Promise<Result>,
): Promise<Result> {
  const [{ loadClusterAccess }, { ApiClient: Client }, { createMetrics }] = await Promise.all([
    import("../../sources/kubernetes/client/kube-config.ts"),
    import("../../sources/kubernetes/client/client.ts"),
    import("../../lib/metrics/metrics.ts"),
  ]);
  const access = await loadClusterAccess(options);
  const version = readVersion();
  const client = new Client({
    access,
    clock: systemClock,
    log: silentLog,
    metrics: createMetrics(version),
    version,
    random,
  });
  try {
    return await work(await objectsOf(client, access.namespace));
  } finally {
    await client.stop();
  }
}

async function objectsOf(client: ApiClient, namespace: string): Promise<ClusterObjects> {
  const { objectPath, resources } = await import("../../sources/kubernetes/client/resources.ts");
  const { ApiError } = await import("../../sources/kubernetes/client/api-error.ts");
  const { signal } = new AbortController();
  const pathOf = (place: ObjectPlace) => objectPath(resources[place.kind], place.namespace, place.name);
  const failure = (doing: string, place: ObjectPlace, error: unknown) => {
    if (!(error instanceof ApiError)) return error;
    return new StartError(`${doing} ${nameOf(place)}: ${whyOf(error.status, place, error.message)}`, { cause: error });
  };
  return {
    namespace,
    read: async (place) => {
      try {
        return await client.json({ path: pathOf(place), signal });
      } catch (error) {
        throw failure("Reading", place, error);
      }
    },
    patch: async (place, patch) => {
      const body = { contentType: "application/merge-patch+json", value: patch };
      const query = { fieldManager: "davit-machine" };
      try {
        await client.json({ method: "PATCH", path: pathOf(place), query, body, signal });
      } catch (error) {
        throw failure("Changing", place, error);
      }
    },
  };
}

/** @param otherwise the message of any other failure. It quotes no object. */
function whyOf(status: number | undefined, { kind, namespace }: ObjectPlace, otherwise: string): string {
  const plural = kind === "Group" ? "groups" : "machines";
  if (status === 404)
    return `it does not exist, or the cluster has no CRD ${plural}.davit.dev: create it, or correct the name`;
  if (status === 403)
    return `your account needs get and patch on ${plural}.davit.dev in namespace "${namespace}" (403)`;
  if (status === 409) return "it has changed meanwhile: look at it, then repeat the command";
  return otherwise;
}

/** Returns the name of an object for people. */
export function nameOf({ kind, namespace, name }: ObjectPlace): string {
  return `${kind} ${namespace}/${name}`;
}

/** Returns the generation of `spec.install`; 0 without one. */
export function grantedGeneration({ spec }: JsonObject): number {
  const install = isJsonObject(spec) ? spec.install : undefined;
  const generation = isJsonObject(install) ? install.generation : undefined;
  return typeof generation === "number" && Number.isSafeInteger(generation) ? generation : 0;
}

/** Returns `metadata.resourceVersion`, which a patch may name as its condition. */
export function versionOf({ metadata }: JsonObject): string | undefined {
  const version = isJsonObject(metadata) ? metadata.resourceVersion : undefined;
  return typeof version === "string" ? version : undefined;
}
