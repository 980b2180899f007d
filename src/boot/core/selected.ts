/** What selection gives the makers of configs, and what it reads of the ledger. */

import type { LabelPair, Labels } from "../../model/labels/labels.ts";
import type { LedgerView, PermitAsk } from "../../model/permits/permit.ts";
import type { BootGroup, BootProfile } from "./known-documents.ts";

/** What selection gives a machine: its Group and Profile. */
export interface Selected {
  readonly group: BootGroup;
  readonly profile: BootProfile;
}

/** A Group and a Profile that a machine may get. */
export interface Candidate extends Selected {
  /** The question to the desk; undefined if the machine needs no permit for what it asks. */
  readonly ask: PermitAsk | undefined;
  /** True if the machine boots its disk instead, by `InstallPlan.then`. It need not wait for the desk. */
  readonly isDisk: boolean;
}

/** What the boot service reads of the ledger. */
export interface BootLedger extends LedgerView {
  /**
   * The labels that the machine of a request has reported about itself, and that count now.
   * @param listed the identities of the request's Machine; undefined without one.
   */
  reportedLabels(request: Labels, listed?: readonly string[]): readonly LabelPair[];
  /** True if a machine has ever reported a label. Absent means false. */
  readonly hasReports?: boolean;
  /** True if this copy may lack labels that machines have reported. Absent means false. */
  readonly mayMissReports?: boolean;
  /** When the ledger was last known to be complete, on the monotonic clock; undefined if it never was. */
  readonly provenAtMs?: number | undefined;
}
