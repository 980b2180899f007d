/**
 * Catches unexpected exceptions in the work on one object: a bug in davit must not stop the work on all other objects.
 * The log names the line of code that threw, but not the exception's message, which may quote a template. davit tries
 * the object again when a change names it, at the latest with the resync. Retrying sooner cannot help: a bug repeats.
 */

import { placeOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { ObjectName } from "../../model/objects/source.ts";

/** Runs the work on one object. The function that `guardedBy` returns. */
export type FaultGuard = <Result>(id: ObjectName, run: () => Result, ...otherwise: readonly (() => Result)[]) => Result;

/**
 * Returns a function that runs the work on one object. After an exception, it runs the fallbacks in `otherwise`, in
 * order, and returns the first result. It throws the last exception if all of them throw.
 */
export function guardedBy(log: Pick<Log, "error">): FaultGuard {
  return function guard(id, run, ...otherwise) {
    try {
      return run();
    } catch (thrown) {
      const { kind, namespace, name } = id;
      log.error({ kind, namespace, name, ...placeOf(thrown) }, "davit failed on an object, please report this");
      const [next, ...others] = otherwise;
      if (next === undefined) throw thrown;
      return guard(id, next, ...others);
    }
  };
}
