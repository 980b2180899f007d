/** Records which ConfigMaps and Secrets Profiles name. davit reads no other ConfigMap's or Secret's content. */

import { objectKey, type Reference } from "../../../model/objects/source.ts";

export interface WantedChange {
  readonly wanted: readonly Reference[];
  readonly unwanted: readonly Reference[];
}

export class References {
  readonly #readers = new Map<string, Set<string>>();
  readonly #reads = new Map<string, readonly Reference[]>();

  /**
   * Replaces a Profile's references. @param reader `namespace/name` of the Profile.
   * @returns the references that no Profile named before, and those that no Profile names any more.
   */
  update(reader: string, references: readonly Reference[]): WantedChange {
    const before = this.#reads.get(reader) ?? [];
    if (references.length === 0) this.#reads.delete(reader);
    else this.#reads.set(reader, references);
    const wanted = references.filter((reference) => this.#add(objectKey(reference), reader));
    const kept = new Set(references.map(objectKey));
    const dropped = before.filter((reference) => !kept.has(objectKey(reference)));
    return { wanted, unwanted: dropped.filter((reference) => this.#remove(objectKey(reference), reader)) };
  }

  /** Returns the Profiles that name a reference, each as `namespace/name`. */
  readersOf(reference: Reference): Iterable<string> {
    return this.#readers.get(objectKey(reference)) ?? [];
  }

  /** Adds a reader of a reference. @returns true if the reference had none before. */
  #add(key: string, reader: string): boolean {
    const readers = this.#readers.get(key);
    if (readers === undefined) this.#readers.set(key, new Set([reader]));
    else readers.add(reader);
    return readers === undefined;
  }

  /** Removes a reader of a reference. @returns true if it was the last reader. */
  #remove(key: string, reader: string): boolean {
    const readers = this.#readers.get(key);
    readers?.delete(reader);
    return readers?.size === 0 && this.#readers.delete(key);
  }
}
