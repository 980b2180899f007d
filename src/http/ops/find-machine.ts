/** Finds a machine by the name of its Machine, a MAC address or a uuid. */

import { isOwnUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import { identity as identityText } from "../../model/objects/machine.ts";
import type { MachineBook } from "./machine-book.ts";
import { type MachineSubject, subjectOf } from "./machine-report.ts";

/** Finds the machine that a name means: its object, its entries, or both. */
export function findMachine(book: MachineBook, name: string): MachineSubject | undefined {
  const identity = identityOf(name);
  for (const object of book.machines()) {
    const isIt = identity === undefined ? object.name === name : object.document.spec.identities.includes(identity);
    if (isIt) return subjectOf(book, object);
  }
  return identity === undefined ? undefined : findWithoutObject(book, identity);
}

function findWithoutObject(book: MachineBook, identity: string): MachineSubject | undefined {
  // In the ledger, an identity has at most one entry.
  const [entry] = book.ledger.entriesOf([identity]);
  if (entry !== undefined) return { object: undefined, identities: entry.identities, entries: [entry] };
  for (const waiting of book.pending?.() ?? []) {
    const { identities } = waiting;
    if (identities.includes(identity)) return { object: undefined, identities, entries: [], pending: waiting };
  }
  return undefined;
}

/** Returns the ledger's name of a MAC address or uuid in any form; undefined for any other text. */
export function identityOf(name: string): string | undefined {
  const mac = normalizeMac(name);
  if (mac !== undefined) return identityText("mac", mac);
  const uuid = name.toLowerCase();
  return isOwnUuid(uuid) ? identityText("uuid", uuid) : undefined;
}
