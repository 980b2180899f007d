/**
 * Finds the objects to look at again after a change. If a ConfigMap or Secret changed, these are the Profiles that read
 * it. If a Profile changed, these are the Groups that name it.
 */

import {
  type GroupObject,
  type ObjectName,
  objectKey,
  type ProfileObject,
  referencesOf,
} from "../model/objects/source.ts";
import { ByReference } from "./core/names.ts";

export class Dependents {
  /** From each object to the objects that refer to it. */
  readonly #readers = new ByReference<ObjectName>();
  /** From each object to the objects that it refers to. */
  readonly #reads = new Map<string, readonly ObjectName[]>();

  /**
   * Replaces the references of `reader`.
   * @param object undefined if it is gone.
   * @returns the objects to which `reader` gained or lost a reference.
   */
  update(reader: ObjectName, object: ProfileObject | GroupObject | undefined): readonly ObjectName[] {
    const readerKey = objectKey(reader);
    const before = this.#reads.get(readerKey) ?? [];
    const now = object === undefined ? [] : references(object);
    const lost = without(before, now);
    const gained = without(now, before);
    for (const name of lost) this.#readers.note(name, reader, undefined);
    for (const name of gained) this.#readers.note(name, reader, reader);
    if (now.length === 0) this.#reads.delete(readerKey);
    else this.#reads.set(readerKey, now);
    return [...lost, ...gained];
  }

  /** The objects that refer to this one. */
  of(name: ObjectName): readonly ObjectName[] {
    return this.#readers.of(name);
  }
}

function without(names: readonly ObjectName[], others: readonly ObjectName[]): readonly ObjectName[] {
  // A large step has 100,000 new Groups, and nothing to compare them with.
  if (names.length === 0 || others.length === 0) return names;
  const keys = new Set(others.map(objectKey));
  return names.filter((name) => !keys.has(objectKey(name)));
}

function references(object: ProfileObject | GroupObject): readonly ObjectName[] {
  if (object.kind === "Profile") return referencesOf(object);
  return [{ kind: "Profile", namespace: object.namespace, name: object.spec.profile }];
}
