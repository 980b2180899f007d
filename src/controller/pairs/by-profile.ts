/** A value for each Group, by its Profile. */

import { type ObjectName, objectKey } from "../../model/source.ts";

export class ByProfile<Value> {
  /** By the key of the Profile, then by that of the Group. */
  readonly #all = new Map<string, Map<string, Value>>();

  /** @param value undefined forgets the Group. */
  note(profile: ObjectName, group: ObjectName, value: Value | undefined): void {
    const key = objectKey(profile);
    const groups = this.#all.get(key) ?? new Map<string, Value>();
    if (value !== undefined) this.#all.set(key, groups.set(objectKey(group), value));
    else if (groups.delete(objectKey(group)) && groups.size === 0) this.#all.delete(key);
  }

  get(profile: ObjectName, group: ObjectName): Value | undefined {
    return this.#all.get(objectKey(profile))?.get(objectKey(group));
  }

  of(profile: ObjectName): readonly Value[] {
    return [...(this.#all.get(objectKey(profile))?.values() ?? [])];
  }
}
