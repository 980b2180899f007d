/**
 * Makes the condition `Conflicted`, which reports other Groups that get a Group's machines. Pure: equal standings give
 * equal texts.
 */

import type { Group } from "../../model/objects/group.ts";
import type { Condition } from "../../model/objects/source.ts";
import type { Advantage } from "../../model/selection/contest.ts";
import type { Standing } from "./ranking.ts";

// During a rename both Groups exist. They do not tie if their machines get the same answers.
const renaming =
  "To rename a Group, create it under its new name with the same Profile, args, metadata and hold, " +
  "then delete the old one";

/** One object for all Groups without a conflict. */
const noConflict: Condition = {
  type: "Conflicted",
  status: "False",
  reason: "NoConflict",
  message: "No other Group takes all of its machines",
};

/** The condition `Conflicted` of a Group. */
export function conflictOf(group: Group, standing: Standing): Condition {
  switch (standing.kind) {
    case "free":
      return noConflict;
    case "shadowed":
      return conflicted(
        "SelectorOverlap",
        `Group "${standing.by.id}" ${whyItWins(standing.by, group)}: no machine gets this Group`,
      );
    case "tied":
      return conflicted(
        "SelectorTie",
        `Group "${standing.with.id}" selects machines of this Group by the same keys and operators, with equal ` +
          `priority, and gives them something else: they are answered 503. Change one of the two. ${renaming}`,
      );
    case "outclaimed":
      return conflicted(
        "ClaimedBefore",
        `Group "${standing.by.id}" of another namespace selects machines of this Group, and ` +
          `${whyItComesFirst[standing.because]}: they do not get this Group`,
      );
  }
}

const whyItComesFirst: Readonly<Record<Advantage, string>> = {
  claim: "its claim to them comes first",
  rank: "it comes first in the order between namespaces",
  third: "a third Group comes before this one",
};

function conflicted(reason: string, message: string): Condition {
  return { type: "Conflicted", status: "True", reason, message };
}

function whyItWins(winner: Group, group: Group): string {
  if (winner.selectorText !== group.selectorText) {
    const why = winner.priority > group.priority ? "has a higher priority" : "comes first in the order of Groups";
    return `selects every machine that this one selects and ${why}`;
  }
  return winner.priority > group.priority
    ? "has the same selector and a higher priority"
    : "has the same selector and priority, and gives the same";
}
