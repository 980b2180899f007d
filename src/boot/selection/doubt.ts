/** The reasons why davit refuses an Install for the moment. */

import type { Staleness } from "./freshness.ts";

/** A doubt about one Group and its Profile, or a common doubt, which holds for every Profile that installs. */
export type Doubt = keyof typeof doubtTexts;
export type CommonDoubt = Staleness | "half" | "changing" | "unreadable";

/** Each doubt's text for people. The texts are fixed, so they quote nothing from an object or a request. */
export const doubtTexts = {
  outdatedGroup:
    "the Group's newest version is refused, it may be deleted, or an unreadable Group may select this machine",
  flawedGroup: "with the Group's newest version, a config of its Profile fails",
  refusedMachine: "the newest version of the machine's Machine is refused",
  leavingMachine: "no readable part of the source defines the machine's Machine any more",
  goneMachine: "a Machine of this uuid or mac was removed or changed a moment ago, and may return",
  outdatedProfile:
    "the Profile's newest version is refused, invalid or only partly read, or it or one of its texts may be deleted",
  identity: "a label that names the machine cannot be read, and Groups select by it",
  otherMachine: "the ledger knows the uuid or the mac of this machine as that of another machine",
  unknownReports: "this davit's copy of the ledger may be old, and Groups may select by what the machine has reported",
  otherReports: "the ledger knows a label that another identity of its Machine has reported, and that does not count",
  namesakes: "another Group of this priority names the machine by another label or card, and gives something else",
  settling: "a complete list came less than 10 s ago, and Groups that name machines may still be on their way",
  half: "part of the source cannot be read, and may hold an object of this machine",
  changing:
    "objects are changing, and nothing installs until davit has taken in all changes: see the log if this lasts",
  unreadable: "a document of the store is of a later davit: upgrade this one",
  unconfirmed: "no source has confirmed the served objects since the start",
  stale: "the last confirmation by the source is older than --max-staleness",
} as const;

interface DoubtDetails {
  /** The age of the last proof (`Freshness.ageSeconds`); undefined if it is not known. */
  readonly ageSeconds: number | undefined;
  /** The text of the Group's flaw. */
  readonly flaw?: string | undefined;
}

export function doubtText(doubt: Doubt, { ageSeconds, flaw }: DoubtDetails): string {
  if (doubt === "flawedGroup") return `${doubtTexts.flawedGroup}: ${flaw}`;
  if (doubt !== "stale" || ageSeconds === undefined) return doubtTexts[doubt];
  return `${doubtTexts.stale}: ${Math.round(ageSeconds)} s ago`;
}

/** The doubts that hold for every Profile that installs, for metrics. */
export const commonDoubts: readonly CommonDoubt[] = ["half", "changing", "unreadable", "unconfirmed", "stale"];
