/** The steps between a request and the Group that its machine gets. */

import type { Labels } from "../../model/labels/labels.ts";
import { BootError } from "../core/boot-error.ts";
import type { BootGroup } from "../core/known-documents.ts";
import type { BootMachine, SoleMachine } from "../core/known-machines.ts";

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

/** @throws {BootError} held. */
export function assertFree({ isHeld }: SoleMachine, group: BootGroup | undefined): void {
  if (isHeld) throw new BootError("held", group && { group: group.id });
}

/** @throws {BootError} held or ambiguous. */
export function assertSole(sole: SoleMachine, group: BootGroup | undefined): void {
  assertFree(sole, group);
  if (sole.isAmbiguous) throw new BootError("ambiguous", group && { group: group.id });
}

export function namespaceOf({ id }: BootGroup): string {
  return id.slice(0, id.indexOf("/"));
}
