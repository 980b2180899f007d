/** The steps between a request and the Group that its machine gets. */

import type { Labels } from "../../model/labels/labels.ts";
import { BootError } from "../core/boot-error.ts";
import type { BootGroup } from "../core/known-documents.ts";
import type { BootMachine, KnownMachines, SoleMachine } from "../core/known-machines.ts";

/** A request, with what selection knows of its machine. */
export interface LabelledRequest {
  /** The labels of the request. */
  readonly asked: Labels;
  /** The labels by which Groups select: see `mergedLabels`. */
  readonly labels: Labels;
  /** The Machine that takes part in selection. It is not held. */
  readonly sole: SoleMachine;
  /** The Group that wins; undefined if no Group matches. */
  readonly group: BootGroup | undefined;
}

/** A request whose Group nothing holds back. */
export interface ChosenGroup extends LabelledRequest {
  readonly group: BootGroup;
  readonly machine: BootMachine | undefined;
}

/** @throws {BootError} held or ambiguous. */
export function assertSole({ isHeld, isAmbiguous }: SoleMachine, group: BootGroup | undefined): void {
  if (!isHeld && !isAmbiguous) return;
  throw new BootError(isHeld ? "held" : "ambiguous", group && { group: group.id });
}

/**
 * Returns the Machine that counts for a Group. The Machines of tenants count only now; without any, the Machine is the
 * one that took part in selection.
 * @throws {BootError} held or ambiguous.
 */
export function soleFor({ asked, sole }: LabelledRequest, group: BootGroup, machines: KnownMachines): SoleMachine {
  if (!sole.hasOthers) return sole;
  const ofGroup = machines.soleOf(asked, namespaceOf(group));
  assertSole(ofGroup, group);
  return ofGroup;
}

export function namespaceOf({ id }: BootGroup): string {
  return id.slice(0, id.indexOf("/"));
}
