/**
 * Makes the condition `Permitted` of a Group or a Machine: whether its grant opens installs now, and if not, the
 * command that opens them. Texts have no times, so that a status stays equal until something changes. Pure.
 */

import type { Condition, ObjectName } from "../../model/objects/source.ts";
import {
  grantRefusal,
  type InstallGrant,
  type LedgerEntry,
  type LedgerView,
  type NamedGrant,
  refusalFor,
} from "../../model/permits/permit.ts";
import { type PermitRefusal, permitRefusals } from "../../model/refusals.ts";

/** Returns a grant with its name in the ledger. */
export function namedGrant(id: ObjectName, grant: InstallGrant): NamedGrant {
  return { key: keyOf(id), grant };
}

/**
 * The condition `Permitted`.
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
