/**
 * The objects of one resource as a watch last reported them. The mirror only checks whether two versions are equal.
 * Pure.
 */

import { isJsonObject, type JsonObject } from "../../../model/json.ts";

/** The metadata of a held object. */
export interface HeldMeta {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** A held object: its metadata, and the value that `ReadObject` made of it. */
export interface MirroredObject<Value> extends HeldMeta {
  readonly value: Value;
}

export interface MirrorChange {
  /**
   * `replaced`: another object has this name now, because the old one was deleted in between. After a gap, every held
   * object that is listed again counts as replaced: the cluster may have gone back to an older state.
   */
  readonly kind: "set" | "replaced" | "deleted";
  readonly namespace: string;
  readonly name: string;
}

/**
 * Makes a value of an object, and never throws. `before` is the held version of the same object (equal uid), if any.
 * After a gap, `before` may be from another history of the cluster.
 */
export type ReadObject<Value> = (
  object: JsonObject,
  meta: HeldMeta,
  before: MirroredObject<Value> | undefined,
) => Value;

export class Mirror<Value> {
  readonly #read: ReadObject<Value>;
  #held: Map<string, MirroredObject<Value>> = new Map();
  /**
   * True after a gap: the held objects may be from another history of the cluster. Every object of the next list is
   * read again, even if its version is held.
   */
  #isDistrusted = false;

  constructor(read: ReadObject<Value>) {
    this.#read = read;
  }

  get size(): number {
    return this.#held.size;
  }

  get(namespace: string, name: string): MirroredObject<Value> | undefined {
    return this.#held.get(keyOf(namespace, name));
  }

  all(): Iterable<MirroredObject<Value>> {
    return this.#held.values();
  }

  /** True if exactly these objects are held, in these versions. */
  isEqual(objects: readonly JsonObject[]): boolean {
    const isHeld = (object: JsonObject) => {
      const meta = readMeta(object);
      const held = meta && this.get(meta.namespace, meta.name);
      return held !== undefined && held.uid === meta?.uid && held.resourceVersion === meta.resourceVersion;
    };
    return objects.length === this.size && objects.every(isHeld);
  }

  /** Records a gap: the held objects may be from another history of the cluster than the next list. */
  distrust(): void {
    this.#isDistrusted = true;
  }

  /**
   * Makes a value of an object, but does not hold it. A version that is already held is not read again. Undefined for
   * JSON that is no object.
   */
  prepare(object: JsonObject): MirroredObject<Value> | undefined {
    const meta = readMeta(object);
    if (meta === undefined) return undefined;
    const known = this.get(meta.namespace, meta.name);
    const before = known?.uid === meta.uid ? known : undefined;
    if (before?.resourceVersion === meta.resourceVersion) return before;
    return { ...meta, value: this.#read(object, meta, before) };
  }

  /**
   * Like `prepare`, for an item of a list. After a gap it reads even an object whose version is held, because the held
   * object may be from another history of the cluster.
   */
  prepareListed(object: JsonObject): MirroredObject<Value> | undefined {
    const meta = readMeta(object);
    if (meta === undefined || !this.#isDistrusted) return this.prepare(object);
    const known = this.get(meta.namespace, meta.name);
    return { ...meta, value: this.#read(object, meta, known?.uid === meta.uid ? known : undefined) };
  }

  /** Holds an object. @returns the change; undefined if the object is already held. */
  put(held: MirroredObject<Value>): MirrorChange | undefined {
    const { namespace, name } = held;
    const known = this.get(namespace, name);
    if (known === held) return undefined;
    this.#held.set(keyOf(namespace, name), held);
    const isReplaced = known !== undefined && (known.uid !== held.uid || this.#isDistrusted);
    return { kind: isReplaced ? "replaced" : "set", namespace, name };
  }

  /** Drops an object. @returns the change; undefined if the object is not held. */
  drop({ namespace, name }: HeldMeta): MirrorChange | undefined {
    return this.#held.delete(keyOf(namespace, name)) ? { kind: "deleted", namespace, name } : undefined;
  }

  /** Holds the objects of a whole list, and drops all others. @returns the changes. */
  replace(listed: readonly MirroredObject<Value>[]): readonly MirrorChange[] {
    const before = this.#held;
    const gone = new Map(before);
    for (const { namespace, name } of listed) gone.delete(keyOf(namespace, name));
    const changes = [...gone.values()].flatMap((held) => this.drop(held) ?? []);
    changes.push(...listed.flatMap((held) => this.put(held) ?? []));
    this.#isDistrusted = false;
    return changes;
  }
}

/** `join` instead of `+`: V8 keeps concatenated strings in pieces, which take three times as much memory. */
function keyOf(namespace: string, name: string): string {
  return [namespace, name].join("/");
}

/** Reads an object's metadata. Undefined for JSON that is no object: it lacks a namespace, name, uid or version. */
export function readMeta({ metadata }: JsonObject): HeldMeta | undefined {
  if (!isJsonObject(metadata)) return undefined;
  const { namespace, name, uid, resourceVersion } = metadata;
  if (typeof namespace !== "string" || typeof name !== "string") return undefined;
  if (typeof uid !== "string" || typeof resourceVersion !== "string") return undefined;
  return { namespace, name, uid, resourceVersion };
}
