/** Compares plain values. */

import { isDeepStrictEqual } from "node:util";

/** True for values with equal members in any order, at any depth. */
export function isDeepEqual(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(a, b);
}
