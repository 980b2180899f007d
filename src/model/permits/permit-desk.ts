/**
 * The port at which permits are asked for and closed. The ledger's writer implements it. In a follower, a client of the
 * writer does: a follower never writes.
 */

import type { Soon } from "../../lib/soon.ts";
import type { PermitRefusal } from "../refusals.ts";
import type { LedgerEntry, PermitAsk, ReportState } from "./permit.ts";

/** A question that may spend a permit. */
export interface DeskAsk extends PermitAsk {
  /**
   * False for a request that must not change the ledger: HEAD, and a signature. It gets what was claimed before.
   */
  readonly mayClaim: boolean;
  /** True for a config that is only for the address that has claimed the install. */
  readonly isSealed: boolean;
  /** The client's address; undefined if it is not known. */
  readonly address: string | undefined;
  /** The query as sent, without the `?`. A follower sends it to the writer, which reads labels and objects itself. */
  readonly rawQuery: string;
}

export type DeskAnswer =
  /** The ledger has logged the claim, or the beginning of the install. */
  | { readonly kind: "granted"; readonly entry: LedgerEntry; readonly reportToken: string }
  | { readonly kind: "disk" }
  | { readonly kind: "refused"; readonly why: PermitRefusal }
  /** The ledger could not log the claim in time, or the writer is away. The machine asks again. */
  | { readonly kind: "late" };

/** What a machine reports at `/report/<token>`. */
export interface MachineReport {
  readonly state: ReportState;
  /** 0 to 100. */
  readonly progress?: number;
  readonly message?: string;
  /** Only those count that the machine's Profile permits. */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * - `taken`: the report is logged, or it repeats what is logged.
 * - `unknown`: the token is of no machine, or of an earlier install.
 * - `final`: the install has ended otherwise.
 * - `tooMany`: too many reports of this token or in all.
 * - `late`: as in `DeskAnswer`.
 */
export type ReportOutcome = "taken" | "unknown" | "final" | "tooMany" | "late";

export interface PermitDesk {
  /** True for a desk that asks another thread or process, whose ledger may be newer than the copy here. */
  readonly isRemote?: true;
  /** Answers within a second. */
  ask(question: DeskAsk): Soon<DeskAnswer>;
  /** Answers within a second. It can only close a permit. @param address see `DeskAsk`. */
  report(token: string, report: MachineReport, address: string | undefined): Promise<ReportOutcome>;
}
