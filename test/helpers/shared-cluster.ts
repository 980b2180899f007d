/**
 * A namespace of the API server that the suites of a project share. A suite that stops the API server, changes CRDs,
 * reads other namespaces or counts requests starts a cluster of its own: `startCluster`.
 */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { inject } from "vitest";
import { ClusterAccess, type ClusterAddress } from "../../tools/cluster/cluster.ts";

declare module "vitest" {
  interface ProvidedContext {
    sharedCluster: ClusterAddress;
  }
}

/** Makes the namespace, which no other suite may use. What names no namespace goes there. */
export async function sharedCluster(namespace: string): Promise<ClusterAccess> {
  const shared = inject("sharedCluster");
  const directory = join(shared.directory, namespace);
  await mkdir(directory);
  const cluster = new ClusterAccess({ ...shared, directory }, namespace);
  const body = { metadata: { name: namespace } };
  const { status } = await cluster.ask({ method: "POST", path: "/api/v1/namespaces", body });
  if (status !== 201) throw new Error(`Making the namespace ${namespace}: ${status}`);
  return cluster;
}
