/** Numbers for the reasons of refusals: in the history a number takes no memory of its own. */

import { type BootRefusal, bootRefusals } from "../boot/boot-error.ts";

const reasons = Object.keys(bootRefusals);
const numbers: ReadonlyMap<string, number> = new Map(reasons.map((reason, at) => [reason, at + 1]));

/** 0 for none. */
export function refusalNumber(reason: BootRefusal | undefined): number {
  return reason === undefined ? 0 : (numbers.get(reason) ?? 0);
}

/** The reason of a number; undefined for 0. */
export function refusalOf(number: number): string | undefined {
  return reasons[number - 1];
}
