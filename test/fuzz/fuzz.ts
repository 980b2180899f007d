/**
 * Gives mutants of good inputs to a part of davit. A target's `run` throws for what must not be: an error that the part
 * does not declare, a wrong answer, a secret. Every run of the suites makes the same few mutants. `DAVIT_FUZZ_SECONDS` is
 * the time that each target gets instead, for others each time (`make fuzz`: 60); `DAVIT_FUZZ_SEED` repeats a run's choices.
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

const { DAVIT_FUZZ_SECONDS, DAVIT_FUZZ_SEED } = process.env;
const isLong = DAVIT_FUZZ_SECONDS !== undefined;
const seconds = Number(DAVIT_FUZZ_SECONDS ?? 0);
export const fuzzSeed = Number(DAVIT_FUZZ_SEED ?? (isLong ? randomInt(1_000_000_000) : 733_923));
const usualMutants = 400;
const keptMutants = 200;
const shrinkSteps = 300;
const shownBytes = 600;

/** How long a test with one target may take, milliseconds. */
export const fuzzTimeoutMs = 120_000 + seconds * 4_000;

/** Returns a function that is true as long as there is to be another step. @param usual how many steps a short run has. */
export function fuzzSteps(usual: number): (done: number) => boolean {
  const endMs = performance.now() + seconds * 1_000;
  return (done) => (isLong ? performance.now() < endMs : done < usual);
}

/** @throws {Error} with the smallest mutant that fails. */
export async function fuzz(target: FuzzTarget): Promise<void> {
  const inputs = target.inputs.map((input) => Buffer.from(input));
  for (const input of inputs) await target.run(input);
  const pick = seededPick(fuzzSeed);
  const corpus: Buffer[] = [...inputs];
  const goesOn = fuzzSteps(usualMutants);
  let count = 0;
  let slowestMs = 0;
  for (; goesOn(count); count++) {
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
