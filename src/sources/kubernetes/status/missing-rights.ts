/**
 * The rights to write statuses that davit lacks, according to the API server. A right is for one kind in one namespace.
 * davit shows a missing right until it has written the status of one object of this kind and namespace, or until no
 * object is left whose status was refused.
 */

import type { ObjectName } from "../../../model/objects/source.ts";

interface Missing {
  readonly text: string;
  /** The names of the objects whose status was refused. */
  readonly objects: Set<string>;
}

export class MissingRights {
  readonly #missing = new Map<string, Missing>();

  /** One line for each missing right; the first refused right is first. */
  get lines(): readonly string[] {
    return [...this.#missing.values()].map(({ text }) => text);
  }

  /** @param text which right is missing. It must be equal for all objects of the kind in the namespace. */
  refused(name: ObjectName, text: string): void {
    const key = rightOf(name);
    const missing = this.#missing.get(key) ?? { text, objects: new Set() };
    missing.objects.add(name.name);
    this.#missing.set(key, missing);
  }

  granted(name: ObjectName): void {
    this.#missing.delete(rightOf(name));
  }

  /** Drops an object without a status to write: it is gone, or already shows its status. */
  forget(name: ObjectName): void {
    const key = rightOf(name);
    const missing = this.#missing.get(key);
    missing?.objects.delete(name.name);
    if (missing?.objects.size === 0) this.#missing.delete(key);
  }
}

function rightOf({ kind, namespace }: ObjectName): string {
  return `${kind}/${namespace}`;
}
