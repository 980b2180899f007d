/**
 * Attacks davit for a long time: `node test/chaos/attack.ts --seeds 50 --minutes 5 --jobs 2`. Each seed
 * makes other choices. A seed's line says what was done, and a line for each fault follows. The last line has the sum.
 *
 * --place     files: a directory; cluster: an API server and one davit; members: an API server and three davits.
 *             Without it, every second seed has files, and the others have one davit or three in turn.
 * --seeds     how many runs (default: 50), from the seed `--first` (default: 1) on
 * --minutes   how long each of them makes changes (default: 5)
 * --jobs      how many run at a time (default: 2)
 */

import { parseArgs } from "node:util";
import { ChaosRun } from "./chaos-run.ts";
import { DirectoryRun } from "./directory-run.ts";
import { faultsOf, type Run } from "./faults.ts";
import { startOneDavit } from "./one-davit.ts";
import { startThreeDavits } from "./three-davits.ts";

const paceMs = 500;

const { values } = parseArgs({
  options: {
    place: { type: "string" },
    seeds: { type: "string", default: "50" },
    first: { type: "string", default: "1" },
    minutes: { type: "string", default: "5" },
    jobs: { type: "string", default: "2" },
  },
});

const longestMs = Number(values.minutes) * 60_000;
const operations = Number.POSITIVE_INFINITY;

const places = ["files", "cluster", "files", "members"];

async function start(seed: number): Promise<Run> {
  const how = { seed, operations, longestMs, paceMs };
  const place = values.place ?? places[seed % places.length];
  if (place === "files") return await DirectoryRun.start({ ...how, disturbEvery: 20 });
  const startDavits = place === "members" ? startThreeDavits : startOneDavit;
  return await ChaosRun.start({ ...how, disturbEvery: 10, startDavits });
}

let next = Number(values.first);
const last = next + Number(values.seeds) - 1;
let violations = 0;
let failures = 0;

async function job(): Promise<void> {
  while (next <= last) {
    const seed = next++;
    try {
      const faults = await faultsOf(await start(seed));
      violations += faults.length;
      for (const fault of faults) console.log(`seed ${seed}: ${JSON.stringify(fault)}`);
    } catch (error) {
      failures++;
      console.log(`seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
}

await Promise.all(Array.from({ length: Number(values.jobs) }, job));
console.log(`${values.seeds} seeds of ${values.minutes} minutes: ${violations} violations, ${failures} runs failed`);
process.exitCode = violations + failures === 0 ? 0 : 1;
