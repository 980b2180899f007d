/**
 * Remembers the grants of objects whose status shows whether they are open, and finds those that have opened or closed:
 * their `until` has passed, or the ledger has changed.
 */

import type { GroupDocument } from "../../model/objects/documents.ts";
import { listedMacs } from "../../model/objects/group.ts";
import { type Condition, type ObjectName, type ObjectStatus, objectKey } from "../../model/objects/source.ts";
import {
  grantRefusal,
  type InstallGrant,
  type LedgerEntry,
  type LedgerView,
  type NamedGrant,
  refusalFor,
} from "../../model/permits/permit.ts";
import { type PermitRefusal, permitRefusals } from "../../model/refusals.ts";
import { withConditions } from "../status/conditions.ts";

interface KnownGrant {
  readonly name: ObjectName;
  readonly grant: InstallGrant | undefined;
  readonly state: string;
}

export class Grants {
  readonly #ledger: LedgerView;
  readonly #known = new Map<string, KnownGrant>();

  constructor(ledger: LedgerView) {
    this.#ledger = ledger;
  }

  /** Records the grant that a status shows now. @param grant undefined for a status that shows that there is none. */
  note(name: ObjectName, grant: InstallGrant | undefined): void {
    this.#known.set(objectKey(name), { name, grant, state: this.#stateOf(name, grant) });
  }

  /** How many objects it remembers. */
  get size(): number {
    return this.#known.size;
  }

  forget(name: ObjectName): void {
    this.#known.delete(objectKey(name));
  }

  /** The objects whose status is no longer true. */
  changed(): readonly ObjectName[] {
    return [...this.#known.values()].flatMap(({ name, grant, state }) =>
      this.#stateOf(name, grant) === state ? [] : [name],
    );
  }

  /** Equal as long as the condition `Permitted` is equal. */
  #stateOf(name: ObjectName, grant: InstallGrant | undefined): string {
    const { id = "", isFull, trouble = "" } = this.#ledger;
    const named = namedGrant(name, grant ?? none);
    const why = grant === undefined ? "" : (grantRefusal(named, this.#ledger) ?? "open");
    return [id, why, isFull, trouble, this.#ledger.endedGeneration(named.key)].join("/");
  }
}

const none: InstallGrant = { generation: 0, scope: "NeverInstalled" };

/** The port to the ledger: what statuses show of it. The ledger's copy in this process implements it. */
export interface LedgerFacts extends LedgerView {
  /**
   * Calls the listener after each change. @param listener receives the entries that changed; undefined if anything may
   * have changed.
   * @returns a function that ends the calls.
   */
  onChange(listener: (entries: readonly LedgerEntry[] | undefined) => void): () => void;
}

/** Adds the condition `Permitted` to the status of a Group that grants an install, or whose Profile installs. */
export class GroupGrants {
  readonly #ledger: LedgerFacts | undefined;
  readonly #grants: Grants | undefined;

  /** @param ledger undefined if there is none to look at: then no status has the condition. */
  constructor(ledger: LedgerFacts | undefined) {
    this.#ledger = ledger;
    this.#grants = ledger && new Grants(ledger);
  }

  /** Groups whose status is no longer true, because the ledger has changed or time has passed. */
  changed(): readonly ObjectName[] {
    return this.#grants?.changed() ?? [];
  }

  /**
   * The status of a Group with the condition. It does not count for `Ready`: grants end by themselves.
   * @param document undefined for a Group that answers no machine.
   * @param installs true if the Profile has an `install`.
   */
  shown(
    id: ObjectName,
    status: ObjectStatus | undefined,
    document: GroupDocument | undefined,
    installs: boolean,
  ): ObjectStatus | undefined {
    const grant = document?.spec.install;
    if (status === undefined || document === undefined || (grant === undefined && !installs)) {
      this.#grants?.forget(id);
      return status;
    }
    if (this.#ledger === undefined) return status;
    this.#grants?.note(id, grant);
    const isServed = document.refused !== true && document.outdated !== true;
    const condition = isServed ? permittedCondition(id, grant, this.#ledger) : notAccepted;
    return { ...status, conditions: withConditions(status.conditions, [withCards(condition, document)]) };
  }
}

/** A grant for a list of MAC addresses says that each address counts. */
function withCards(condition: Condition, { spec }: GroupDocument): Condition {
  if (condition.status !== "True" || listedMacs(spec).length === 0) return condition;
  const text = "Each MAC address of the list counts as a machine, unless one Machine lists several of them";
  return { ...condition, message: `${condition.message}. ${text}` };
}

const notAccepted: Condition = {
  type: "Permitted",
  status: "False",
  reason: "NotAccepted",
  message: "No machine installs until davit accepts the newest version of the Group",
};

/** Returns a grant with its name in the ledger. */
export function namedGrant(id: ObjectName, grant: InstallGrant): NamedGrant {
  return { key: keyOf(id), grant };
}

/**
 * The condition `Permitted` of a Group or a Machine: whether its grant opens installs now, and if not, the command that
 * opens them. Texts have no times: a status stays equal until something changes.
 * @param grant undefined if the object grants no install.
 * @param machine the machine of a Machine: its entries and its Group.
 */
export function permittedCondition(
  id: ObjectName,
  grant: InstallGrant | undefined,
  ledger: LedgerView,
  machine: { readonly entries: readonly LedgerEntry[]; readonly group: string } | undefined = undefined,
): Condition {
  const named = grant && namedGrant(id, grant);
  if (named === undefined) return refusedCondition(id, "noGrant", named, ledger);
  if (ledger.trouble !== undefined) {
    return isFalse("Asleep", `The grant is asleep, because nothing installs: ${ledger.trouble}`);
  }
  const why = machine === undefined ? grantRefusal(named, ledger) : refusalFor(named, machine, ledger);
  if (why === undefined) {
    const isKnown = machine !== undefined && machine.entries.length > 0;
    return ledger.isFull && !isKnown ? isFalse("LedgerFull", noRoom) : openCondition(id, named.grant);
  }
  return refusedCondition(id, why, named, ledger);
}

function openCondition(id: ObjectName, { generation }: InstallGrant): Condition {
  const who = id.kind === "Machine" ? "The machine" : "Each machine of the Group";
  const message = `${who} may install once by generation ${generation}, until spec.install.until`;
  return { type: "Permitted", status: "True", reason: "Open", message };
}

function refusedCondition(
  id: ObjectName,
  why: PermitRefusal,
  named: NamedGrant | undefined,
  ledger: LedgerView,
): Condition {
  const reason = reasons[why] ?? "Asleep";
  const text = why === "noGrant" ? "spec.install grants no install" : permitRefusals[why];
  // A patch for an installed machine would name another scope: nobody should copy that by mistake.
  if (ledger.id === undefined || why === "installed") return isFalse(reason, text);
  const least = ledger.endedGeneration(keyOf(id)) + 1;
  const next = (named?.grant.generation ?? 0) + (raised.has(why) ? 1 : 0);
  return isFalse(reason, `${text}. To permit it: ${patchOf(id, Math.max(least, next), ledger.id)}`);
}

const noRoom = `${permitRefusals.full}: only machines that it knows may install. Forget machines that are gone`;

const reasons: Readonly<Partial<Record<PermitRefusal, string>>> = {
  noGrant: "NoGrant",
  ended: "Ended",
  tooFarAhead: "TooFarAhead",
  spent: "Spent",
  installed: "Installed",
};

// Refusals that end only with a higher generation.
const raised: ReadonlySet<PermitRefusal> = new Set(["ended", "spent"]);

function isFalse(reason: string, message: string): Condition {
  return { type: "Permitted", status: "False", reason, message };
}

function keyOf({ kind, namespace, name }: ObjectName): string {
  return [kind.toLowerCase(), namespace, name].join("/");
}

/** The command that permits an install for a day. The shell inserts the time. */
function patchOf({ kind, namespace, name }: ObjectName, generation: number, ledger: string): string {
  const object = `${kind.toLowerCase()}s.davit.dev ${name}`;
  const until = `'"$(date -u -d '+1 day' +%FT%TZ)"'`;
  const patch = JSON.stringify({ spec: { install: { generation, ledger, until } } }).replaceAll(String.raw`\"`, '"');
  return `kubectl patch ${object} -n ${namespace} --type=merge -p '${patch}'`;
}
