/** Counts the operations of this run, and how many of them failed. */

import type { Command, ExpireCommand, SingleCommand } from "./command.ts";

/** In the order of the names in etcd's answer (etcd v3.4.23 v2store/stats.go). */
export const countNames = [
  "getsSuccess",
  "getsFail",
  "setsSuccess",
  "setsFail",
  "deleteSuccess",
  "deleteFail",
  "updateSuccess",
  "updateFail",
  "createSuccess",
  "createFail",
  "compareAndSwapSuccess",
  "compareAndSwapFail",
  "compareAndDeleteSuccess",
  "compareAndDeleteFail",
  "expireCount",
] as const;

export type CountName = (typeof countNames)[number];

type Operation = "get" | SingleCommand["kind"];

const prefixes = {
  get: "gets",
  set: "sets",
  create: "create",
  createInOrder: "create",
  update: "update",
  compareAndSwap: "compareAndSwap",
  delete: "delete",
  compareAndDelete: "compareAndDelete",
} as const satisfies Record<Operation, string>;

export class OperationCounts {
  readonly #counts = new Map<CountName, number>(countNames.map((name) => [name, 0]));

  get all(): ReadonlyMap<CountName, number> {
    return this.#counts;
  }

  succeeded(operation: Operation): void {
    this.#add(`${prefixes[operation]}Success`);
  }

  failed(operation: Operation): void {
    this.#add(`${prefixes[operation]}Fail`);
  }

  /** Counts a command. @param changes how many changes it made; undefined when it was refused. */
  applied(command: Command, changes: number | undefined): void {
    if (command.kind === "extend") return;
    if (command.kind !== "batch") this.#appliedOne(command, changes);
    // A batch with an expiry has only expiries. Void expiries are not counted.
    else if (command.commands[0]?.kind === "expire") this.#add("expireCount", changes);
    // A refused batch does not say which command failed, so none of them is counted.
    else if (changes !== undefined) for (const each of command.commands) this.#appliedOne(each, 1);
  }

  #appliedOne({ kind }: SingleCommand | ExpireCommand, changes: number | undefined): void {
    if (kind === "expire") this.#add("expireCount", changes);
    else if (changes === undefined) this.failed(kind);
    else this.succeeded(kind);
  }

  #add(name: CountName, count = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
  }
}
