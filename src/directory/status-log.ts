/**
 * Where the status of objects goes when they come from files: into the log, one line for each transition to or from
 * Ready, and into a list of what is not ready, for people who ask the operations listener.
 */

import type { Log } from "../lib/log.ts";
import { compareBytes } from "../lib/order.ts";
import type { Condition, ObjectName, ObjectStatus, StatusSink } from "../model/source.ts";

/** An object that is not ready, and why. */
export interface NotReady {
  readonly name: ObjectName;
  readonly reason: string;
  readonly message: string;
}

interface Told {
  readonly name: ObjectName;
  readonly ready: Condition;
}

export class StatusLog implements StatusSink {
  readonly #log: Log;
  readonly #told = new Map<string, Told>();

  constructor({ log }: { readonly log: Log }) {
    this.#log = log;
  }

  write(name: ObjectName, { conditions }: ObjectStatus): Promise<void> {
    const ready = conditions.find(({ type }) => type === "Ready");
    if (ready === undefined) return Promise.resolve();
    const key = keyOf(name);
    const before = this.#told.get(key)?.ready;
    this.#told.set(key, { name, ready });
    if (before === undefined || !isSame(before, ready)) this.#tell(name, ready, before);
    return Promise.resolve();
  }

  forget(name: ObjectName): void {
    this.#told.delete(keyOf(name));
  }

  /** Everything that is not ready now, sorted by kind, namespace and name. */
  notReady(): readonly NotReady[] {
    return [...this.#told]
      .filter(([, { ready }]) => ready.status !== "True")
      .toSorted(([a], [b]) => compareBytes(a, b))
      .map(([, { name, ready }]) => ({ name, reason: ready.reason, message: ready.message }));
  }

  /** The first status of an object that is ready is no transition: 10,000 of them would drown the rest. */
  #tell({ kind, namespace, name }: ObjectName, { status, reason, message }: Condition, before?: Condition): void {
    const data = { kind, namespace, name, reason, message };
    if (status !== "True") this.#log.warn(data, "object is not ready");
    else if (before === undefined) this.#log.debug(data, "object is ready");
    else if (before.status !== "True") this.#log.info(data, "object is ready");
  }
}

function isSame(a: Condition, b: Condition): boolean {
  return a.status === b.status && a.reason === b.reason && a.message === b.message;
}

function keyOf({ kind, namespace, name }: ObjectName): string {
  return `${kind}/${namespace}/${name}`;
}
