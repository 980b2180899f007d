/** Why a machine gets no config. Only `http/errors.ts` turns a reason into a status. */

/** The reasons, each with the words that a machine's console shows: no names, no values, no paths. */
export const bootRefusals = {
  /** The store is not filled yet, or its source has not been heard in this run. */
  notReady: "not ready",
  noMatch: "no matching group",
  /** The group's Profile does not exist. No other group takes over: davit does not overrule an explicit choice. */
  noProfile: "no profile",
  /** The group's Profile was just removed, and may return. */
  vanished: "profile removed a moment ago",
  /** The Profile has no such config, or makes the machine boot from its disk. */
  noPart: "no such config",
  held: "held",
  /** A Group that named the machine was just removed; its objects may still be changing. */
  bereft: "group removed a moment ago",
  /** The group's newest version was refused and there is no older one. */
  refused: "group refused",
  /** davit serves an older version of the group's Profile, and the group gained these machines after it. */
  oldProfile: "profile outdated",
  /** davit failed on the group's Profile, and has no older version of it. */
  failed: "profile could not be prepared",
  /** Groups tie for the machine, so davit picks none. */
  tied: "groups tie",
  /** A label that names the machine cannot be read, and Groups select by it. */
  unreadable: "identity not readable",
  /** A label that names the machine occurs twice, with different values. */
  ambiguous: "identity ambiguous",
  /** The Profile overwrites disks, and davit cannot be sure that the objects still say so. */
  doubtful: "install not certain",
  /** Part of the source is unreadable, and that part could override the answer. */
  withheld: "withheld until every object is readable",
  /** Too many slow configs wait already. */
  busy: "too many large configs are being made",
  /** A template or its result cannot be used. */
  broken: "config broken",
} as const;

export type BootRefusal = keyof typeof bootRefusals;

/** What is known of the requested config when it is refused; for logs. */
export interface BootErrorSubject {
  /** `namespace/name` of the group, when one was selected. */
  readonly group?: string;
  /** `namespace/name` of its Profile. */
  readonly profile?: string;
  /** The problem, in our own words, which quote no value. */
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
