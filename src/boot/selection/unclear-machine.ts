/** What a machine gets while its Machine is ambiguous: its disk, if the ledger has it as installed. */

import { identitiesOf } from "../../model/objects/machine.ts";
import { type InstallPlan, verdictOf } from "../../model/permits/permit.ts";
import { BootError } from "../core/boot-error.ts";
import type { BootGroup, KnownDocuments } from "../core/known-documents.ts";
import type { BootLedger, Candidate } from "../core/selected.ts";
import { askOf, type DiskBoots } from "./gate.ts";
import type { LabelledRequest } from "./selection.ts";

interface Surroundings {
  readonly known: Pick<KnownDocuments, "profiles" | "machines">;
  readonly ledger: BootLedger | undefined;
  readonly disks: DiskBoots;
}

/**
 * Returns the disk for an installed machine. It may have a new board or network card, and must not wait for ever. Its
 * question can claim nothing.
 * @param plan of the Group's Profile, if the machine asks for a script.
 * @throws {BootError} ambiguous for all other machines, and if a barrier of the Group or a missing approval makes it
 *   wait.
 */
export function unclearDisk(
  { asked, group }: LabelledRequest,
  plan: InstallPlan | undefined,
  { known, ledger, disks }: Surroundings,
): Candidate {
  const profile = group && known.profiles.get(group.profileId);
  const isKnown = ledger !== undefined && ledger.entriesOf(identitiesOf(asked)).length > 0;
  if (group && profile && plan && isKnown && mayBoot(group, asked, known)) {
    const machine = { group, profile };
    const ask = { ...askOf(machine, { labels: asked, machine: undefined }, "script", plan), grants: [] };
    if (verdictOf(ask, ledger).kind === "disk") return { machine: disks.of(machine, plan), ask, isDisk: true };
  }
  throw new BootError("ambiguous", group && { group: group.id });
}

function mayBoot(
  { barrier, permits }: BootGroup,
  asked: LabelledRequest["asked"],
  { machines }: Surroundings["known"],
): boolean {
  if (barrier !== undefined) return false;
  return permits?.approval === undefined || machines.of(asked).some(({ isApproved }) => isApproved);
}
