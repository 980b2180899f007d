/**
 * `make bench-boot`: what machines get from the boot service, and at what cost. Words of the command line choose parts;
 * default: all. `MATCHBOX=path` names a matchbox binary to measure beside it. `--threads N` gives davit this many boot
 * threads. `BENCH_QUICK=1` makes the parts shorter, for a first look.
 *
 *   npm run bench:boot -- --rounds 15 --threads 2 ipxe ignition metadata memory signatures expressions machine storm changes
 */

import { parseArgs } from "node:util";
import { pace as changesPace, measureBootChanges } from "./boot-changes.ts";
import { startChild, withStops } from "./boot-contenders.ts";
import { measureExpressions } from "./boot-expressions.ts";
import { measureKnownMachine } from "./boot-machine.ts";
import { measureBootSpeed } from "./boot-speed.ts";
import { measureBootStorm } from "./boot-storm.ts";
import { endpoints } from "./machines.ts";
import { type AddFigure, type Benchmark, runBenchmark, versionOf } from "./run.ts";
import { measureSignatures } from "./signatures.ts";

const isQuick = (process.env.BENCH_QUICK ?? "") !== "";
const { values, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: isQuick ? "5" : "15" }, threads: { type: "string", default: "1" } },
});
const { MATCHBOX: matchbox } = process.env;
const rounds = Number(values.rounds);
const threads = Number(values.threads);
const pace = { rounds, roundMs: isQuick ? 300 : 500, threads };
const paced = { rounds, "ms each": pace.roundMs, connections: 16, threads };
const chosen = endpoints.filter(isChosen);
const seconds = isQuick ? 5 : 20;
const machines = isQuick ? 2_000 : 10_000;

const parts: readonly (Benchmark & { readonly part: string })[] = [
  {
    part: chosen[0] ?? "none",
    name: "boot-speed",
    settings: paced,
    peers: matchbox === undefined ? {} : { matchbox: versionOf(matchbox, "-version") },
    measure: (add) => measureBootSpeed({ ...pace, endpoints: chosen, matchbox }, add),
  },
  { part: "memory", name: "boot-memory", settings: {}, measure: measureMemory },
  { part: "signatures", name: "boot-signatures", settings: paced, measure: (add) => measureSignatures(pace, add) },
  { part: "expressions", name: "boot-expressions", settings: paced, measure: (add) => measureExpressions(pace, add) },
  { part: "machine", name: "boot-machine", settings: { rounds }, measure: (add) => measureKnownMachine(pace, add) },
  {
    part: "storm",
    name: "boot-storm",
    settings: { machines, threads },
    measure: (add) => measureBootStorm({ machines, threads }, add),
  },
  {
    part: "changes",
    name: "boot-changes",
    settings: { ...changesPace, seconds, threads },
    measure: (add) => measureBootChanges({ durationMs: seconds * 1_000, threads }, add),
  },
];

for (const { part, ...benchmark } of parts) if (isChosen(part)) await runBenchmark(benchmark);

function isChosen(part: string): boolean {
  return words.length === 0 ? part !== "none" : words.includes(part);
}

async function measureMemory(add: AddFigure): Promise<void> {
  for (const groups of [10_000, 100_000]) {
    await withStops(async (stops) => {
      const bytesOf = await startChild("boot-memory-child.ts", stops).askNumbers({ groups });
      const what = `a Group of ${groups.toLocaleString("en")}`;
      const goal = { of: "davit", atMost: 2_048 } as const;
      add({ what: `${what}, loaded`, unit: "bytes", davit: [bytesOf("loaded")] });
      add({ what: `${what}, its machine has asked for everything`, unit: "bytes", davit: [bytesOf("served")], goal });
    });
  }
}
