/** Finds Machines by their identities, and Machines that list the same identity. */

import type { MachineDocument } from "../../model/objects/machine.ts";
import { type ObjectName, objectKey } from "../../model/objects/source.ts";

interface IndexedMachine {
  readonly name: ObjectName;
  readonly identities: readonly string[];
  readonly isTenant: boolean;
}

export class MachineIdentities {
  /** By key. */
  readonly #machines = new Map<string, IndexedMachine>();
  /** By identity: the keys of its Machines. */
  readonly #byIdentity = new Map<string, Set<string>>();

  /**
   * Replaces what is known of a Machine.
   * @returns the other Machines that share an identity with the Machine, now or before.
   */
  update(name: ObjectName, document: MachineDocument | undefined): readonly ObjectName[] {
    const key = objectKey(name);
    const before = this.#machines.get(key);
    const now = document && { name, identities: document.spec.identities, isTenant: document.tenant === true };
    if (before !== undefined && isSame(before, now)) return [];
    const sharing = this.#sharing(key, [...(before?.identities ?? []), ...(now?.identities ?? [])]);
    for (const identity of before?.identities ?? []) this.#drop(identity, key);
    if (now === undefined) {
      this.#machines.delete(key);
      return sharing;
    }
    this.#machines.set(key, now);
    for (const identity of now.identities) {
      this.#byIdentity.set(identity, (this.#byIdentity.get(identity) ?? new Set()).add(key));
    }
    return sharing;
  }

  /** The Machines that list one of these identities. */
  of(identities: readonly string[]): readonly ObjectName[] {
    return this.#sharing(undefined, identities);
  }

  /** The names of all Machines. */
  *names(): Iterable<ObjectName> {
    for (const { name } of this.#machines.values()) yield name;
  }

  /**
   * A Machine with which this one is in conflict: both list an identity, and both count for a Group. A Machine outside
   * the admin namespace cannot put one of the admin namespace into conflict.
   */
  rivalOf(name: ObjectName): { readonly name: ObjectName; readonly identity: string } | undefined {
    const key = objectKey(name);
    const own = this.#machines.get(key);
    if (own === undefined) return undefined;
    for (const identity of own.identities) {
      for (const other of this.#byIdentity.get(identity) ?? []) {
        const machine = this.#machines.get(other);
        const isOther = other !== key && machine !== undefined;
        if (isOther && (machine.name.namespace === name.namespace || !machine.isTenant)) {
          return { name: machine.name, identity };
        }
      }
    }
    return undefined;
  }

  #sharing(key: string | undefined, identities: readonly string[]): readonly ObjectName[] {
    const keys = new Set(identities.flatMap((identity) => [...(this.#byIdentity.get(identity) ?? [])]));
    if (key !== undefined) keys.delete(key);
    return [...keys].flatMap((each) => this.#machines.get(each)?.name ?? []);
  }

  #drop(identity: string, key: string): void {
    const keys = this.#byIdentity.get(identity);
    if (keys?.delete(key) === true && keys.size === 0) this.#byIdentity.delete(identity);
  }
}

function isSame(a: IndexedMachine, b: IndexedMachine | undefined): boolean {
  return b !== undefined && a.isTenant === b.isTenant && a.identities.join() === b.identities.join();
}
