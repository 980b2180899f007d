/** Recognises the machine of a request among the entries of the ledger. Pure. */

/** The members of a `LedgerEntry` that matter here. */
interface Identified {
  readonly identities: readonly string[];
}

/** The members of a `PermitAsk` that matter here. */
interface IdentifiedAsk {
  readonly identities: readonly string[];
  readonly listed?: readonly string[];
}

/** As in `LedgerView`. */
interface EntriesByIdentity<Entry> {
  entriesOf(identities: readonly string[]): readonly Entry[];
}

/** What the ledger knows of the machine of a request. */
interface Recognition<Entry extends Identified> {
  /** False if the machine may be another one than that of the entries. Then it claims nothing, and no label counts. */
  readonly isClear: boolean;
  /** The entries of the machine: one or none, or several that a Machine joins. */
  readonly entries: readonly Entry[];
}

/**
 * Recognises the machine of a request. An entry counts only for identities that a Machine lists, or that the entry has:
 * those of its claim or of its adoption. Nothing else joins two identities, because anybody can send both.
 *
 *   request    Machine lists   entries           it is clear
 *   u1, m1     -               -                 true: a new machine
 *   u1, m1     -               {u1,m1}           true
 *   m1         -               {u1,m1}           true
 *   u1, m1     -               {m1}              false: no entry has u1
 *   u1, m1     -               {u1,m2}           false
 *   u1, m1     m1              {m1}              true: the Machine lists m1, and no entry has u1
 *   u1, m1     m1              {m1}, {u1}        false
 *   u1, m1     m1              {u2,m1}           false
 *   u1, m1     u1, m1, m2      {u1}, {m1}, {m2}  true
 */
export function recognised<Entry extends Identified>(
  { identities, listed }: IdentifiedAsk,
  ledger: EntriesByIdentity<Entry>,
): Recognition<Entry> {
  if (listed !== undefined) return recognisedByMachine(identities, listed, ledger);
  const entries = ledger.entriesOf(identities);
  const [entry, ...others] = entries;
  const isOf = (known: Entry) => identities.every((identity) => known.identities.includes(identity));
  return { isClear: entry === undefined || (others.length === 0 && isOf(entry)), entries };
}

/** The Machine joins what it lists. It says nothing of another identity of the request. */
function recognisedByMachine<Entry extends Identified>(
  identities: readonly string[],
  listed: readonly string[],
  ledger: EntriesByIdentity<Entry>,
): Recognition<Entry> {
  const entries = ledger.entriesOf(listed);
  const others = identities.filter((identity) => !listed.includes(identity));
  const known = entries.flatMap((entry) => entry.identities);
  const isClear =
    ledger.entriesOf(others).every((entry) => entries.includes(entry)) &&
    others.every((other) => known.includes(other) || !known.some((own) => kindOf(own) === kindOf(other)));
  return { isClear, entries };
}

/** Returns `uuid` or `mac`. */
function kindOf(identity: string): string {
  return identity.slice(0, identity.indexOf("/"));
}
