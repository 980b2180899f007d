/** Why it is not certain that a machine should get a Profile that installs. */

import type { Staleness } from "./freshness.ts";

/** Of all Profiles that install, or of one and its Group. */
export type Doubt = CommonDoubt | "outdated" | "identity" | "settling";
export type CommonDoubt = Staleness | "half" | "unreadable";

/** For people: our own words, which quote nothing. */
export const doubtTexts: Readonly<Record<Doubt, string>> = {
  outdated:
    "the newest version of the Group or of its Profile is refused or not valid, or a refused Group may be this one",
  identity: "a label that names the machine cannot be read, and Groups select by it",
  settling: "the first complete list came a moment ago, and Groups that name machines may still be on their way",
  half: "part of the source cannot be read, and may hold an object of this machine",
  unreadable: "a document of the store is of a later davit: upgrade this one",
  unconfirmed: "no source has confirmed since the start what is served",
  stale: "the source was last heard longer ago than --max-staleness",
};

/** Those that hold for every Profile that installs, for metrics. */
export const commonDoubts: readonly CommonDoubt[] = ["half", "unreadable", "unconfirmed", "stale"];
