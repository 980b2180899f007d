/** How long a run under chaos lasts, and what went wrong in it. */

import { randomInt } from "node:crypto";
import type { Breach, Witness } from "./witness.ts";

const { DAVIT_TEST_CHANGES: changes, DAVIT_TEST_SEED: chosenSeed } = process.env;

/** Always the same in every run of the suites, another one in a long run; `DAVIT_TEST_SEED` sets it. */
export const seed = Number(chosenSeed ?? (changes === undefined ? 733_923 : randomInt(1_000_000)));
export const paceMs = 500;

/** How many changes are made: so many in every run of the suites, `DAVIT_TEST_CHANGES` in a long one. */
export function operationsOf(preset: number): number {
  return Number(changes ?? preset);
}

/** A change takes some hundred milliseconds, a disturbance seconds, on a machine that may be busy. */
export function timeoutMsOf(operations: number): number {
  return 300_000 + operations * 5_000;
}

export interface Run {
  readonly witness: Witness;
  readonly summary: string;
  run(): Promise<void>;
  unsettled(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/**
 * Runs it, and prints what was done.
 * @returns what went wrong: installs, and machines that do not get what is theirs in the end.
 */
export async function faultsOf(run: Run): Promise<readonly (Breach | string)[]> {
  try {
    await run.run();
    const unsettled = await run.unsettled();
    process.stdout.write(`${run.summary}\n`);
    return [...run.witness.breaches, ...unsettled];
  } finally {
    await run.stop();
  }
}

/**
 * Runs it. Returns all that went wrong as one line: a list of failed tests has one line for each. Empty if nothing did.
 */
export async function faultLineOf(run: Run): Promise<string> {
  const faults = await faultsOf(run);
  return faults.length === 0 ? "" : `${faults.length} faults: ${JSON.stringify(faults)}`;
}
