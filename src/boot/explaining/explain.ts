/**
 * Explains in words why a machine gets its config: which Group wins, which Groups match and lose, and which nearly
 * match. The boot index decides the winner, as for a boot. This file only finds out why the others lose.
 */

import { shown } from "../../lib/text/visible.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { Group } from "../../model/objects/group.ts";
import type { SpentGrant, Verdict } from "../../model/permits/permit.ts";
import { type BootRefusal, bootRefusals, permitRefusals } from "../../model/refusals.ts";
import { type Advantage, advantageOf, isRival, isSameNamespace } from "../../model/selection/contest.ts";
import { missText } from "../../model/selection/wants.ts";
import type { BootError } from "../core/boot-error.ts";
import type { BootGroup } from "../core/known-documents.ts";
import type { BootSnapshot } from "./boot-snapshot.ts";
import { type Contenders, unmetWants } from "./contenders.ts";

/** A Group as people know it. */
export interface NamedGroup {
  /** The Group's `namespace/name`. */
  readonly group: string;
  /** `namespace/name` of its Profile. That Profile may not exist. */
  readonly profile: string;
  /** The selector as text, cut if it is long; `matchAll` for a Group without a selector. */
  readonly selector: string;
  readonly priority: number;
}

export interface Loser extends NamedGroup {
  readonly lost: string;
}

export interface NearMiss extends NamedGroup {
  /** What the Group wants and the machine lacks, each as `wants zone=a, request has zone=b`. */
  readonly misses: readonly string[];
}

export interface Explanation {
  /** The winning Group, even if davit refuses its machines. Undefined if no Group wins, or none is known yet. */
  readonly chosen: NamedGroup | undefined;
  /** The effect of that Group's Profile on disks. Undefined if the Profile sets none, or is missing. */
  readonly effect?: "Install" | "Boot" | undefined;
  /** The refusal by selection, whatever the Profile contains; undefined if selection gives the machine a Profile. */
  readonly refused:
    | {
        readonly reason: BootRefusal;
        readonly meaning: string;
        /** Only for a doubtful Install: the doubt. */
        readonly doubt?: string;
      }
    | undefined;
  /** The Groups that match and lose, in the order of `compareGroups`. */
  readonly losers: readonly Loser[];
  /** How many more Groups match and lose. */
  readonly moreLosers: number;
  /** Groups that do not match, the nearest one first. */
  readonly nearest: readonly NearMiss[];
  /** How many more Groups do not match. */
  readonly moreOthers: number;
}

/** Explains a selection in words. */
export function explain(
  { chosen, effect, refusal }: Pick<BootSnapshot, "chosen" | "effect" | "refusal">,
  labels: Labels,
  contenders: Contenders<BootGroup>,
): Explanation {
  const losing = chosen === undefined ? [] : contenders.matching.filter(({ id }) => id !== chosen.id);
  const winners = chosen === undefined ? 0 : 1;
  return {
    chosen: chosen && named(chosen),
    effect,
    refused: refusal && refusedFor(refusal),
    losers: losing.map((group) => ({
      ...named(group),
      lost:
        chosen === undefined
          ? ""
          : lostBy({ loser: group, winner: chosen, labels, isTied: refusal?.reason === "tied" }),
    })),
    moreLosers: contenders.matchingCount - winners - losing.length,
    nearest: contenders.nearest.map((group) => ({ ...named(group), misses: missesOf(group, labels) })),
    moreOthers: contenders.otherCount - contenders.nearest.length,
  };
}

/** Returns what a Group wants and the machine lacks, each as `wants zone=a, request has zone=b`. */
export function missesOf(group: Group, labels: Labels): readonly string[] {
  return unmetWants(group, labels).map((want) => missText(want, labels));
}

function refusedFor({ reason, problem }: BootError): Explanation["refused"] {
  const doubt = (reason === "doubtful" || reason === "changing") && problem !== undefined ? { doubt: problem } : {};
  return { reason, meaning: bootRefusals[reason].meaning, ...doubt };
}

interface Loss {
  readonly loser: Group;
  readonly winner: Group;
  readonly labels: Labels;
  /** True if no Group got the machine. */
  readonly isTied: boolean;
}

/** Returns why a matching Group loses to the winner: between namespaces, or by `compareGroups`. */
function lostBy({ loser, winner, labels, isTied }: Loss): string {
  const isRivalry = isRival(winner, loser);
  if (isSameNamespace(winner, loser)) return isRivalry ? tiedWith : lostByOrder(loser, winner);
  if (!isRivalry && !winner.isTenant && !loser.isTenant) return lostByOrder(loser, winner);
  const advantage = advantageOf(winner, loser, labels);
  return advantage === "third" && isTied ? tiedWith : lossBy[advantage];
}

const tiedWith = "as much right to the machine, and another outcome";

const lossBy: Readonly<Record<Advantage, string>> = {
  rank: "the winner comes first in the order between namespaces",
  claim: "as much right to the machine, and a later claim",
  third: "a third Group comes before it",
};

/** Returns the first rule of `compareGroups` by which the two differ. */
function lostByOrder(loser: Group, winner: Group): string {
  if (loser.priority !== winner.priority) {
    return `lower priority: ${loser.priority}, the winner has ${winner.priority}`;
  }
  const [few, many] = [loser.requirementCount, winner.requirementCount];
  if (few !== many) return `fewer labels: ${few}, the winner has ${many}`;
  if (loser.expressions.length !== winner.expressions.length) {
    return "as many labels, but more of them are expressions: a label of matchLabels comes first";
  }
  if (loser.selectorText !== winner.selectorText) return "as many labels; then the selector that sorts last wins";
  return "same selector and priority, and gives the same";
}

function named({ id, profileId, selectorText, priority }: Group): NamedGroup {
  return {
    group: id,
    profile: profileId,
    selector: selectorText === "" ? "matchAll" : shown(selectorText),
    priority,
  };
}

/** Returns what a boot script would do to the machine's permit now. It quotes names of objects and no values. */
export function permitText(verdict: Verdict): string {
  switch (verdict.kind) {
    case "claim":
      return `open: the next boot installs the machine, and spends ${verdict.grants.map(grantText).join(" and ")}`;
    case "granted": {
      const { grant } = verdict.entry;
      return `claimed: the machine spent ${grant === undefined ? "a grant" : grantText(grant)}, and may ask again`;
    }
    case "disk": {
      const why = verdict.why === undefined ? "" : `: ${permitRefusals[verdict.why]}`;
      return `closed: the machine boots as spec.install.then of the Profile says${why}`;
    }
    case "refused":
      return `closed: ${permitRefusals[verdict.why]}`;
  }
}

function grantText({ key, generation }: SpentGrant): string {
  return `generation ${generation} of ${key}`;
}
