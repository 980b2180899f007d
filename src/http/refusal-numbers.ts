/** Numbers the reasons of refusals. The history packs the number into a word that it stores anyway. */

import { type BootRefusal, bootRefusals } from "../boot/core/boot-error.ts";

const reasons = Object.keys(bootRefusals);
const numbers: ReadonlyMap<string, number> = new Map(reasons.map((reason, at) => [reason, at + 1]));

/** Returns the number of a reason; 0 for no reason. */
export function refusalNumber(reason: BootRefusal | undefined): number {
  return reason === undefined ? 0 : numberOfName(reason);
}

/** Returns the number of a reason that any version of davit wrote; 0 if this one does not know it. */
export function numberOfName(name: string): number {
  return numbers.get(name) ?? 0;
}

/** Returns the reason of a number; undefined for 0. */
export function refusalOf(number: number): string | undefined {
  return reasons[number - 1];
}
