/**
 * `npm run bench`: what a boot script costs. It compares `/ipxe` with 10 groups, `/ipxe` with 100,000 groups and a bare
 * `node:http` server that sends the same bytes, each in a process of its own, with the load in a fourth. Rounds are
 * interleaved and ratios are taken within a round, so that a noisy machine disturbs all three alike; it prints medians.
 * Processor time per request counts the server's own only.
 */

import { cpus, totalmem } from "node:os";
import { Child } from "./child.ts";
import { ipxeTargets } from "./machines.ts";
import { median, pairedRatio } from "./statistics.ts";

const rounds = 15;
const roundMs = 1_000;
const warmUpMs = 2_000;

interface Contender {
  readonly name: string;
  readonly child: Child;
  readonly port: number;
  readonly targets: readonly string[];
}

interface Measure {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
}

await main();

async function main(): Promise<void> {
  const children = ["load-child.ts", "bare-child.ts", "boot-child.ts", "boot-child.ts"].map((file) =>
    Child.start(file),
  );
  const [load, bare, few, many] = children;
  try {
    if (load === undefined || bare === undefined || few === undefined || many === undefined) return;
    const small = await startBoot(few, 10);
    const large = await startBoot(many, 100_000);
    const contenders = [await startBare(bare, small), small, large];
    for (const contender of contenders) await measure(load, contender, warmUpMs);
    const results = contenders.map((): Measure[] => []);
    for (let round = 0; round < rounds; round++) {
      // Another one begins each round: what runs first finds a cooler machine.
      for (let turn = 0; turn < contenders.length; turn++) {
        const at = (round + turn) % contenders.length;
        const contender = contenders[at];
        if (contender !== undefined) results[at]?.push(await measure(load, contender, roundMs));
      }
    }
    report(contenders, results);
  } finally {
    await Promise.all(children.map((child) => child.stop()));
  }
}

async function startBoot(child: Child, groups: number): Promise<Contender> {
  const { port, loadMs } = await child.ask({ kind: "start", groups }, (answer) => numbers(answer, "port", "loadMs"));
  print(`${groups} groups loaded in ${Math.round(loadMs ?? 0)} ms`);
  return { name: `/ipxe, ${groups} groups`, child, port: port ?? 0, targets: ipxeTargets(groups) };
}

/** Starts the yardstick with the bytes of a real answer. */
async function startBare(child: Child, model: Contender): Promise<Contender> {
  const answer = await fetch(`http://127.0.0.1:${model.port}${model.targets[0]}`);
  const question = { kind: "start", contentType: answer.headers.get("content-type"), body: await answer.text() };
  const { port } = await child.ask(question, (reply) => numbers(reply, "port"));
  return { name: "bare node:http", child, port: port ?? 0, targets: model.targets };
}

async function measure(load: Child, { child, port, targets }: Contender, durationMs: number): Promise<Measure> {
  const cpu = () => child.ask({ kind: "cpu" }, (answer) => numbers(answer, "microseconds").microseconds ?? 0);
  const before = await cpu();
  const question = { port, targets, durationMs };
  const { count = 0, seconds = 1 } = await load.ask(question, (answer) => numbers(answer, "count", "seconds"));
  return { perSecond: count / seconds, cpuMicroseconds: ((await cpu()) - before) / count };
}

function report(contenders: readonly Contender[], results: readonly (readonly Measure[])[]): void {
  const [bare = [], few = [], many = []] = results;
  const processor = cpus();
  print(
    `\n${processor.length} x ${processor[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB; Node ${process.version}`,
  );
  print(`${rounds} interleaved rounds of ${roundMs / 1000} s, 16 connections; medians\n`);
  print("                          requests/s   CPU us/request");
  contenders.forEach(({ name }, at) => {
    const measures = results[at] ?? [];
    const perSecond = Math.round(median(measures.map((one) => one.perSecond)));
    const cpu = median(measures.map((one) => one.cpuMicroseconds)).toFixed(1);
    print(`${name.padEnd(26)}${String(perSecond).padStart(10)}${cpu.padStart(17)}`);
  });
  print("");
  print(`10 groups beside bare node:http:       ${ratio(few, bare)} x (target 0.65)`);
  print(`100,000 groups beside 10 groups:       ${ratio(many, few)} x (target 0.90)`);
}

function ratio(some: readonly Measure[], others: readonly Measure[]): string {
  return pairedRatio(some.map(perSecondOf), others.map(perSecondOf)).toFixed(2);
}

function perSecondOf({ perSecond }: Measure): number {
  return perSecond;
}

/** Reads numbers from a child's answer. */
function numbers<Name extends string>(answer: unknown, ...names: readonly Name[]): Partial<Record<Name, number>> {
  const found: Partial<Record<Name, number>> = {};
  for (const name of names) {
    const value: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, name) : undefined;
    if (typeof value !== "number") throw new Error(`a process of the benchmark did not tell its ${name}`);
    found[name] = value;
  }
  return found;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
