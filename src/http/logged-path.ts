/** What a log, a metric or the history may have of a path: a machine's report token is in its path, and is a secret. */

/**
 * Returns a path without a report token, in any spelling of it: also one that no route answers, because a token in the
 * log of a wrong URL is as good as one of the right URL.
 */
export function withoutToken(path: string): string {
  const plain = unescapedWhole(path);
  // Most paths have neither.
  if (!/report/i.test(plain) && !longName.test(plain)) return path;
  if (/(?:^|[^a-z\d])report(?:[^a-z\d.]|\.\w+[/\\]|$)/i.test(plain)) return "/report";
  // Names of assets can be as long as a token.
  const isLong = plain.split(/[^\w-]/).some((name) => longName.test(name) && !/^[\da-f-]+$/i.test(name));
  return isLong && !plain.startsWith("/assets/") ? "/[hidden]" : path;
}

/** Tokens have 32 letters. */
const longName = /[\w-]{32}/;

/** Removes all escapes, also those of escapes. Each round shortens the path. */
function unescapedWhole(path: string): string {
  const plain = path.replaceAll(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
  return plain === path ? path : unescapedWhole(plain);
}
