/** Keeps the latest status of every object in memory, for the console. */

import { type ObjectName, type ObjectStatus, objectKey, type StatusSink } from "../../model/source.ts";

export interface KnownStatus {
  readonly name: ObjectName;
  readonly status: ObjectStatus;
}

export class KnownStatuses implements StatusSink {
  readonly #known = new Map<string, KnownStatus>();
  #revision = 0;

  /** Counts changes. */
  get revision(): number {
    return this.#revision;
  }

  write(name: ObjectName, status: ObjectStatus): Promise<void> {
    this.#revision += 1;
    this.#known.set(objectKey(name), { name, status });
    return Promise.resolve();
  }

  forget(name: ObjectName): void {
    this.#revision += 1;
    this.#known.delete(objectKey(name));
  }

  /** Forgets everything: another davit writes statuses now. */
  clear(): void {
    this.#revision += 1;
    this.#known.clear();
  }

  all(): Iterable<KnownStatus> {
    return this.#known.values();
  }

  of(name: ObjectName): ObjectStatus | undefined {
    return this.#known.get(objectKey(name))?.status;
  }
}
