/**
 * The ports by which the operations listener shows machines and changes the ledger. davit's wiring implements them over
 * the boot index and the ledger.
 */

import type { MachineDocument } from "../../model/objects/machine.ts";
import type { InstallPlan, LedgerEntry, LedgerView, NamedGrant } from "../../model/permits/permit.ts";

/** Everything that davit knows of machines. */
export interface MachineBook {
  /** Counts changes of the ledger. */
  readonly revision: number;
  /** Every Machine object. */
  machines(): Iterable<NamedMachine>;
  /** Machines that wait for a Machine object, because their Group enrolls; absent if they become objects. */
  pending?(): Iterable<PendingMachine>;
  /** In a follower this is its copy. */
  readonly ledger: LedgerBook;
  /** Why nothing installs now, one line each; empty without a problem. */
  readonly problems: readonly string[];
  /** Returns what a machine with these identities gets now; undefined if no Group takes it. */
  bootOf(identities: readonly string[]): MachineBoot | undefined;
  /** Returns the grant of an object as it is now. @param key as in `NamedGrant`. */
  grantOf(key: string): GrantOfObject;
}

/** @field grant undefined if the object grants no install. */
type GrantOfObject =
  | { readonly kind: "object"; readonly grant: NamedGrant["grant"] | undefined }
  | { readonly kind: "missing" };

export interface NamedMachine {
  /** `namespace/name`. */
  readonly name: string;
  readonly document: MachineDocument;
}

export interface PendingMachine {
  readonly identities: readonly string[];
  /** `namespace/name` of the Group that enrolls it. */
  readonly group: string;
  readonly firstSeenAtMs: number;
}

/** The ledger with its lists. */
interface LedgerBook extends LedgerView {
  /** By id. */
  readonly entries: ReadonlyMap<string, LedgerEntry>;
  /** The highest ended generation of each grant, by the grant's key. */
  readonly ended: ReadonlyMap<string, number>;
  /** Until when machines of a Group count as installed, by the Group's name. */
  readonly adopted: ReadonlyMap<string, number>;
}

/** What a machine gets by the present objects. */
export interface MachineBoot {
  /** `namespace/name`. */
  readonly group: string;
  readonly profile: string;
  /** Of the Profile; empty without one. */
  readonly revision: string;
  /** True if the Group is held. */
  readonly isHeld: boolean;
  /** True if the Group serves only approved machines. */
  readonly needsApproval: boolean;
  /** First the Machine's, then the Group's. */
  readonly grants: readonly NamedGrant[];
  /** Undefined if the Profile needs no permit. */
  readonly plan: InstallPlan | undefined;
}

/**
 * Changes the ledger at an operator's request. Every change is logged before the promise resolves. Only the writer of
 * the ledger has it. `late` means that the ledger could not log the change in time; it may do so later.
 */
export interface LedgerOffice {
  /** Until this time, machines of the Group (`namespace/name`) without an entry count as installed. 0 ends that. */
  adopt(group: string, untilMs: number): Promise<"adopted" | "late">;
  /**
   * Makes one machine count as installed. It keeps everything that it has spent.
   * @param group empty for none. @param isListed true if one Machine lists the identities.
   */
  adoptMachine(
    identities: readonly string[],
    group: string,
    isListed: boolean,
  ): Promise<"adopted" | "ambiguous" | "full" | "late">;
  /**
   * Makes one machine count as never installed. That opens nothing: the machine spends every grant that is open.
   * `closed` means that the machine keeps an entry because of such grants.
   */
  forget(identities: readonly string[]): Promise<"forgotten" | "closed" | "unknown" | "crowded" | "late">;
}
