/** Parses queries and forms by the rules of the protocol, which refuses bad escapes. */

import { StoreError } from "../../store/core/refusal.ts";

/** Parameters by name, each with the first value that was sent. */
export type FormFields = ReadonlyMap<string, string>;

const noFields: FormFields = new Map();
const badEscape = /%(?![0-9a-f]{2})/i;
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Reads `name=value` pairs.
 * @param text one character for each byte, as latin1 decodes it.
 * @throws {StoreError} invalidForm for a bad escape or a raw semicolon.
 */
export function parseFields(text: string): FormFields {
  if (text === "") return noFields;
  const pairs = text.split("&").filter((pair) => pair !== "");
  // If a text has a semicolon and a bad escape, Go's url.ParseQuery reports the semicolon, in any order.
  if (text.includes(";")) throw new StoreError("invalidForm", "invalid semicolon separator in query", 0);
  const fields = new Map<string, string>();
  for (const pair of pairs) {
    const equals = pair.indexOf("=");
    const name = decodeField(equals < 0 ? pair : pair.slice(0, equals));
    const value = decodeField(equals < 0 ? "" : pair.slice(equals + 1));
    if (!fields.has(name)) fields.set(name, value);
  }
  return fields;
}

/** True if a percent sign in the text lacks its two hexadecimal digits. */
export function hasBadEscape(text: string): boolean {
  return badEscape.test(text);
}

/** Percent-decodes a text without bad escapes; bytes that are not UTF-8 become U+FFFD. */
export function decodeEscapes(text: string): string {
  // Most texts have no escapes.
  if (!/[%\x80-\xff]/.test(text)) return text;
  const bytes = Buffer.allocUnsafe(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const isEscape = text[at] === "%";
    bytes[length] = isEscape ? Number.parseInt(text.slice(at + 1, at + 3), 16) : text.charCodeAt(at);
    if (isEscape) at += 2;
    length += 1;
  }
  return utf8.decode(bytes.subarray(0, length));
}

function decodeField(text: string): string {
  if (!/[%+\x80-\xff]/.test(text)) return text;
  const found = badEscape.exec(text);
  if (found !== null) {
    const shown = text.slice(found.index, found.index + 3);
    throw new StoreError("invalidForm", `invalid URL escape "${utf8.decode(Buffer.from(shown, "latin1"))}"`, 0);
  }
  return decodeEscapes(text.replaceAll("+", " "));
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const mediaType = new RegExp(`^(${token})(?:(/)(${token})?)?(.*)$`, "s");
const parameter = new RegExp(`^\\s*;\\s*(${token})\\s*=\\s*(?:${token}|"(?:[^"\\\\\\r\\n]|\\\\.)*")`);

const formType = "application/x-www-form-urlencoded";

/**
 * True for the content type of a form. Other content types are allowed, and their bodies are not read.
 * @throws {StoreError} invalidForm for a content type that Go's mime.ParseMediaType refuses.
 */
export function isForm(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "") return false;
  // Nearly every form has exactly this content type.
  if (contentType === formType) return true;
  const semicolon = contentType.indexOf(";");
  const base = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
  checkMediaType(base);
  if (semicolon >= 0) checkParameters(contentType.slice(semicolon));
  return base === formType;
}

function checkMediaType(base: string): void {
  const [, type, slash, subtype, rest = ""] = mediaType.exec(base) ?? [];
  if (type === undefined) throw badMediaType("no media type");
  if (slash === undefined && rest !== "") throw badMediaType("expected slash after first token");
  if (slash !== undefined && subtype === undefined) throw badMediaType("expected token after slash");
  if (rest !== "") throw badMediaType("unexpected content after media subtype");
}

function checkParameters(text: string): void {
  const names = new Set<string>();
  let rest = text;
  while (rest.trim() !== "" && rest.trim() !== ";") {
    const [whole, name = ""] = parameter.exec(rest) ?? [];
    if (whole === undefined) throw badMediaType("invalid media parameter");
    if (names.has(name.toLowerCase())) throw badMediaType("duplicate parameter name");
    names.add(name.toLowerCase());
    rest = rest.slice(whole.length);
  }
}

function badMediaType(what: string): StoreError {
  return new StoreError("invalidForm", `mime: ${what}`, 0);
}
