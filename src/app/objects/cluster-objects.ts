/** Reads objects from a cluster and writes their status there: assembles the parts of `kubernetes/`. */

import type { ServeConfig } from "../../options/serve.ts";
import { ApiCallers } from "../../sources/kubernetes/api-callers.ts";
import { ApiClient } from "../../sources/kubernetes/client/client.ts";
import { ApiServerTrust } from "../../sources/kubernetes/client/cluster-trust.ts";
import { loadClusterAccess } from "../../sources/kubernetes/client/kube-config.ts";
import { ConfigMapMark } from "../../sources/kubernetes/ledger-mark.ts";
import { MachineCreator } from "../../sources/kubernetes/machine-creator.ts";
import { ClusterSource } from "../../sources/kubernetes/source/cluster-source.ts";
import { EventRecorder } from "../../sources/kubernetes/status/event-recorder.ts";
import { StatusWriter } from "../../sources/kubernetes/status/status-writer.ts";
import { signsOfLife } from "../core/signs-of-life.ts";
import type { ObjectSource, ObjectSourceOptions } from "./object-source.ts";

/** @throws {StartError} if the cluster cannot be reached. */
export async function openCluster(options: ObjectSourceOptions): Promise<ObjectSource> {
  const { config, environment, clock, random, metrics, version, instance } = options;
  const log = options.log.child({ part: "kubernetes" });
  const { kubeconfig, context } = config;
  const access = await loadClusterAccess({ kubeconfig, context, environment });
  const client = new ApiClient({ access, clock, random, log, metrics, version });
  const namespaces = namespacesOf(config, access.namespace);
  const { proveMs, pastMs } = signsOfLife(config.installMaxSourceAgeMs);
  const limits = { silenceMs: config.limits.watchSilenceMs, pastMs };
  const source = new ClusterSource({ client, namespaces, clock, random, log, metrics, limits, proveMs });
  log.info({ server: access.server, namespaces }, "reading objects from the cluster");
  const adminNamespace = adminNamespaceOf(config, namespaces, access.namespace);
  const powerless = powerlessText(adminNamespace, namespaces);
  if (powerless !== undefined) log.warn({ adminNamespace, problem: powerless }, "the admin namespace is not followed");
  const events = new EventRecorder({ client, clock, random, log, instance });
  const seen: ClusterSource["seen"] = (name) => source.seen(name);
  const writer = new StatusWriter({ client, seen, events, clock, random, log });
  source.onHeard((name, isReplaced) => writer.recheck(name, isReplaced));
  const { storeCaConfigMap } = config;
  const configMap =
    storeCaConfigMap === undefined ? undefined : { namespace: access.namespace, name: storeCaConfigMap };
  const trust = new ApiServerTrust({ client, clock, random, log, configMap });
  const ledgerMark = new ConfigMapMark({
    client,
    clock,
    namespace: access.namespace,
    name: config.ledgerMarkConfigMap,
  });
  const machineMaker = new MachineCreator({ client });
  const callers = new ApiCallers({ access, clock, random, log, metrics, version, namespaces });
  return {
    source,
    trust,
    ledgerMark,
    machineMaker,
    callers,
    eventSink: events,
    statusSink: writer,
    adminNamespace,
    place: placeOf(access.server, namespaces),
    firstCommand: firstCommandOf(namespaces === "all" ? access.namespace : (namespaces[0] ?? access.namespace)),
    measure: () => source.measure(),
    attention: () => [
      ...source.attention,
      ...writer.attention,
      ...(powerless === undefined ? [] : [`cluster: ${powerless}`]),
    ],
    stop: async () => {
      await writer.stop();
      await events.stop();
      await trust.stop();
      ledgerMark.stop();
      machineMaker.stop();
      callers.stop();
      await client.stop();
    },
  };
}

type ChosenNamespaces = readonly string[] | "all";

function namespacesOf({ allNamespaces, namespaces }: ServeConfig, own: string): ChosenNamespaces {
  if (allNamespaces) return "all";
  return namespaces.length > 0 ? [...new Set(namespaces)] : [own];
}

/**
 * Returns the configured admin namespace; by default davit's own, if it follows several namespaces. Without an admin
 * namespace, an author of Groups in one namespace could claim the machines of all others.
 */
function adminNamespaceOf(
  { adminNamespace }: ServeConfig,
  namespaces: ChosenNamespaces,
  own: string,
): string | undefined {
  if (adminNamespace !== undefined) return adminNamespace;
  return namespaces === "all" || namespaces.length > 1 ? own : undefined;
}

/** Returns a warning if davit does not follow the admin namespace. That is allowed, but probably unintended. */
function powerlessText(adminNamespace: string | undefined, namespaces: ChosenNamespaces): string | undefined {
  if (adminNamespace === undefined || namespaces === "all" || namespaces.includes(adminNamespace)) return undefined;
  const state = `the admin namespace "${adminNamespace}" is not followed, so that no Group has a priority or matchAll`;
  return `${state}: mend --admin-namespace, or add it by --namespace`;
}

function placeOf(server: string, namespaces: ChosenNamespaces): string {
  if (namespaces === "all") return `all namespaces of ${server}`;
  return `${namespaces.length === 1 ? "namespace" : "namespaces"} ${namespaces.join(", ")} of ${server}`;
}

/** The command names the namespace, because kubectl's default may be another one. */
function firstCommandOf(namespace: string): string {
  return `kubectl apply --namespace ${namespace} -f manifests/quickstart/`;
}
