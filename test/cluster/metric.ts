/** Reads metrics as Prometheus gets them: davit's, and those of the API server, which count what davit asks of it. */

import type { Cluster } from "../../tools/cluster/cluster.ts";

export type Labels = Readonly<Record<string, string>>;

/**
 * The sum of the samples of a metric that have these labels.
 * @returns 0 when there is none.
 */
export function sumOf(metrics: string, name: string, labels: Labels): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const samples = metrics.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  const own = samples.filter((line) => wanted.every((label) => line.includes(label)));
  return own.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** How many requests with these labels (`resource`, `verb`, `code`, `subresource`) the API server has answered. */
export async function requestsTo(cluster: Cluster, labels: Labels): Promise<number> {
  const { stdout } = await cluster.kubectl(["get", "--raw", "/metrics"]);
  return sumOf(stdout, "apiserver_request_total", labels);
}
