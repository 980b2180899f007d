/**
 * The program of the thread that runs trials. A template may take a third of a second, and a YAML text a whole second:
 * too long for the thread that answers machines. `workerData` is the URL where machines reach davit. Each message is a
 * job, and the jobs are answered in order.
 */

import { createHash } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../lib/errors.ts";
import { runTrials, type TrialJob } from "./trial.ts";

const port = parentPort;
assert(port !== null, "Trials run in a worker thread");
const tools = {
  davitUrl: String(workerData),
  sha256: (text: string) => createHash("sha256").update(text).digest("hex"),
};
port.on("message", (job: TrialJob) => {
  port.postMessage(runTrials(job, tools));
});
