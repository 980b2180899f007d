/**
 * `make bench-start`: what a start of davit takes: `davit --help`, `davit lint` of the quickstart, and `davit serve` of
 * it until a machine gets its script. Each start is a process of its own, as the image runs it. `--beside MAIN` takes
 * turns with another bundle, such as a release's dist/bundle/main.js. `--json FILE` writes every round.
 *
 * Processor time counts user and system time of all threads of the process, to its end or until it is ready.
 */

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { imageProgram } from "../test/helpers/image-program.ts";
import { startDavit } from "../tools/davit-process.ts";
import { cpuMicrosecondsOf } from "./process-usage.ts";
import { load, print } from "./report.ts";
import { median, pairedRatio } from "./statistics.ts";

const run = promisify(execFile);
const manifests = join(import.meta.dirname, "../manifests/quickstart");
const { program, nodeArgs } = imageProgram();

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    beside: { type: "string" },
    json: { type: "string" },
  },
});

interface Start {
  readonly cpuMs: number;
  readonly wallMs: number;
}

const parts: Readonly<Record<string, { readonly targetMs: number; readonly start: (main: string) => Promise<Start> }>> =
  {
    "davit --help": { targetMs: 300, start: (main) => runToEnd(main, ["--help"]) },
    "davit lint": { targetMs: 300, start: (main) => runToEnd(main, ["lint", "--manifests", manifests]) },
    "davit serve, ready": { targetMs: 700, start: untilReady },
  };

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

const mains = [program, ...(values.beside === undefined ? [] : [values.beside])];
const rounds = Number(values.rounds);
const measured: Record<string, readonly (readonly Start[])[]> = {};
print(`Medians of ${rounds} rounds, Node ${process.versions.node}, ${load()}`);
print(
  `\n| start | CPU ms | wall ms | target, CPU ms |${mains.length > 1 ? " beside: CPU ms | wall ms | ratio of CPU |" : ""}`,
);
print(`|---|---|---|---|${mains.length > 1 ? "---|---|---|" : ""}`);
for (const [what, { targetMs, start }] of Object.entries(parts)) {
  const found = mains.map((): Start[] => []);
  for (let round = 0; round < rounds; round++) {
    // The other one begins each round: what runs first finds a cooler machine.
    const order = round % 2 === 0 ? [0, 1] : [1, 0];
    for (const at of order) {
      const main = mains[at];
      if (main !== undefined) found[at]?.push(await start(main));
    }
  }
  measured[what] = found;
  print(`| ${[what, ...cellsOf(found[0] ?? []), `< ${targetMs}`, ...besideCells(found)].join(" | ")} |`);
}
print(`\n${load()}`);
if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify({ mains, measured }, undefined, 2)}\n`);

function cellsOf(starts: readonly Start[]): readonly string[] {
  return [starts.map(({ cpuMs }) => cpuMs), starts.map(({ wallMs }) => wallMs)].map((all) => median(all).toFixed(0));
}

function besideCells([own = [], other]: readonly (readonly Start[])[]): readonly string[] {
  if (other === undefined) return [];
  const cpu = (starts: readonly Start[]) => starts.map(({ cpuMs }) => cpuMs);
  return [...cellsOf(other), pairedRatio(cpu(own), cpu(other)).toFixed(2)];
}
