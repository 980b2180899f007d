/**
 * Catches unexpected exceptions in the work on one object: a bug in davit must not stop the work on all other objects.
 * The log names the line of code that threw, but not the exception's message, which may quote a template. davit tries
 * the object again when a change names it, at the latest with the resync. Retrying sooner cannot help: a bug repeats.
 */

import { placeOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { ObjectName } from "../../model/objects/source.ts";

export class Faults {
  readonly #log: Pick<Log, "error">;

  constructor(log: Pick<Log, "error">) {
    this.#log = log;
  }

  /**
   * Runs the work on one object. After an exception, it runs the fallbacks in `otherwise`, in order.
   * @returns the first result.
   * @throws {unknown} the last exception, if all of them throw.
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
