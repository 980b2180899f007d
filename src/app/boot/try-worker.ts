/** The program of the thread that tries manifests. Each message is a job, and the jobs are answered in order. */

import { parentPort } from "node:worker_threads";
import { assert } from "../../lib/errors.ts";
import { type TryJob, tryManifest } from "./try-manifest.ts";

const port = parentPort;
assert(port !== null, "Manifests are tried in a worker thread");
port.on("message", async (job: TryJob) => port.postMessage(await tryManifest(job)));
