/**
 * The grants of all objects, and the Machine objects: for the ledger, which logs when a grant ends, and for operators.
 * Every member of a store knows them, because another member may lead the ledger's store than the main one.
 */

import type { DocumentChange, FeedListener } from "../model/feed.ts";
import { decodeGroup, documentAddress } from "../model/objects/documents.ts";
import { decodeMachine, type MachineDocument } from "../model/objects/machine.ts";
import type { NamedGrant } from "../model/permits/permit.ts";

/** What is known of a Group or a Machine. */
interface Granting {
  readonly uid: string;
  readonly grant: NamedGrant | undefined;
  /** Undefined for a Group. */
  readonly machine: MachineDocument | undefined;
}

export class GrantedObjects implements FeedListener {
  readonly #noteChange: () => void;
  /** By the keys of their grants, whether they have one or not. */
  #known = new Map<string, Granting>();

  /** @param noteChange is called after grants may have changed. */
  constructor(noteChange: () => void) {
    this.#noteChange = noteChange;
  }

  get grants(): readonly NamedGrant[] {
    return [...this.#known.values()].flatMap(({ grant }) => (grant === undefined ? [] : [grant]));
  }

  /** Machine objects by `namespace/name`. */
  *machines(): Iterable<readonly [name: string, document: MachineDocument]> {
    for (const [key, { machine }] of this.#known)
      if (machine !== undefined) yield [key.slice(machineKey.length), machine];
  }

  /** Returns what is known of the object of a grant; undefined if there is no such object. */
  of(key: string): Granting | undefined {
    return this.#known.get(key);
  }

  replaced(documents: Iterable<readonly [path: string, text: string]>): void {
    const former = this.#known;
    this.#known = new Map();
    for (const [path, text] of documents) this.#learn(path, text, former);
    this.#noteChange();
  }

  changed(changes: readonly DocumentChange[]): void {
    let isAny = false;
    for (const { path, text } of changes) isAny = this.#learn(path, text, this.#known) || isAny;
    if (isAny) this.#noteChange();
  }

  /**
   * Learns the text of a document. What was known of it stays while it is unreadable.
   * @returns false for a document of another kind.
   */
  #learn(path: string, text: string | undefined, former: ReadonlyMap<string, Granting>): boolean {
    const address = documentAddress(path);
    if (address?.kind !== "group" && address?.kind !== "machine") return false;
    const key = [address.kind, address.namespace, address.name].join("/");
    const known = text === undefined ? undefined : (grantingOf(address.kind, key, text) ?? former.get(key));
    if (known === undefined) this.#known.delete(key);
    else this.#known.set(key, known);
    return true;
  }
}

const machineKey = "machine/";

function grantingOf(kind: "group" | "machine", key: string, text: string): Granting | undefined {
  const group = kind === "group" ? decodeGroup(text) : undefined;
  const machine = kind === "machine" ? decodeMachine(text) : undefined;
  const document = group ?? machine;
  if (document === undefined) return undefined;
  const { uid, spec } = document;
  return { uid, grant: spec.install && { key, grant: spec.install }, machine };
}
