/**
 * The catalogue of refusals: why a machine gets no config, and why its install waits. Answers, previews, logs, metrics,
 * the history and the console read it. No text quotes a name, a value or a path.
 */

interface RefusalRow {
  /** Of the answer. A machine retries after a 503; after a 404 it goes on to its next boot device. */
  readonly status: number;
  /** The pause before the machine asks again, after a 503. */
  readonly retrySeconds: number;
  /** What the console shows of the machine; undefined for a request that a machine may make in vain. */
  readonly state: "failed" | "waiting" | "held" | "unknown" | undefined;
  /** What the machine's own screen shows. */
  readonly words: string;
  /** For people. */
  readonly meaning: string;
}

// Long enough to limit the load, and short enough for a person who watches.
const usual = { status: 503, retrySeconds: 5 } as const;

/** The machine waits until the objects, the source or davit change. */
function waits(words: string, meaning: string, more: Partial<RefusalRow> = {}): RefusalRow {
  return { ...usual, state: "waiting", words, meaning, ...more };
}

/** Somebody has to correct something. */
function fails(words: string, meaning: string, more: Partial<RefusalRow> = {}): RefusalRow {
  return { ...usual, state: "failed", words, meaning, ...more };
}

/** Why a machine gets no config. The history stores the names of these reasons. */
export const bootRefusals = {
  /** Also while davit stops, and while it has not heard from the source since its start. */
  notReady: waits("not ready", "the first list of objects is not there yet, every machine waits"),
  noMatch: fails("no matching group", "no Group matches", { status: 404, state: "unknown" }),
  /** No other Group takes over: davit does not overrule an explicit choice. */
  noProfile: fails(
    "no profile",
    "the Profile that the Group names does not exist, and no other Group takes its place",
    { status: 404 },
  ),
  vanished: waits(
    "profile removed a moment ago",
    "the Profile that the Group names was removed a moment ago: its machines wait, and get 404 later",
  ),
  /** Also if the Profile boots machines from their own disks. Machines ask for configs that a Profile need not have. */
  noPart: fails("no such config", "the Profile has no such config", { status: 404, state: undefined }),
  held: waits("held", "the Group says hold: its machines wait until it is released", { state: "held" }),
  bereft: waits(
    "group removed a moment ago",
    "a Group that selected this machine was removed or changed a moment ago: the machine waits",
  ),
  refused: fails(
    "group refused",
    "the newest version of the Group is refused, and no older one agrees with it: its machines wait",
  ),
  /** The machine never got the served version of the Profile from its Group. */
  oldProfile: fails(
    "profile outdated",
    "the newest version of the Profile is not taken over, and the older one is not for machines that came later: " +
      "they wait",
  ),
  failed: fails(
    "profile could not be prepared",
    "davit could not prepare the Profile, and has no older version of it: its machines wait",
  ),
  tied: fails(
    "groups tie",
    "Groups match with as much right and give something else, and none of them is picked: the machine waits",
  ),
  unreadable: fails(
    "identity not readable",
    "a label that names the machine cannot be read, and Groups select by it: the machine waits",
  ),
  ambiguous: fails(
    "identity ambiguous",
    "a label that names the machine comes twice with different values: the machine waits",
  ),
  /** See `doubts`. */
  doubtful: waits(
    "install not certain",
    "the Profile installs, and davit cannot be certain that the objects say so now: the machine waits",
  ),
  changing: waits(
    "objects are changing",
    "the Profile installs, and objects are changing: the machine waits until davit has taken in all changes",
  ),
  unapproved: waits(
    "machine not approved",
    "the Group serves approved Machines alone, and this machine has none: it waits for its approval",
  ),
  /** See `permitRefusals`. */
  noPermit: waits(
    "no permit to install",
    "the Profile installs only with a permit, and the machine has none: it waits",
  ),
  // The ledger logs a claim within a second. GRUB still waits the usual time: its script keeps the first pause,
  // whatever the reasons of later answers.
  late: waits(
    "permit not logged yet",
    "the ledger did not log the permit in time, or the objects changed meanwhile: the machine asks again",
    { retrySeconds: 1 },
  ),
  /** The words end with the path of the file. */
  assetMissing: waits(
    "asset missing",
    "davit does not have a file that the script names: the machine waits, and spends no permit",
  ),
  withheld: waits(
    "withheld until every object is readable",
    "part of the source cannot be read and may hold this machine's own Group or its Profile: it waits",
  ),
  needsTls: fails(
    "only by HTTPS",
    "the Profile or Group demands HTTPS for its configs (requireTls), and the machine asks by HTTP",
    { status: 403 },
  ),
  noTls: fails(
    "davit does not listen for HTTPS",
    "the Profile or Group demands HTTPS (requireTls), and this davit has no --boot-tls-address: the machine waits",
  ),
  /** Also if the objects changed during each attempt. */
  busy: waits(
    "too many large configs are being made",
    "too many configs that take long to make wait already: the machine asks again",
  ),
  undecryptable: fails(
    "config not decryptable",
    "davit cannot decrypt the text of a Secret: it lacks the key, or the stored text was changed",
  ),
  // Ignition retries for ever after a 500. After a lower error status it enters its emergency shell.
  broken: fails("config broken", "a template, or what it yields, cannot be used", { status: 500 }),
} as const satisfies Readonly<Record<string, RefusalRow>>;

export type BootRefusal = keyof typeof bootRefusals;

const rows: Readonly<Record<string, RefusalRow>> = bootRefusals;

/** Returns the row of a reason that any version of davit wrote; undefined if this one does not know it. */
export function refusalRow(reason: string): RefusalRow | undefined {
  return Object.hasOwn(rows, reason) ? rows[reason] : undefined;
}

/** Why an install is `doubtful` or `changing`, with the text for people. */
export const doubts = {
  refusedMachine: "the newest version of the machine's Machine is refused",
  leavingMachine: "no readable part of the source defines the machine's Machine any more",
  goneMachine: "a Machine of this uuid or mac was removed or changed a moment ago, and may return",
  flawedGroup: "with the Group's newest version, a config of its Profile fails",
  outdatedGroup:
    "the Group's newest version is refused, it may be deleted, or an unreadable Group may select this machine",
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
  stale: "the last confirmation by the source is older than --install-max-source-age",
} as const;

export type Doubt = keyof typeof doubts;

/** The doubts that hold for every Profile that installs, for metrics. */
export const commonDoubts = ["half", "changing", "unreadable", "unconfirmed", "stale"] as const satisfies Doubt[];
export type CommonDoubt = (typeof commonDoubts)[number];

interface DoubtDetails {
  /** The age of the last proof (`Freshness.ageSeconds`); undefined if it is not known. */
  readonly ageSeconds: number | undefined;
  /** The text of the Group's flaw. */
  readonly flaw?: string | undefined;
}

export function doubtText(doubt: Doubt, { ageSeconds, flaw }: DoubtDetails): string {
  if (doubt === "flawedGroup") return `${doubts.flawedGroup}: ${flaw}`;
  if (doubt !== "stale" || ageSeconds === undefined) return doubts[doubt];
  return `${doubts.stale}: ${Math.round(ageSeconds)} s ago`;
}

/** Why a machine may not install, with the text for people. The texts quote nothing of an object or a request. */
export const permitRefusals = {
  noLedger: "davit knows no ledger yet",
  noDesk: "this davit asks no ledger for permits",
  noIdentity: "the machine sends neither a uuid of its own nor a mac",
  ambiguousIdentity:
    "its uuid and its mac are known as different machines, or only one of them is known: list both in one Machine",
  noGrant: "no spec.install of its Group or its Machine grants an install",
  noLedgerNamed: "spec.install.ledger is missing: the grant is asleep",
  otherLedger: "spec.install.ledger names another ledger: the grant is asleep",
  noUntil: "spec.install.until is missing: the grant is asleep",
  tooFarAhead: "spec.install.until is more than seven days ahead, so the grant is asleep: set an earlier until",
  ended: "spec.install.until is over: raise the generation and set a later until",
  spent: "the machine has spent this generation: raise it to install again",
  installed: "the machine is installed, and spec.install.scope is NeverInstalled",
  withdrawn: "the grant that the machine has claimed is no longer in the objects",
  notClaimed: "the machine has not claimed an install by a boot script",
  over: "the machine's install is over",
  otherProfile:
    "the machine's install began with another Profile, or before this one changed: raise the generation to install " +
    "by this one",
  otherGroup: "the machine's install began in another Group: raise the generation of this one to install by it",
  noAddress: "the text is only for the address that has claimed the install, and one of the two is not known",
  otherAddress: "the text is only for the address that has claimed the install, and another one asks",
  closed: "another address has asked for the text: it is closed until the next install",
  full: "the ledger has no room for another machine",
} as const;
export type PermitRefusal = keyof typeof permitRefusals;
