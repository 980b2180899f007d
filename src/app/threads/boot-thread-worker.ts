/** The program of a boot thread. */

import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../lib/clock.ts";
import { assert } from "../../lib/errors.ts";
import { BootThread } from "./boot-thread.ts";
import { FirstThread } from "./first-thread.ts";
import type { ToThread } from "./wire.ts";

const port = parentPort;
assert(port !== null, "A boot thread is a worker thread");
const thread = new BootThread(workerData, new FirstThread(port, systemClock), systemClock);
let turn = thread.begin();
// Messages wait for `begin` and for each other: the first documents may arrive before the files are open.
port.on("message", (message: ToThread) => {
  const taken = turn.then(() => thread.take(message));
  // A stop waits for requests, and these may wait for answers.
  if (message.kind === "stop") void taken.then(() => port.close());
  else turn = taken;
});
