/** A stand-in for the thread that makes configs: what a text says happens to it. */

import { parentPort } from "node:worker_threads";
import type { SentJob } from "../../src/boot/making/render-thread.ts";

parentPort?.on("message", ({ job, asked }: SentJob) => {
  const text = job.kind === "part" ? job.text : "";
  if (text.includes("asks")) Atomics.store(asked, 0, 1);
  if (text.includes("dies")) process.exit(1);
  if (text.includes("never ends")) for (;;);
  parentPort?.postMessage({ made: { rendered: { body: text, contentType: "text/plain" } } });
});
