/** Why a machine gets no config. `http/errors.ts` alone turns a reason into a status. */

/** The reasons, each with the words that a machine's console shows: no names, no values, no paths. */
export const bootRefusals = {
  /** Nothing can be said yet: the store is not filled, or its source has not been heard in this run. */
  notReady: "not ready",
  noMatch: "no matching group",
  /** The group's Profile does not exist. Never the next group: an explicit choice is not second-guessed. */
  noProfile: "no profile",
  /** The group's Profile was removed a moment ago, and may be on its way back. */
  vanished: "profile removed a moment ago",
  /** The Profile has no such config, or says that the machine shall boot from its disk. */
  noPart: "no such config",
  held: "held",
  /** A Group that named the machine went a moment ago; its objects may still be on their way out, or back. */
  bereft: "group removed a moment ago",
  /** The group's newest version was refused and there is no older one. */
  refused: "group refused",
  /** davit serves an older version of the group's Profile, and the group gained these machines after it. */
  oldProfile: "profile outdated",
  /** davit failed on the group's Profile, and has no older version of it. */
  failed: "profile could not be prepared",
  /** Groups tie for the machine, so davit picks none. */
  tied: "groups tie",
  /** A label that names the machine is there, cannot be read, and Groups select by it. */
  unreadable: "identity not readable",
  /** A label that names the machine is there twice, with different values. */
  ambiguous: "identity ambiguous",
  /** The Profile overwrites disks, and it is not certain that the objects say so now. */
  doubtful: "install not certain",
  /** Part of the source is unreadable, and the answer could be one that the unreadable part overrides. */
  withheld: "withheld until every object is readable",
  /** Too many configs that take long to make wait already. */
  busy: "too many large configs are being made",
  /** A template, or what it yields, cannot be used. */
  broken: "config broken",
} as const;

export type BootRefusal = keyof typeof bootRefusals;

/** What is known of the asked config when it is refused; for logs. */
export interface BootErrorSubject {
  /** `namespace/name` of the group, when one was selected. */
  readonly group?: string;
  /** `namespace/name` of its Profile. */
  readonly profile?: string;
  /** What is wrong, in our own words, which quote no value. */
  readonly problem?: string;
  readonly cause?: unknown;
}

/** A machine is refused a config. */
export class BootError extends Error {
  override readonly name = "BootError";
  readonly reason: BootRefusal;
  readonly group: string | undefined;
  readonly profile: string | undefined;
  readonly problem: string | undefined;

  constructor(reason: BootRefusal, { group, profile, problem, cause }: BootErrorSubject = {}) {
    super(bootRefusals[reason], { cause });
    this.reason = reason;
    this.group = group;
    this.profile = profile;
    this.problem = problem;
  }
}
