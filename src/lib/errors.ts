/** Programmer errors: what can only be wrong if davit itself is. Errors of the world have a class in their own domain. */

/** A broken promise of our own code. Never caught to go on: it ends the request or, in the store, the process. */
export class BugError extends Error {
  override readonly name = "BugError";
}

/**
 * States a fact that our own code guarantees.
 * @throws {BugError} when the fact does not hold.
 */
export function assert(fact: boolean, message: string): asserts fact {
  if (!fact) throw new BugError(message);
}

/**
 * Closes a switch over a union: the compiler refuses a call for which a case was forgotten.
 * @throws {BugError} always, for a value that its type forbids.
 */
export function unreachable(value: never): never {
  throw new BugError(`Unreachable case: ${JSON.stringify(value)}`);
}

/** The text of something thrown, for a log line: a message for errors, the value itself for anything else. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The `code` of a system error such as `ENOENT`, or undefined for anything else. */
export function codeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}
