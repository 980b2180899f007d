/** The program of the thread that tries manifests. */

import { answerJobs } from "../../lib/job-thread.ts";
import { tryManifest } from "./try-manifest.ts";

answerJobs(tryManifest);
