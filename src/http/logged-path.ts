/** What a log, a metric or the history may have of a path: a machine's report token is in its path, and is a secret. */

/** Returns a path without a report token, however it is escaped. */
export function withoutToken(path: string): string {
  // Most paths have no escapes.
  const plain = path.includes("%") ? path.replaceAll(/%[0-9a-f]{2}/gi, unescaped) : path;
  return /^\/*report\//i.test(plain) ? "/report" : path;
}

function unescaped(escaped: string): string {
  return String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
}
