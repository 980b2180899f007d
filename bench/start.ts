/**
 * `make bench-start`: what a start of davit takes: `davit --help`, `davit lint` of the quickstart, and `davit serve` of
 * it until a machine gets its script. Each start is a process of its own, as the image runs it. `--beside MAIN` takes
 * turns with another bundle, such as a release's dist/bundle/main.js.
 *
 * Processor time counts user and system time of all threads of the process, to its end or until it is ready.
 */

import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { imageProgram } from "../test/helpers/image-program.ts";
import { startDavit } from "../tools/davit-process.ts";
import { cpuMicrosecondsOf } from "./process-usage.ts";
import { runBenchmark, versionOf } from "./run.ts";
import { takeTurns } from "./turns.ts";

const run = promisify(execFile);
const manifests = join(import.meta.dirname, "../manifests/quickstart");
const { program, nodeArgs } = imageProgram();

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    beside: { type: "string" },
  },
});

interface Start {
  readonly cpuMs: number;
  readonly wallMs: number;
}

interface Part {
  readonly what: string;
  /** The most processor time, in milliseconds. */
  readonly goalMs: number;
  readonly start: (main: string) => Promise<Start>;
}

const parts: readonly Part[] = [
  { what: "`davit --help`", goalMs: 300, start: (main) => runToEnd(main, ["--help"]) },
  { what: "`davit lint`", goalMs: 300, start: (main) => runToEnd(main, ["lint", "--manifests", manifests]) },
  { what: "`davit serve`, ready", goalMs: 700, start: untilReady },
];

/** Runs a command to its end. The shell's `time` counts its threads, too, also those that ended. */
async function runToEnd(main: string, args: readonly string[]): Promise<Start> {
  const timed = 'TIMEFORMAT="%U %S %R"; time "$@" >/dev/null 2>/dev/null';
  const { stderr } = await run("bash", ["-c", timed, "bash", process.execPath, ...nodeArgs, main, ...args], {
    env: { ...process.env, LC_ALL: "C" },
  });
  const [user = 0, system = 0, wall = 0] = stderr.trim().split(" ").map(Number);
  return { cpuMs: (user + system) * 1_000, wallMs: wall * 1_000 };
}

/** Starts with an empty data directory, until a machine gets its script and davit is ready. */
async function untilReady(main: string): Promise<Start> {
  const dataDir = await mkdtemp(join(tmpdir(), "davit-bench-"));
  try {
    const startMs = performance.now();
    const davit = await startDavit({ program: main, nodeArgs, manifests, dataDir: join(dataDir, "data") });
    try {
      for (const url of [`${davit.bootUrl}/ipxe?mac=52:54:00:a1:9c:ae`, `${davit.opsUrl}/readyz`]) {
        const { status } = await fetch(url);
        if (status !== 200) throw new Error(`${url} answered ${status}`);
      }
      return { cpuMs: cpuMicrosecondsOf(davit.pid) / 1_000, wallMs: performance.now() - startMs };
    } finally {
      await davit.stop();
    }
  } finally {
    await rm(dataDir, { recursive: true });
  }
}

const { beside } = values;
const rounds = Number(values.rounds);
await runBenchmark({
  name: "start",
  settings: { rounds },
  ...(beside !== undefined && { peers: { "the other bundle": versionOf(process.execPath, beside, "--version") } }),
  measure: async (add) => {
    for (const { what, goalMs, start } of parts) {
      const mains = [program, ...(beside === undefined ? [] : [beside])];
      const startsOf = await takeTurns(mains, rounds, start);
      const sides = (of: (start: Start) => number) => ({
        davit: startsOf(program).map(of),
        ...(beside !== undefined && { beside: startsOf(beside).map(of) }),
      });
      const goal = { of: "davit", atMost: goalMs } as const;
      const cpu = { unit: "ms", ...sides(({ cpuMs }) => cpuMs), goal };
      const peer = beside === undefined ? {} : { peer: "the other bundle" };
      add({ what, ...peer, unit: "ms", ...sides(({ wallMs }) => wallMs), cpu });
    }
  },
});
