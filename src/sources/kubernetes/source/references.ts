/**
 * The ConfigMaps and Secrets that Profiles name, as the source shows them. New content may have to wait, so that no
 * machine boots a Profile with content of a different time. A removal takes effect immediately. davit reads no other
 * ConfigMap or Secret.
 */

import { type ConfigMapObject, objectKey, type Reference, type SecretObject } from "../../../model/objects/source.ts";
import type { ConfigMaps } from "./config-maps.ts";
import type { Secrets } from "./secrets.ts";

/** Where the content of references comes from. */
export interface Caches {
  readonly ConfigMap: Pick<ConfigMaps, "get" | "isKnown" | "isTried" | "isForbidden" | "want" | "unwant">;
  readonly Secret: Pick<Secrets, "get" | "isKnown" | "isTried" | "isForbidden" | "want" | "unwant">;
}

export class ShownReferences {
  /** By `namespace/name`, like `secrets`. */
  readonly configMaps = new Map<string, ConfigMapObject>();
  readonly secrets = new Map<string, SecretObject>();
  readonly #caches: Caches;
  /** References with new content that is not shown yet. */
  readonly #waiting = new Set<string>();

  constructor(caches: Caches) {
    this.#caches = caches;
  }

  /** True for a reference that is missing, or that davit has no right to read. Both changes take effect immediately. */
  isAbsent({ kind, namespace, name }: Reference): boolean {
    return this.#caches[kind].get(namespace, name) === undefined;
  }

  /** Shows the newest content of a reference that davit has read. */
  take(reference: Reference): void {
    const { kind, namespace, name } = reference;
    this.#waiting.delete(objectKey(reference));
    const id = `${namespace}/${name}`;
    if (kind === "ConfigMap") put(this.configMaps, id, this.#caches.ConfigMap.get(namespace, name));
    else put(this.secrets, id, this.#caches.Secret.get(namespace, name));
  }

  /** Hides new content of a reference until `take`. */
  holdBack(reference: Reference): void {
    this.#waiting.add(objectKey(reference));
  }

  /** True when the content of a reference is known and shown. */
  isKnown(reference: Reference): boolean {
    return this.#caches[reference.kind].isKnown(reference) && !this.#waiting.has(objectKey(reference));
  }

  /** True when the content of a reference is known, or the first try to read it has failed. */
  isTried(reference: Reference): boolean {
    return this.#caches[reference.kind].isTried(reference);
  }

  isForbidden(reference: Reference): boolean {
    return this.#caches[reference.kind].isForbidden(reference);
  }

  want(reference: Reference): void {
    this.#caches[reference.kind].want(reference);
  }

  unwant(reference: Reference): void {
    const { kind, namespace, name } = reference;
    (kind === "ConfigMap" ? this.configMaps : this.secrets).delete(`${namespace}/${name}`);
    this.#waiting.delete(objectKey(reference));
    this.#caches[kind].unwant(reference);
  }
}

function put<Value>(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

interface WantedChange {
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
