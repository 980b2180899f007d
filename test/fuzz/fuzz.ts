/**
 * Gives mutants of good inputs to a part of davit for some time. A target's `run` throws for what must not be: an error
 * that the part does not declare, a wrong answer, a secret. `DAVIT_FUZZ_SECONDS` is the time of each target (2 in every
 * run of the suites; `make fuzz` takes 60), `DAVIT_FUZZ_SEED` repeats a run's choices.
 *
 * The smallest mutant that fails is in the error, as base64. It becomes a case in the suite of the part.
 */

import { randomInt } from "node:crypto";
import { seededPick } from "../helpers/fault-files.ts";
import { mutate } from "./mutate.ts";

export interface FuzzTarget {
  readonly name: string;
  readonly inputs: readonly (string | Buffer)[];
  /** Of the input's language. */
  readonly words: readonly string[];
  /** @throws {Error} for a finding. */
  readonly run: (input: Buffer) => unknown;
}

export const fuzzSeconds = Number(process.env.DAVIT_FUZZ_SECONDS ?? 2);
export const fuzzSeed = Number(process.env.DAVIT_FUZZ_SEED ?? randomInt(1_000_000_000));
const keptMutants = 200;
const shrinkSteps = 300;
const shownBytes = 600;

/** How long a test with one target may take, milliseconds. */
export const fuzzTimeoutMs = 60_000 + fuzzSeconds * 4_000;

/** @throws {Error} with the smallest mutant that fails. */
export async function fuzz(target: FuzzTarget): Promise<void> {
  const inputs = target.inputs.map((input) => Buffer.from(input));
  for (const input of inputs) await target.run(input);
  const pick = seededPick(fuzzSeed);
  const corpus: Buffer[] = [...inputs];
  const endMs = performance.now() + fuzzSeconds * 1_000;
  let count = 0;
  let slowestMs = 0;
  for (; performance.now() < endMs; count++) {
    const parent = corpus[pick(corpus.length)] ?? Buffer.alloc(0);
    const mutant = mutate(parent, pick, target.words, inputs);
    const { user, system } = process.cpuUsage();
    const finding = await findingOf(target, mutant);
    const used = process.cpuUsage({ user, system });
    slowestMs = Math.max(slowestMs, (used.user + used.system) / 1_000);
    if (finding !== undefined) throw await report(target, mutant, finding);
    // Mutants of mutants reach further. The first inputs stay.
    if (pick(20) === 0) corpus[Math.min(corpus.length, inputs.length + pick(keptMutants))] = mutant;
  }
  const slowest = `the slowest took ${Math.round(slowestMs)} ms of CPU`;
  process.stdout.write(`fuzz ${target.name}: seed ${fuzzSeed}, ${count} mutants, ${slowest}\n`);
}

async function findingOf(target: FuzzTarget, input: Buffer): Promise<unknown> {
  try {
    await target.run(input);
    return undefined;
  } catch (error) {
    return error ?? new Error("Something undefined was thrown");
  }
}

async function report(target: FuzzTarget, mutant: Buffer, finding: unknown): Promise<Error> {
  let smallest = mutant;
  let cause = finding;
  let size = mutant.length >> 1;
  for (let step = 0, at = 0; step < shrinkSteps && size > 0; step++) {
    const smaller = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
    const found = smaller.length < smallest.length ? await findingOf(target, smaller) : undefined;
    if (found !== undefined) [smallest, cause] = [smaller, found];
    else at += size;
    if (at >= smallest.length) [at, size] = [0, size >> 1];
  }
  const shown = smallest.subarray(0, shownBytes).toString("base64");
  return new Error(`${target.name}, seed ${fuzzSeed}: ${smallest.length} bytes fail: ${shown}\n${String(cause)}`, {
    cause,
  });
}
