/** A stand-in for the thread of trials that the Profile `deadly` ends, as want of memory would. */

import { parentPort } from "node:worker_threads";

parentPort?.on("message", ({ profile, groups }: { readonly profile: string; readonly groups: readonly unknown[] }) => {
  if (profile === "deadly") process.exit(1);
  parentPort?.postMessage(groups.map(() => []));
});
