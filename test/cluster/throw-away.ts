/** `make cluster`: an API server with davit's CRDs to try things on, until Ctrl-C. Nothing of it is kept. */

import { systemClock } from "../../src/lib/clock.ts";
import { missingTools } from "../tools/tools.ts";
import { startCluster } from "./cluster.ts";

const absent = missingTools();
if (absent.length > 0) {
  process.stderr.write(`There is no ${absent.join(", ")}: run "make cluster-tools" first\n`);
  process.exitCode = 1;
} else {
  await serveUntilInterrupted();
}

async function serveUntilInterrupted(): Promise<void> {
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => interrupted.abort());
  process.stdout.write("Starting an API server\n");
  const cluster = await startCluster();
  process.stdout.write(`It serves ${cluster.server} with the CRDs of davit. In another terminal:\n\n`);
  process.stdout.write(`    export KUBECONFIG=${cluster.kubeconfig}\n`);
  process.stdout.write("    kubectl apply -f manifests/quickstart/\n\nCtrl-C ends it.\n");
  await systemClock.sleep(Number.MAX_SAFE_INTEGER, interrupted.signal);
  await cluster.stop();
  process.stdout.write("\nEnded, and removed its data\n");
}
