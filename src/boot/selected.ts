/** What selection gives the makers of configs, and what it reads of the ledger. */

import type { LedgerView, PermitAsk } from "../model/permit.ts";
import type { GenericFormat } from "../model/profile.ts";
import type { BootGroup, BootProfile } from "./known-documents.ts";

/** A machine's Group and Profile. */
export interface Machine {
  readonly group: BootGroup;
  readonly profile: BootProfile;
}

/** A Group and a Profile that a machine may get. */
export interface Candidate {
  readonly machine: Machine;
  /** The question to the desk, if the machine gets the Profile only with a permit. */
  readonly ask: PermitAsk | undefined;
}

/** What the boot service reads of the ledger. */
export interface BootLedger extends LedgerView {
  /** The labels that the machine with these identities has reported about itself, and that count now. */
  reportedLabels(identities: readonly string[]): ReadonlyMap<string, string>;
}

/** The text of a template, as its object has it. */
export interface TemplateText {
  readonly text: string;
  /** True if the text is served as it is, without rendering. */
  readonly raw: boolean;
  readonly format?: GenericFormat;
}
