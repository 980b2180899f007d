/** The phase of a machine, as its status, the operations listener and `davit machine` show it. */

import { isUnderWay, type LedgerEntry } from "../permits/permit.ts";
import type { MachinePhase } from "./machine.ts";

/** What the phase of a machine depends on. */
export interface PhaseFacts {
  /** True for a machine that its Machine or its Group holds. */
  readonly isHeld: boolean;
  /** True if the next boot script would be an install. */
  readonly mayInstall: boolean;
  /** The machine's entry with the latest change; undefined without one. */
  readonly entry: LedgerEntry | undefined;
  /** By the ledger's clock. */
  readonly nowMs: number;
}

/** Returns the phase of a machine. */
export function phaseOf({ isHeld, mayInstall, entry, nowMs }: PhaseFacts): MachinePhase {
  if (isHeld) return "Held";
  if (entry !== undefined && isUnderWay(entry, nowMs)) return "Installing";
  if (mayInstall) return "Permitted";
  if (entry === undefined) return "Waiting";
  return endedPhase(entry);
}

function endedPhase({ state, reported }: LedgerEntry): MachinePhase {
  switch (state) {
    case "Installed":
      return reported?.state === "booted" ? "Booted" : "Installed";
    case "Failed":
      return "Failed";
    // The ledger's ticker has not closed an install yet whose time is over.
    case "Claimed":
    case "Installing":
    case "Unconfirmed":
      return "Unconfirmed";
  }
}
