/** Starts the API server that suites of a project share, and ends it after the last of them. */

import type { TestProject } from "vitest/node";
import { startCluster } from "../../tools/cluster/cluster.ts";
import { missing } from "./requirements.ts";

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (missing("kube-apiserver")) return undefined;
  const cluster = await startCluster();
  const { server, caFile, adminToken, directory } = cluster;
  project.provide("sharedCluster", { server, caFile, adminToken, directory });
  return () => cluster.stop();
}
