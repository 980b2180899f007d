/** What a Group's user reads of the other Groups that want its machines. Pure; equal standings give equal texts. */

import type { Group } from "../model/group.ts";
import type { Condition } from "../model/source.ts";
import type { Standing } from "./ranking.ts";

// A message is for a person, and a hundred namespaces may claim one machine.
const maxNames = 5;

/** One for all of the Groups that have none. */
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
        `Of several namespaces, ${namesOf(standing.others)} and this Group have the same selector and priority: ` +
          "their machines are answered 500 until one of them changes",
      );
  }
}

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
    : "has the same selector and priority, and the first name wins";
}

function namesOf(ids: readonly string[]): string {
  const shown = ids.slice(0, maxNames).map((id) => `Group "${id}"`);
  return [...shown, ...(ids.length > maxNames ? ["others"] : [])].join(", ");
}
