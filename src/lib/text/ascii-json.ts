/** Writes JSON in ASCII: terminals obey some other characters, and a text's length is its bytes. */

/** Returns a value as JSON in one line. Every character outside ASCII, and DEL, is escaped as `\uXXXX`. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
