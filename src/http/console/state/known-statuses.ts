/** Keeps the latest status of every object in memory, for the console. */

import { type ObjectName, type ObjectStatus, objectKey, type StatusSink } from "../../../model/objects/source.ts";
import { problemIn } from "./problems.ts";

export class KnownStatuses implements StatusSink {
  readonly #known = new Map<string, ObjectStatus>();
  readonly #troubled = new Set<string>();
  #keys: readonly string[] | undefined;
  #revision = 0;

  /** Counts changes. */
  get revision(): number {
    return this.#revision;
  }

  /** The keys of all objects (`objectKey`) in their order. They are sorted again only after objects came or went. */
  get keys(): readonly string[] {
    this.#keys ??= [...this.#known.keys()].sort();
    return this.#keys;
  }

  /** The keys of the objects that need a person. */
  get troubled(): ReadonlySet<string> {
    return this.#troubled;
  }

  write(name: ObjectName, status: ObjectStatus): Promise<void> {
    this.#revision += 1;
    const key = objectKey(name);
    if (!this.#known.has(key)) this.#keys = undefined;
    this.#known.set(key, status);
    if (problemIn(status) === undefined) this.#troubled.delete(key);
    else this.#troubled.add(key);
    return Promise.resolve();
  }

  forget(name: ObjectName): void {
    this.#revision += 1;
    const key = objectKey(name);
    if (this.#known.delete(key)) this.#keys = undefined;
    this.#troubled.delete(key);
  }

  /** Forgets everything: another davit writes statuses now. */
  clear(): void {
    this.#revision += 1;
    this.#known.clear();
    this.#troubled.clear();
    this.#keys = undefined;
  }

  of(name: ObjectName): ObjectStatus | undefined {
    return this.#known.get(objectKey(name));
  }
}
