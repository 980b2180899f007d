/**
 * The objects of one resource as a watch last heard them. Versions are opaque: davit compares them for equality alone.
 * Pure.
 */

import { isJsonObject, type JsonObject } from "../../model/json.ts";

/** What every object carries. */
export interface HeldMeta {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** An object and the value that its reader made of it. */
export interface MirroredObject<Value> extends HeldMeta {
  readonly value: Value;
}

export interface MirrorChange {
  /**
   * `replaced`: another object under the same name, because the old one was deleted in between. After a gap it may also
   * be the same object, because the whole cluster may have gone back to an older state.
   */
  readonly kind: "set" | "replaced" | "deleted";
  readonly namespace: string;
  readonly name: string;
}

/**
 * Makes a value of an object; `before` is the held version of the same object (equal uid), if any. `before` may come
 * from another history. The function never throws.
 */
export type ReadObject<Value> = (
  object: JsonObject,
  meta: HeldMeta,
  before: MirroredObject<Value> | undefined,
) => Value;

export class Mirror<Value> {
  readonly #read: ReadObject<Value>;
  #held: Map<string, MirroredObject<Value>> = new Map();
  /** The held objects may be from another history: the next list is read anew, whatever versions its objects carry. */
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

  /** Records a gap: the held objects may be from another history than the next list. */
  distrust(): void {
    this.#isDistrusted = true;
  }

  /** Reads an object without holding it; a known version is not read again. Undefined for what is no object. */
  prepare(object: JsonObject): MirroredObject<Value> | undefined {
    const meta = readMeta(object);
    if (meta === undefined) return undefined;
    const known = this.get(meta.namespace, meta.name);
    const before = known?.uid === meta.uid ? known : undefined;
    if (before?.resourceVersion === meta.resourceVersion) return before;
    return { ...meta, value: this.#read(object, meta, before) };
  }

  /** The same for an item of a list. After a gap an equal version proves nothing: it may be of another history. */
  prepareListed(object: JsonObject): MirroredObject<Value> | undefined {
    const meta = readMeta(object);
    if (meta === undefined || !this.#isDistrusted) return this.prepare(object);
    const known = this.get(meta.namespace, meta.name);
    return { ...meta, value: this.#read(object, meta, known?.uid === meta.uid ? known : undefined) };
  }

  /** Holds an object; undefined when it is already held. */
  put(held: MirroredObject<Value>): MirrorChange | undefined {
    const { namespace, name } = held;
    const known = this.get(namespace, name);
    if (known === held) return undefined;
    this.#held.set(keyOf(namespace, name), held);
    const isReplaced = known !== undefined && (known.uid !== held.uid || this.#isDistrusted);
    return { kind: isReplaced ? "replaced" : "set", namespace, name };
  }

  /** Drops an object; undefined when it is not held. */
  drop({ namespace, name }: HeldMeta): MirrorChange | undefined {
    return this.#held.delete(keyOf(namespace, name)) ? { kind: "deleted", namespace, name } : undefined;
  }

  /** Holds a whole list: objects that it lacks are gone. */
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

/** Undefined for JSON that is no object of the API: it lacks a name, uid or version. */
export function readMeta({ metadata }: JsonObject): HeldMeta | undefined {
  if (!isJsonObject(metadata)) return undefined;
  const { namespace, name, uid, resourceVersion } = metadata;
  if (typeof namespace !== "string" || typeof name !== "string") return undefined;
  if (typeof uid !== "string" || typeof resourceVersion !== "string") return undefined;
  return { namespace, name, uid, resourceVersion };
}
