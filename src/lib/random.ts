import { randomInt } from "node:crypto";

/** Returns a random number from 0 to below 1, precise enough for the length of a wait. */
export function random(): number {
  return randomInt(2 ** 32) / 2 ** 32;
}
