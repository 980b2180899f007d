/**
 * Exceptions that nobody expected, in the work on one object: a fault of davit's own, which must not end it for all
 * others. They are logged with the place where they were thrown, never with their message: that may quote a template.
 * The object is tried again with whatever has it looked at anew, at the latest with the resync: no sooner, since what
 * went wrong for want of a thought goes wrong again.
 */

import { placeOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { ObjectName } from "../../model/source.ts";

export class Faults {
  readonly #log: Pick<Log, "error">;

  constructor(log: Pick<Log, "error">) {
    this.#log = log;
  }

  /**
   * Runs the work on one object.
   * @returns what it comes to, or after an exception what the first of these comes to that has none.
   * @throws {unknown} when all of them do.
   */
  guard<Result>(id: ObjectName, run: () => Result, ...otherwise: readonly (() => Result)[]): Result {
    try {
      return run();
    } catch (thrown) {
      const { kind, namespace, name } = id;
      this.#log.error({ kind, namespace, name, ...placeOf(thrown) }, "davit failed on an object, please report this");
      const [next, ...others] = otherwise;
      if (next === undefined) throw thrown;
      return this.guard(id, next, ...others);
    }
  }
}
