/** Which objects have to be looked at again when another one changes: Profiles by what they read, Groups by Profile. */

import type { GroupObject, ObjectName, ProfileObject } from "../model/source.ts";

export class Dependents {
  /** What is read, to who reads it. */
  readonly #readers = new Map<string, Map<string, ObjectName>>();
  /** Who reads, to what it reads. */
  readonly #reads = new Map<string, readonly string[]>();

  /** Replaces what is known of an object's references; undefined for an object that is gone. */
  update(reader: ObjectName, object: ProfileObject | GroupObject | undefined): void {
    const readerKey = objectKey(reader);
    for (const key of this.#reads.get(readerKey) ?? []) {
      const readers = this.#readers.get(key);
      readers?.delete(readerKey);
      if (readers?.size === 0) this.#readers.delete(key);
    }
    const keys = object === undefined ? [] : references(object).map(objectKey);
    if (keys.length === 0) this.#reads.delete(readerKey);
    else this.#reads.set(readerKey, keys);
    for (const key of keys) {
      const readers = this.#readers.get(key) ?? new Map<string, ObjectName>();
      this.#readers.set(key, readers.set(readerKey, reader));
    }
  }

  /** The objects that refer to this one. */
  of(name: ObjectName): Iterable<ObjectName> {
    return this.#readers.get(objectKey(name))?.values() ?? [];
  }
}

/** A name as one text, for maps and queues. */
export function objectKey({ kind, namespace, name }: ObjectName): string {
  return `${kind}/${namespace}/${name}`;
}

function references(object: ProfileObject | GroupObject): readonly ObjectName[] {
  const { namespace } = object;
  if (object.kind === "Group") return [{ kind: "Profile", namespace, name: object.spec.profile }];
  return Object.values(object.spec.templates).flatMap((source): ObjectName[] => {
    if (source.kind === "inline") return [];
    return [{ kind: source.kind === "configMap" ? "ConfigMap" : "Secret", namespace, name: source.name }];
  });
}
