/**
 * Rights to write statuses that davit lacks, as the API server answered. A person sees each for as long as it lasts. A
 * right covers a kind in a namespace. It counts as granted again when one object was written, and is dropped when no
 * refused object is left.
 */

import type { ObjectName } from "../../model/source.ts";

interface Missing {
  readonly text: string;
  /** Names of the objects that were refused. */
  readonly objects: Set<string>;
}

export class MissingRights {
  readonly #missing = new Map<string, Missing>();

  /** One line for each right, in the order in which they were first refused. */
  get lines(): readonly string[] {
    return [...this.#missing.values()].map(({ text }) => text);
  }

  /** @param text what is missing, the same for all objects of the kind in the namespace. */
  refused(name: ObjectName, text: string): void {
    const key = rightOf(name);
    const missing = this.#missing.get(key) ?? { text, objects: new Set() };
    missing.objects.add(name.name);
    this.#missing.set(key, missing);
  }

  granted(name: ObjectName): void {
    this.#missing.delete(rightOf(name));
  }

  /** The object has no status to write: it is gone, or shows it already. */
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
