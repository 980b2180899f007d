/** Which ConfigMaps and Secrets Profiles want. davit reads the content of no others. */

import { objectKey, type ProfileObject } from "../../model/source.ts";

/** A ConfigMap or a Secret that a Profile names. */
export interface Reference {
  readonly kind: "ConfigMap" | "Secret";
  readonly namespace: string;
  readonly name: string;
}

export interface WantedChange {
  readonly wanted: readonly Reference[];
  readonly unwanted: readonly Reference[];
}

export class References {
  readonly #readers = new Map<string, Set<string>>();
  readonly #reads = new Map<string, readonly Reference[]>();

  /** Replaces a Profile's references; returns those that are newly wanted, and those that are wanted no more. */
  update(reader: string, references: readonly Reference[]): WantedChange {
    const before = this.#reads.get(reader) ?? [];
    if (references.length === 0) this.#reads.delete(reader);
    else this.#reads.set(reader, references);
    const wanted = references.filter((reference) => this.#add(objectKey(reference), reader));
    const kept = new Set(references.map(objectKey));
    const dropped = before.filter((reference) => !kept.has(objectKey(reference)));
    return { wanted, unwanted: dropped.filter((reference) => this.#remove(objectKey(reference), reader)) };
  }

  /** The Profiles that name it. */
  readersOf(reference: Reference): Iterable<string> {
    return this.#readers.get(objectKey(reference)) ?? [];
  }

  /** True when no reader wanted it before. */
  #add(key: string, reader: string): boolean {
    const readers = this.#readers.get(key);
    if (readers === undefined) this.#readers.set(key, new Set([reader]));
    else readers.add(reader);
    return readers === undefined;
  }

  /** True when no reader wants it any more. */
  #remove(key: string, reader: string): boolean {
    const readers = this.#readers.get(key);
    readers?.delete(reader);
    return readers?.size === 0 && this.#readers.delete(key);
  }
}

/** Everything that a Profile names, each once. */
export function referencesOf({ namespace, spec }: ProfileObject): readonly Reference[] {
  const found = Object.values(spec.templates).flatMap((source): [string, Reference][] => {
    if (source.kind === "inline") return [];
    const kind = source.kind === "configMap" ? "ConfigMap" : "Secret";
    const reference = { kind, namespace, name: source.name } as const;
    return [[objectKey(reference), reference]];
  });
  return [...new Map(found).values()];
}
