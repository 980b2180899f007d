/** A stand-in for the parser's thread that a file by the name of `deadly.yaml` ends, as want of memory would. */

import { parentPort } from "node:worker_threads";

parentPort?.postMessage({ kind: "ready" });
parentPort?.on("message", (batch: readonly { readonly label: string; readonly signature: string }[]) => {
  if (batch.some(({ label }) => label === "deadly.yaml")) process.exit(1);
  const files = batch.map(({ signature }) => ({ definitions: [], problems: [], ignored: [], signature }));
  parentPort?.postMessage({ kind: "parsed", files });
});
