/** Finds why one Group and its Profile may be wrong for a machine. */

import { isAlike, isSameOutcome } from "../../model/contest.ts";
import { matches } from "../../model/group.ts";
import type { LabelFlaws } from "../../model/labels.ts";
import type { SelectorIndex } from "../../model/selector-index.ts";
import type { BootGroup, BootProfile, KnownDocuments } from "../core/known-documents.ts";
import type { Doubt } from "./doubt.ts";
import { type ChosenGroup, namespaceOf } from "./selection.ts";

/** Returns the doubt about the objects of one machine; undefined if there is none. */
export function doubtOf(
  chosen: ChosenGroup,
  profile: BootProfile,
  known: KnownDocuments,
  selectors: SelectorIndex<BootGroup>,
): Doubt | undefined {
  const { group, machine, asked, labels } = chosen;
  if (machine?.isRefused === true) return "refusedMachine";
  if (machine?.isLeaving === true) return "leavingMachine";
  if (known.machines.hasGone(asked, namespaceOf(group))) return "goneMachine";
  if (group.flaw !== undefined) return "flawedGroup";
  if (group.isOutdated || mayBeGone(chosen, selectors)) return "outdatedGroup";
  if (profile.isOutdated) return "outdatedProfile";
  if (labels.flaws !== undefined && mayMatter(labels.flaws, known, selectors)) return "identity";
  if (selectors.namesakesOf(group, labels).some((other) => !isSameOutcome(group, other))) return "namesakes";
  return undefined;
}

/**
 * True for a Group that nothing in the source defines any more, unless another Group that is alike and has the same
 * outcome selects the machine. A user who renames a Group can create the new one before deleting the old one.
 */
function mayBeGone({ group, labels }: ChosenGroup, selectors: SelectorIndex<BootGroup>): boolean {
  if (!group.isLeaving) return false;
  const stays = (other: BootGroup) => !other.isLeaving && isAlike(group, other) && isSameOutcome(group, other);
  const isCopy = (other: BootGroup) => stays(other) && matches(other, labels);
  return !selectors.listsFor(labels).some((groups) => groups.some(isCopy));
}

/** True if a Group selects by one of the unreadable labels, or a Group that was removed a moment ago did. */
export function mayMatter(
  { unreadable }: LabelFlaws,
  known: Pick<KnownDocuments, "hasTombstones">,
  selectors: Pick<SelectorIndex<BootGroup>, "speaksOf">,
): boolean {
  return [...unreadable].some((label) => selectors.speaksOf(label) || known.hasTombstones(label));
}
