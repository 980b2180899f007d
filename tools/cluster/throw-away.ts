/**
 * `make cluster`: a Kubernetes API server with the CRDs of davit, and a davit beside it, to try things on until Ctrl-C.
 * Whatever ends it, no process and no file of it is left.
 */

import { existsSync, mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { missingTools, toolPath } from "../build/tools.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { nextSteps } from "./next-steps.ts";
import { startThrowAwayDavit } from "./throw-away-davit.ts";

const repository = join(import.meta.dirname, "../..");
const assetsDir = join(repository, "assets");

const absent = missingTools();
if (absent.length > 0) {
  process.stderr.write(`There is no ${absent.join(", ")}: run "make cluster-tools" first\n`);
  process.exitCode = 1;
} else {
  process.exitCode = await serveUntilInterrupted();
}

async function serveUntilInterrupted(): Promise<number> {
  const interrupted = new AbortController();
  // The shell, make and npm may each pass the same Ctrl-C on.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => interrupted.abort());
  interrupted.signal.addEventListener("abort", () => process.stdout.write("\nEnding\n"));
  process.stdout.write("Starting a Kubernetes API server, which takes about ten seconds\n");
  const cluster = await start(interrupted.signal);
  const code = cluster === undefined ? 0 : await serveBeside(cluster, interrupted.signal).finally(() => cluster.stop());
  process.stdout.write("Ended, and removed the cluster with its data\n");
  return code;
}

/** Undefined when it was interrupted. */
async function start(signal: AbortSignal): Promise<Cluster | undefined> {
  try {
    return await startCluster({ signal });
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

/** @returns the exit code. */
async function serveBeside(cluster: Cluster, signal: AbortSignal): Promise<number> {
  if (signal.aborted) return 0;
  process.stdout.write("Starting davit\n");
  mkdirSync(assetsDir, { recursive: true });
  const { kubeconfig } = cluster;
  const davit = await startThrowAwayDavit({
    kubeconfig,
    assetsDir,
    // It goes with all that is the cluster's.
    dataDir: join(dirname(kubeconfig), "davit"),
    write: (line) => process.stdout.write(line),
    isTerminal: process.stdout.isTTY === true,
  });
  if (signal.aborted) davit.stop();
  signal.addEventListener("abort", () => davit.stop());
  const places = await davit.serving;
  if (places !== undefined) {
    const hasBootAssets = existsSync(join(assetsDir, "quickstart/vmlinuz"));
    const kubectlDirectory = hasKubectl() ? undefined : dirname(toolPath("kubectl"));
    process.stdout.write(nextSteps({ kubeconfig, davit: places, kubectlDirectory, hasBootAssets }));
  }
  const code = await davit.ended;
  if (!signal.aborted) process.stderr.write(`davit has ended by itself (${code ?? "killed"})\n`);
  return signal.aborted ? 0 : 1;
}

function hasKubectl(): boolean {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.some((folder) => folder !== "" && existsSync(join(folder, "kubectl")));
}
