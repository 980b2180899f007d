/**
 * Errors that only a bug in davit can cause, and helpers for any error. Other errors have classes in the directories
 * that throw them.
 */

/**
 * A bug in davit's own code. Nobody catches this error to continue: it ends the request or, in the store, the process.
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
 * Ends a switch over a union. If the switch lacks a case, the call does not compile.
 * @throws {BugError} always: only a value that its type forbids gets here.
 */
export function unreachable(value: never): never {
  throw new BugError(`Unreachable case: ${JSON.stringify(value)}`);
}

/** Returns the text of a thrown value for a log line: the message of an error, or any other value as text. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Returns the `code` of a system error, such as `ENOENT`; undefined for anything else. */
export function codeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/**
 * Returns the class of an error and its stack, without the message: a bug's message may quote a user's text. A message
 * may have several lines, so the result has only lines of the stack that name a file.
 */
export function placeOf(thrown: unknown): { readonly err: string; readonly stack: string } {
  if (!(thrown instanceof Error)) return { err: typeof thrown, stack: "" };
  const { name, message, stack = "" } = thrown;
  const head = `${name}: ${message}`;
  const rest = stack.startsWith(head) ? stack.slice(head.length) : stack;
  const frames = rest.split("\n").filter((line) => /^ {4}at \S.*:\d+:\d+\)?$/.test(line));
  return { err: /^\w+$/.test(name) ? name : "Error", stack: frames.map((line) => line.trim()).join("\n") };
}
