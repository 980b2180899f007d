/**
 * `make bench-boot`: what machines get of the boot service, and at what cost. Words of the command line choose parts
 * (`ipxe ignition metadata signatures expressions storm changes`; all unless given); `BENCH_QUICK=1` makes them shorter, for
 * a first look. `MATCHBOX=path` names a matchbox binary to measure beside it.
 */

import { cpus, totalmem } from "node:os";
import { type BootChanges, measureBootChanges } from "./boot-changes.ts";
import { measureExpressions, type ShapeRow } from "./boot-expressions.ts";
import { type BootSpeed, measureBootSpeed } from "./boot-speed.ts";
import { type BootStorm, measureBootStorm } from "./boot-storm.ts";
import { type Endpoint, endpoints } from "./machines.ts";
import { load, mebibytes, print } from "./report.ts";
import { describeSignatures, measureSignatures, signatureBenchRounds } from "./signatures.ts";
import type { Latency } from "./statistics.ts";

const isQuick = (process.env.BENCH_QUICK ?? "") !== "";
const words = process.argv.slice(2);
const pace = isQuick ? { rounds: 5, roundMs: 300 } : { rounds: 15, roundMs: 500 };

await main();

async function main(): Promise<void> {
  const processor = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  print(`${processor.length} x ${processor[0]?.model}, ${memory}; Node ${process.version}; ${load()}`);
  await speed(endpoints.filter(isChosen));
  if (isChosen("signatures")) await signatures();
  if (isChosen("expressions")) printShapes(await measureExpressions(pace));
  if (isChosen("storm")) printStorm(await measureBootStorm(isQuick ? 2_000 : 10_000));
  if (isChosen("changes")) printChanges(await measureBootChanges(isQuick ? 5_000 : 20_000));
  print(`\n${load()}`);
}

async function speed(chosen: readonly Endpoint[]): Promise<void> {
  if (chosen.length === 0) return;
  printSpeed(
    await measureBootSpeed({
      endpoints: chosen,
      groups: [10, 1_000, 10_000, 100_000],
      matchbox: process.env.MATCHBOX,
      ...pace,
    }),
  );
}

async function signatures(): Promise<void> {
  const { rounds } = signatureBenchRounds;
  const measures = await measureSignatures({ rounds, roundMs: isQuick ? 300 : 500 });
  for (const line of ["", ...describeSignatures(measures)]) print(line);
}

function isChosen(part: string): boolean {
  return words.length === 0 || words.includes(part);
}

function printSpeed({ speeds, ratios, memory }: BootSpeed): void {
  for (const [endpoint, rows] of speeds) {
    print(`\n| /${endpoint}, 16 connections | requests/s | CPU us | p50 ms | p99 ms |\n|---|---|---|---|---|`);
    for (const { name, perSecond, cpuMicroseconds, p50Ms, p99Ms } of rows) {
      const figures = [cpuMicroseconds.toFixed(1), p50Ms.toFixed(2), p99Ms.toFixed(2)];
      print(`| ${name} | ${Math.round(perSecond).toLocaleString("en")} | ${figures.join(" | ")} |`);
    }
  }
  print("\n| medians of paired ratios | requests/s | CPU (inverse) | target |\n|---|---|---|---|");
  for (const { what, throughput, cpu, target } of ratios) {
    print(`| ${what} | ${throughput.toFixed(2)} | ${cpu.toFixed(2)} | ${target} |`);
  }
  print("\n| memory of a group | loaded | after every machine asked for everything | target |\n|---|---|---|---|");
  for (const { groups, loadedBytes, servedBytes } of memory) {
    const figures = [loadedBytes, servedBytes].map((bytes) => `${Math.round(bytes).toLocaleString("en")} bytes`);
    print(`| of ${groups.toLocaleString("en")} | ${figures.join(" | ")} | 2,048 |`);
  }
}

function printShapes(rows: readonly ShapeRow[]): void {
  print("\n| /ipxe, 16 connections | requests/s | CPU us | CPU beside the first (inverse) |\n|---|---|---|---|");
  for (const { name, perSecond, cpuMicroseconds, cpuRatio } of rows) {
    const figures = [cpuMicroseconds.toFixed(1), cpuRatio.toFixed(2)];
    print(`| ${name} | ${Math.round(perSecond).toLocaleString("en")} | ${figures.join(" | ")} |`);
  }
}

function printStorm(storm: BootStorm): void {
  print(`\n| ${storm.machines.toLocaleString("en")} machines | p50 ms | p99 ms | longest ms |\n|---|---|---|---|`);
  for (const [step, latency] of storm.steps) print(`| ${step} | ${milliseconds(latency)} |`);
  print(`| from power on to the last answer | ${milliseconds(storm.boots)} |`);
  const { errors, refusals, cpuMicrosecondsPerBoot, bytesBefore, bytesMost } = storm;
  print(`\nerrors: ${errors.length} ${[...new Set(errors)].slice(0, 5).join("; ")}`);
  print(`answers 503, obeyed: ${refusals}; davit's processor time for a boot: ${cpuMicrosecondsPerBoot.toFixed(0)} us`);
  print(`davit's resident memory: ${mebibytes(bytesBefore)} before, ${mebibytes(bytesMost)} at most`);
}

function printChanges({ changes, answers, errors, latency, staleAnswers, oldestStale }: BootChanges): void {
  print(`\n${changes} changes of Groups while ${answers} boot scripts were asked for`);
  print("\n| from when a request was due | p50 ms | p99 ms | longest ms |\n|---|---|---|---|");
  print(`| to its answer | ${milliseconds(latency)} |`);
  print(`\nerrors: ${errors.length} ${errors[0] ?? ""}`);
  print(`stale answers: ${staleAnswers}, the oldest by ${oldestStale.toFixed(1)} ms (target: none by 250 ms)`);
}

function milliseconds({ p50, p99, longest }: Latency): string {
  return [p50, p99, longest].map((value) => value.toFixed(1)).join(" | ");
}
