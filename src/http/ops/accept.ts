/** Chooses between text and JSON by a request's `Accept` header (RFC 9110, 12.5.1). */

/**
 * True if the header names JSON, and prefers it to text. Without a preference the answer is text: `curl` accepts
 * anything, and its user is a person.
 */
export function prefersJson(accept = ""): boolean {
  const weights = new Map(accept.split(",").map(weighed));
  const json = weights.get("application/json") ?? weights.get("application/*") ?? 0;
  const text = weights.get("text/plain") ?? weights.get("text/*") ?? 0;
  const anything = weights.get("*/*") ?? 0;
  return json > 0 && json > text && json >= anything;
}

/** A media range and its weight from 0 to 1. */
function weighed(range: string): readonly [type: string, weight: number] {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
  return [type, weight === undefined ? 1 : Number.parseFloat(weight) || 0];
}
