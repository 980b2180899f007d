/**
 * Explains in words why a machine gets its config: which Group wins, which Groups match and lose, and which nearly
 * match. The boot index decides the winner, as for a boot. This file only finds out why the others lose.
 */

import { shown } from "../../lib/text/visible.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { Group } from "../../model/objects/group.ts";
import { type Advantage, advantageOf, isRival, isSameNamespace } from "../../model/selection/contest.ts";
import { missText } from "../../model/selection/wants.ts";
import type { BootError, BootRefusal } from "../core/boot-error.ts";
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
  return { reason, meaning: refusalMeanings[reason], ...doubt };
}

/** The text of each refusal, for people. */
const refusalMeanings: Readonly<Record<BootRefusal, string>> = {
  notReady: "the first list of objects is not there yet, every machine waits",
  noMatch: "no Group matches",
  noProfile: "the Profile that the Group names does not exist, and no other Group takes its place",
  vanished: "the Profile that the Group names was removed a moment ago: its machines wait, and get 404 later",
  noPart: "the Profile has no such config",
  held: "the Group says hold: its machines wait until it is released",
  bereft: "a Group that selected this machine was removed or changed a moment ago: the machine waits",
  refused: "the newest version of the Group is refused, and no older one agrees with it: its machines wait",
  oldProfile:
    "the newest version of the Profile is not taken over, and the older one is not for machines that came later: " +
    "they wait",
  failed: "davit could not prepare the Profile, and has no older version of it: its machines wait",
  tied: "Groups match with as much right and give something else, and none of them is picked: the machine waits",
  unreadable: "a label that names the machine cannot be read, and Groups select by it: the machine waits",
  ambiguous: "a label that names the machine comes twice with different values: the machine waits",
  doubtful: "the Profile installs, and davit cannot be certain that the objects say so now: the machine waits",
  changing: "the Profile installs, and objects are changing: the machine waits until davit has taken in all changes",
  unapproved: "the Group serves approved Machines alone, and this machine has none: it waits for its approval",
  noPermit: "the Profile installs only with a permit, and the machine has none: it waits",
  late: "the ledger did not log the permit in time, or the objects changed meanwhile: the machine asks again",
  assetMissing: "davit does not have a file that the script names: the machine waits, and spends no permit",
  withheld: "part of the source cannot be read and may hold this machine's own Group or its Profile: it waits",
  needsTls: "the Profile or Group demands HTTPS for its configs (requireTls), and the machine asks by HTTP",
  noTls: "the Profile or Group demands HTTPS (requireTls), and this davit has no --boot-tls-address: the machine waits",
  busy: "too many configs that take long to make wait already: the machine asks again",
  undecryptable: "davit cannot decrypt the text of a Secret: it lacks the key, or the stored text was changed",
  broken: "a template, or what it yields, cannot be used",
};

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
  if (loser.selectorText !== winner.selectorText) return "as many labels, and its selector sorts before the winner's";
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
