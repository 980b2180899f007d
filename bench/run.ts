/**
 * What all benchmarks have in common. A run prints its figures as a table, and writes them as a JSON file,
 * `.cache/bench/NAME.json`; `BENCH_RESULTS` names another directory. `make bench-pages` makes the tables of
 * bench/README.md from the files in bench/results/.
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import { tableOf } from "../tools/benchmarks/figure-table.ts";
import { type Figure, figureOf, type MeasuredFigure } from "../tools/benchmarks/figures.ts";
import { type Run, settingsOf } from "../tools/benchmarks/run-file.ts";

export type AddFigure = (figure: MeasuredFigure) => void;

/** With more than one thread, the name of the run has their number, so such runs have files of their own. */
export interface Benchmark {
  readonly name: string;
  readonly settings: Readonly<Record<string, number>>;
  readonly peers?: Readonly<Record<string, string>>;
  readonly measure: (add: AddFigure) => Promise<void>;
}

const root = join(import.meta.dirname, "..");
const results = process.env.BENCH_RESULTS ?? join(root, ".cache/bench");

export async function runBenchmark({ name, settings, peers = {}, measure }: Benchmark): Promise<void> {
  const { threads = 1 } = settings;
  const head = {
    name: threads > 1 ? `${name}-threads-${threads}` : name,
    commit: commit(),
    at: new Date().toISOString(),
  };
  print(`\n${[head.name, settingsOf({ settings, peers }), `load average ${load()}`].filter(Boolean).join("; ")}`);
  const before = load();
  const startMs = performance.now();
  const figures: Figure[] = [];
  await measure((figure) => figures.push(figureOf(figure)));
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  const around = { node: process.versions.node, machine: machine(), peers, load: { before, after: load() } };
  write({ ...head, seconds, ...around, settings, figures });
  print(["", ...tableOf(figures), "", `${seconds} s; load average ${load()}`].join("\n"));
}

/** @returns the version that a program prints. */
export function versionOf(program: string, ...args: readonly string[]): string {
  // nginx prints its version to standard error.
  const text = execFileSync("sh", ["-c", '"$0" "$@" 2>&1', program, ...args], { encoding: "utf8" });
  const [version] = /\d+\.\d+\.\d+\S*|v\d\S*/.exec(text) ?? [];
  if (version === undefined) throw new Error(`${program} ${args.join(" ")} prints no version`);
  return version;
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function write(run: Run): void {
  mkdirSync(results, { recursive: true });
  // All numbers of a list are on one line.
  const text = JSON.stringify(run, undefined, 2).replace(/\[[\d\s.,e+-]+\]/g, (list) => list.replace(/\s+/g, " "));
  writeFileSync(join(results, `${run.name}.json`), `${text}\n`);
}

function machine(): string {
  const all = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${all.length} x ${all[0]?.model ?? "unknown"}, ${memory} GiB, Linux ${/^\d+\.\d+/.exec(release())?.[0]}`;
}

export function load(): number {
  return Number((loadavg()[0] ?? 0).toFixed(1));
}

function commit(): string {
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  return `${git("log", "-1", "--format=%h", "--abbrev=8", "src")}${git("status", "--porcelain", "src") === "" ? "" : "+"}`;
}
