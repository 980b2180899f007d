/** Which objects to look at again when another one changes: Profiles by what they read, Groups by their Profile. */

import { type GroupObject, type ObjectName, objectKey, type ProfileObject } from "../model/source.ts";

export class Dependents {
  /** From each object that is read to its readers. */
  readonly #readers = new Map<string, Map<string, ObjectName>>();
  /** From each reader to the objects that it reads. */
  readonly #reads = new Map<string, readonly ObjectName[]>();

  /**
   * Replaces an object's references; undefined for an object that is gone.
   * @returns the references that it gained or lost.
   */
  update(reader: ObjectName, object: ProfileObject | GroupObject | undefined): readonly ObjectName[] {
    const readerKey = objectKey(reader);
    const before = this.#reads.get(readerKey) ?? [];
    const now = object === undefined ? [] : references(object);
    const lost = without(before, now);
    const gained = without(now, before);
    for (const name of lost) this.#forget(objectKey(name), readerKey);
    for (const name of gained) this.#readersOf(objectKey(name)).set(readerKey, reader);
    if (now.length === 0) this.#reads.delete(readerKey);
    else this.#reads.set(readerKey, now);
    return [...lost, ...gained];
  }

  /** The objects that refer to this one. */
  of(name: ObjectName): Iterable<ObjectName> {
    return this.#readers.get(objectKey(name))?.values() ?? [];
  }

  /** How many objects refer to this one. */
  countOf(name: ObjectName): number {
    return this.#readers.get(objectKey(name))?.size ?? 0;
  }

  #readersOf(key: string): Map<string, ObjectName> {
    const readers = this.#readers.get(key) ?? new Map<string, ObjectName>();
    this.#readers.set(key, readers);
    return readers;
  }

  #forget(key: string, readerKey: string): void {
    const readers = this.#readers.get(key);
    readers?.delete(readerKey);
    if (readers?.size === 0) this.#readers.delete(key);
  }
}

function without(names: readonly ObjectName[], others: readonly ObjectName[]): readonly ObjectName[] {
  const keys = new Set(others.map(objectKey));
  return names.filter((name) => !keys.has(objectKey(name)));
}

function references(object: ProfileObject | GroupObject): readonly ObjectName[] {
  const { namespace } = object;
  if (object.kind === "Group") return [{ kind: "Profile", namespace, name: object.spec.profile }];
  return Object.values(object.spec.templates).flatMap((source): ObjectName[] => {
    if (source.kind === "inline") return [];
    return [{ kind: source.kind === "configMap" ? "ConfigMap" : "Secret", namespace, name: source.name }];
  });
}
