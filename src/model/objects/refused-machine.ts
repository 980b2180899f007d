/**
 * What counts of a Machine whose newest version is refused: only what makes a machine wait. Identities and `hold` of
 * the refused version count together with those of the last accepted one. Nothing is approved, and no install is
 * granted. Labels and metadata stay those of the last accepted version, because without them another Group could win.
 */

import type { MachineObject } from "./source.ts";

/**
 * Returns the Machine to use; undefined if nothing is known of it.
 * @param held the version in use, which may be such a Machine itself.
 * @param read the readable parts of the refused version; of several versions if the Machine is defined more than once.
 * @param refusal why the newest version is refused.
 */
export function refusedMachine(
  held: MachineObject | undefined,
  read: readonly MachineObject[],
  refusal: string,
): MachineObject | undefined {
  const known = held === undefined ? read : [held, ...read];
  const newest = known.at(-1);
  if (newest === undefined) return undefined;
  const identities = [...new Set(known.flatMap(({ spec }) => spec.identities))];
  return {
    ...newest,
    refusal,
    spec: {
      identities,
      approved: false,
      hold: known.some(({ spec }) => spec.hold),
      labels: held?.spec.labels ?? {},
      metadata: held?.spec.metadata ?? {},
    },
  };
}
