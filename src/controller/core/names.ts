/** Functions for names of objects, maps of names by key, and references between objects. */

import { ownerName, twinName } from "../../model/objects/documents.ts";
import {
  type GroupObject,
  type ObjectName,
  objectKey,
  ownKinds,
  type ProfileObject,
  referencesOf,
  type SourceView,
} from "../../model/objects/source.ts";

/** Makes a map of names by key, each name once. */
export function byKey(names: Iterable<ObjectName>): Map<string, ObjectName> {
  const all = new Map<string, ObjectName>();
  for (const name of names) addTo(all, name);
  return all;
}

/** Adds a name under its key. */
export function addTo(names: Map<string, ObjectName>, name: ObjectName): void {
  names.set(objectKey(name), name);
}

/** The names that are in the first map but not in the second one. */
export function withoutThose(
  names: ReadonlyMap<string, ObjectName>,
  those: ReadonlyMap<string, ObjectName>,
): readonly ObjectName[] {
  return [...names].flatMap(([key, name]) => (those.has(key) ? [] : [name]));
}

/** True for a view that shows no Profile and no Group. */
export function isEmpty(view: Pick<SourceView, "all">): boolean {
  return ownKinds.every((kind) => view.all(kind)[Symbol.iterator]().next().done === true);
}

/** True for the name of a Group. */
export function isGroup({ kind }: ObjectName): boolean {
  return kind === "Group";
}

/** Parses a Group's id, `namespace/name`. For the id of a twin, it returns the name of the Group. */
export function groupName(id: string): ObjectName {
  const [namespace = "", name = ""] = id.split("/");
  return { kind: "Group", namespace, name: ownerName(name) };
}

/** The name of a Group's twin in the store. */
export function twinOf(id: ObjectName): ObjectName {
  return { ...id, name: twinName(id.name) };
}

/** Holds a value for each reference from one object to another, such as from a Group to its Profile. */
export class ByReference<Value> {
  /** By the key of the object that is referred to, then by the key of the object that refers to it. */
  readonly #all = new Map<string, Map<string, Value>>();

  /** Sets the value of a reference. @param value undefined removes the reference. */
  note(to: ObjectName, from: ObjectName, value: Value | undefined): void {
    const key = objectKey(to);
    const values = this.#all.get(key) ?? new Map<string, Value>();
    if (value !== undefined) this.#all.set(key, values.set(objectKey(from), value));
    else if (values.delete(objectKey(from)) && values.size === 0) this.#all.delete(key);
  }

  get(to: ObjectName, from: ObjectName): Value | undefined {
    return this.#all.get(objectKey(to))?.get(objectKey(from));
  }

  /** The values of all references to this object. */
  of(to: ObjectName): readonly Value[] {
    return [...(this.#all.get(objectKey(to))?.values() ?? [])];
  }
}

/**
 * Finds the objects to look at again after a change. If a ConfigMap or Secret changed, these are the Profiles that read
 * it. If a Profile changed, these are the Groups that name it.
 */
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
