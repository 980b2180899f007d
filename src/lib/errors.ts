/**
 * Programmer errors: conditions that are wrong only if davit itself is. Errors of the world have a class in their own
 * domain.
 */

/**
 * A bug in davit's own code. No caller catches it to continue: it ends the request or, in the store, the process.
 */
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

/**
 * The kind of an error and where it was thrown, without its message: a bug's message may quote a user's text. Lines
 * that are not frames of a file are left out, since a message may have several lines.
 */
export function placeOf(thrown: unknown): { readonly err: string; readonly stack: string } {
  if (!(thrown instanceof Error)) return { err: typeof thrown, stack: "" };
  const { name, message, stack = "" } = thrown;
  const head = `${name}: ${message}`;
  const rest = stack.startsWith(head) ? stack.slice(head.length) : stack;
  const frames = rest.split("\n").filter((line) => /^ {4}at \S.*:\d+:\d+\)?$/.test(line));
  return { err: /^\w+$/.test(name) ? name : "Error", stack: frames.map((line) => line.trim()).join("\n") };
}
