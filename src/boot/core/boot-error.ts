/** Why a machine gets no config. Only `http/errors.ts` turns a reason into a status. */

/** The reasons, each with the words that a machine's console shows: no names, no values, no paths. */
export const bootRefusals = {
  /** The store has no sync yet, davit has not heard from the source since its start, or davit is stopping. */
  notReady: "not ready",
  noMatch: "no matching group",
  /** The group's Profile does not exist. No other group takes over: davit does not overrule an explicit choice. */
  noProfile: "no profile",
  /** The group's Profile was removed a moment ago, and may return. */
  vanished: "profile removed a moment ago",
  /** The Profile lacks the requested config, or boots machines from their own disks. */
  noPart: "no such config",
  held: "held",
  /** A Group that selected the machine was removed or changed a moment ago. More changes may follow soon. */
  bereft: "group removed a moment ago",
  /** The group's newest version was refused. No older version selects the same machines for the same Profile. */
  refused: "group refused",
  /** davit serves an older version of the group's Profile, and this machine never got that version from the group. */
  oldProfile: "profile outdated",
  /** davit failed to prepare the group's Profile, and has no older version of it. */
  failed: "profile could not be prepared",
  /** Groups tie for the machine, and davit picks none of them. */
  tied: "groups tie",
  /** A label that names the machine cannot be read, and a Group selects by that label. */
  unreadable: "identity not readable",
  /** A label that names the machine occurs twice, with different values. */
  ambiguous: "identity ambiguous",
  /** The Profile overwrites disks, and davit cannot prove that the machine should install now. */
  doubtful: "install not certain",
  /** The Profile overwrites disks, and the source has changes that davit has not taken in yet. */
  changing: "objects are changing",
  /** The Group wants an approved Machine object, and there is none for the machine. */
  unapproved: "machine not approved",
  /** The Profile installs only with a permit, and the machine has none. */
  noPermit: "no permit to install",
  /** The ledger could not log the claim of a permit in time, or the objects changed meanwhile. */
  late: "permit not logged yet",
  /** davit does not have a file that the script of an install names. The text ends with its path. */
  assetMissing: "asset missing",
  /** Part of the source is unreadable, and an object in that part could change the answer. */
  withheld: "withheld until every object is readable",
  /** The Profile or Group demands HTTPS for its configs, and the machine asks by HTTP. */
  needsTls: "only by HTTPS",
  /** The Profile or Group demands HTTPS for its configs, and davit does not listen for it. */
  noTls: "davit does not listen for HTTPS",
  /** Too many slow configs already wait for the thread that makes them, or the objects changed during each attempt. */
  busy: "too many large configs are being made",
  /** davit cannot decrypt the text of a Secret: it lacks the key, or the stored text was changed. */
  undecryptable: "config not decryptable",
  /** A template or its result cannot be used. */
  broken: "config broken",
} as const;

export type BootRefusal = keyof typeof bootRefusals;

/** What davit knows of a refused config, for logs. */
export interface BootErrorSubject {
  /** Only for assetMissing: the path of the file, which the machine's console shows. It has no query. */
  readonly asset?: string;
  /** The group's `namespace/name`, if one was selected. */
  readonly group?: string;
  /** The Profile's `namespace/name`. */
  readonly profile?: string;
  /** The problem in davit's own words. It can name fields and variables, but it never quotes their values. */
  readonly problem?: string;
  readonly cause?: unknown;
}

/** davit refuses a config to a machine. */
export class BootError extends Error {
  override readonly name = "BootError";
  readonly reason: BootRefusal;
  readonly group: string | undefined;
  readonly profile: string | undefined;
  readonly problem: string | undefined;
  readonly asset: string | undefined;

  constructor(reason: BootRefusal, { group, profile, problem, asset, cause }: BootErrorSubject = {}) {
    super(asset === undefined ? bootRefusals[reason] : `${bootRefusals[reason]}: ${asset}`, { cause });
    this.reason = reason;
    this.group = group;
    this.profile = profile;
    this.problem = problem;
    this.asset = asset;
  }
}
