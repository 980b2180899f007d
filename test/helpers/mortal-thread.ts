/** A boot thread that dies when it gets a checked file with the name `die`. */

import { parentPort } from "node:worker_threads";
import "../../src/app/threads/boot-thread-worker.ts";
import type { ToThread } from "../../src/app/threads/wire.ts";

parentPort?.on("message", (message: ToThread) => {
  if (message.kind === "checked" && message.demand.name === "die") throw new RangeError("a secret");
});
