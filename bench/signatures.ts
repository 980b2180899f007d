/**
 * `npm run bench:signatures`: what the signature of a repeated body costs beside the body itself. One davit signs by
 * RSA-4096, the slowest kind of key; `/ipxe` and `/ipxe.sig` are asked of it in turns, in interleaved rounds, and ratios
 * are taken within a round. It prints medians; processor time counts the server's own only.
 */

import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateKey } from "openpgp";
import { Child } from "./child.ts";
import { benchTargets } from "./machines.ts";
import { median, pairedRatio } from "./statistics.ts";

const groups = 10;

export interface SignatureBenchOptions {
  readonly rounds: number;
  readonly roundMs: number;
}

export interface SignatureMeasure {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
}

/** One measure of each for each round. */
export interface SignatureMeasures {
  readonly unsigned: readonly SignatureMeasure[];
  readonly signed: readonly SignatureMeasure[];
}

export const signatureBenchRounds: SignatureBenchOptions = { rounds: 15, roundMs: 1_000 };

/** Starts a server and its load in processes of their own, and measures. */
export async function measureSignatures({ rounds, roundMs }: SignatureBenchOptions): Promise<SignatureMeasures> {
  const signingKey = join(tmpdir(), `davit-bench-${process.pid}.key`);
  const [load, server] = [Child.start("load-child.ts"), Child.start("boot-child.ts")];
  try {
    await writeFile(signingKey, await makeKey(), { mode: 0o600 });
    const port = await server.ask({ kind: "start", groups, signingKey }, (answer) => numberOf(answer, "port"));
    const unsignedTargets = benchTargets("ipxe", groups);
    const signedTargets = unsignedTargets.map((target) => target.replace("?", ".sig?"));
    const measure = (targets: readonly string[]) => measureRound({ load, server, port, targets, roundMs });
    await measure(unsignedTargets);
    await measure(signedTargets);
    const unsigned: SignatureMeasure[] = [];
    const signed: SignatureMeasure[] = [];
    for (let round = 0; round < rounds; round++) {
      // The other one begins each round: what runs first finds a cooler machine.
      if (round % 2 === 0) unsigned.push(await measure(unsignedTargets));
      signed.push(await measure(signedTargets));
      if (round % 2 === 1) unsigned.push(await measure(unsignedTargets));
    }
    return { unsigned, signed };
  } finally {
    await Promise.all([load.stop(), server.stop(), rm(signingKey, { force: true })]);
  }
}

/** The lines of a report. */
export function describeSignatures({ unsigned, signed }: SignatureMeasures): readonly string[] {
  const row = (name: string, measures: readonly SignatureMeasure[]) => {
    const perSecond = Math.round(median(measures.map((one) => one.perSecond)));
    const cpu = median(measures.map((one) => one.cpuMicroseconds)).toFixed(1);
    return `${name.padEnd(26)}${String(perSecond).padStart(10)}${cpu.padStart(17)}`;
  };
  const perSecond = (measures: readonly SignatureMeasure[]) => measures.map((one) => one.perSecond);
  return [
    "                          requests/s   CPU us/request",
    row("/ipxe", unsigned),
    row("/ipxe.sig, repeated", signed),
    "",
    `a repeated body's signature beside the body: ${pairedRatio(perSecond(signed), perSecond(unsigned)).toFixed(2)} x (target 0.80)`,
  ];
}

async function makeKey(): Promise<Uint8Array> {
  const userIDs = { name: "bench" };
  const { privateKey } = await generateKey({ type: "rsa", rsaBits: 4096, userIDs, format: "binary" });
  return privateKey;
}

interface Round {
  readonly load: Child;
  readonly server: Child;
  readonly port: number;
  readonly targets: readonly string[];
  readonly roundMs: number;
}

async function measureRound({ load, server, port, targets, roundMs }: Round): Promise<SignatureMeasure> {
  const cpu = () => server.ask({ kind: "cpu" }, (answer) => numberOf(answer, "microseconds"));
  const before = await cpu();
  const { count, seconds } = await load.ask({ port, targets, durationMs: roundMs }, (answer) => ({
    count: numberOf(answer, "count"),
    seconds: numberOf(answer, "seconds"),
  }));
  return { perSecond: count / seconds, cpuMicroseconds: ((await cpu()) - before) / count };
}

function numberOf(answer: unknown, name: string): number {
  const value: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, name) : undefined;
  if (typeof value !== "number") throw new Error(`a process of the benchmark did not report its ${name}`);
  return value;
}

if (import.meta.main) {
  const { rounds, roundMs } = signatureBenchRounds;
  process.stdout.write(`${rounds} interleaved rounds of ${roundMs / 1_000} s, 16 connections; medians\n\n`);
  for (const line of describeSignatures(await measureSignatures(signatureBenchRounds))) {
    process.stdout.write(`${line}\n`);
  }
}
