/**
 * Labels: what a machine says of itself in the query of its request. They are claims, not proof of identity.
 * Rules: docs/api-boot.md, "Labels". Bad input is dropped here, never an error: firmware cannot mend its query.
 */

/** Label name to value. A Map, so that `constructor` and `__proto__` are names like any other. */
export type Labels = ReadonlyMap<string, string>;

/** A MAC address in lower case with colons: 6, 8 (EUI-64) or 20 (InfiniBand) bytes. */
export type MacAddress = string & { readonly brand: "MacAddress" };

/** Names with a meaning of their own. Requests may write them in any letter case, selectors only like this. */
export const reservedLabels: ReadonlySet<string> = new Set(["uuid", "mac", "hostname", "serial", "domain", "arch"]);

/** Labels that name one machine, as against a role or a place. */
export const identityLabels: readonly string[] = ["uuid", "mac", "serial", "hostname"];

/** What many cheap boards say, whoever they are. */
export const zeroUuid = "00000000-0000-0000-0000-000000000000";

/** More labels than this are refused: whoever read only the first ones might miss the one that names the machine. */
const maxLabels = 256;

/** A query from which no labels can be taken. Firmware does not send such a one. */
export class LabelError extends Error {
  override readonly name = "LabelError";
}

/**
 * Reads labels from a raw query (without the `?`), as matchbox v0.9.0 does: the first value of a name
 * counts, a part with a bad percent escape is dropped, reserved names match in any case, and an invalid MAC is no label.
 * @throws {LabelError} for more than 256 names.
 */
export function labelsFromQuery(rawQuery: string): Labels {
  const labels = new Map<string, string>();
  const invalid = new Set<string>();
  // Most machines send nothing that is escaped, and are asked for that only once.
  const decode = /[%+]/.test(rawQuery) ? decodeText : asItIs;
  for (let from = 0, end = 0; end < rawQuery.length; from = end + 1) {
    end = indexOrEnd(rawQuery, "&", from);
    if (end === from) continue;
    const equals = Math.min(indexOrEnd(rawQuery, "=", from), end);
    const name = decode(rawQuery.slice(from, equals));
    const text = decode(rawQuery.slice(equals + 1, end));
    if (name === undefined || text === undefined) continue;
    addLabel(labelName(name), text, labels, invalid);
  }
  return labels;
}

/** Reserved names that a query has and `labelsFromQuery` makes no label of: their values cannot be read. */
export function unreadableLabels(rawQuery: string): readonly string[] {
  const labels = labelsFromQuery(rawQuery);
  const names = rawQuery.split("&").map((part) => labelName(decodeText(part.split("=", 1)[0] ?? "") ?? ""));
  return [...new Set(names)].filter((name) => reservedLabels.has(name) && !labels.has(name));
}

function indexOrEnd(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at;
}

/** The first value counts even when it is invalid: a second `mac` cannot replace a bad one. */
function addLabel(name: string, text: string, labels: Map<string, string>, invalid: Set<string>): void {
  if (labels.has(name) || invalid.has(name)) return;
  if (labels.size + invalid.size >= maxLabels) throw new LabelError(`More than ${maxLabels} labels`);
  const value = normalizeLabel(name, text);
  if (value === undefined) invalid.add(name);
  else labels.set(name, value);
}

/**
 * The form in which a label's value is stored and compared: `mac` and `uuid` in lower case, anything else as it is.
 * Used for requests and selectors alike.
 * @returns undefined when the value cannot be one of that label (`mac` only).
 */
export function normalizeLabel(name: string, value: string): string | undefined {
  if (name === "mac") return normalizeMac(value);
  return name === "uuid" ? value.toLowerCase() : value;
}

/** Reads a MAC address in any of the forms below; undefined when it is none. */
export function normalizeMac(text: string): MacAddress | undefined {
  if (!macForms.test(text)) return undefined;
  const lower = text.toLowerCase();
  // What iPXE sends needs no more than other separators.
  if (lower[2] === "-" || lower[2] === ":") return lower.replaceAll("-", ":") as MacAddress;
  return lower.replaceAll(".", "").replaceAll(/..(?=.)/g, "$&:") as MacAddress;
}

// 6, 8 or 20 bytes by colons, hyphens or dotted groups of four digits (InfiniBand counts as 10 groups), or 12 or 16
// bare digits. One separator throughout.
const macForms = new RegExp(
  `^(?:${[
    ...[6, 8, 20].flatMap((bytes) => [":", "-"].map((mark) => `[0-9a-f]{2}(?:${mark}[0-9a-f]{2}){${bytes - 1}}`)),
    ...[6, 8, 20].map((bytes) => `[0-9a-f]{4}(?:\\.[0-9a-f]{4}){${bytes / 2 - 1}}`),
    "[0-9a-f]{12}",
    "[0-9a-f]{16}",
  ].join("|")})$`,
  "i",
);

/** True for a text that begins a MAC address in lower case with colons, as labels have it. */
export function isMacPrefix(text: string): boolean {
  return normalizeMac(text + wholeMac.slice(text.length)) === text + wholeMac.slice(text.length);
}

const wholeMac = Array.from({ length: 20 }, () => "00").join(":");

/** True for a UUID, in any letter case. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** True for a text that begins a UUID. */
export function isUuidPrefix(text: string): boolean {
  return isUuid(text + wholeUuid.slice(text.length));
}

const wholeUuid = "00000000-0000-0000-0000-000000000000";

function labelName(name: string): string {
  if (reservedLabels.has(name)) return name;
  const lower = name.toLowerCase();
  return reservedLabels.has(lower) ? lower : name;
}

function asItIs(text: string): string {
  return text;
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/** Percent-decodes; `+` is a space, bytes that are not UTF-8 become U+FFFD, a bad escape gives undefined. */
function decodeText(text: string): string | undefined {
  if (!/[%+]/.test(text)) return text;
  if (/%(?![0-9a-f]{2})/i.test(text)) return undefined;
  const spaced = text.replaceAll("+", " ");
  const bytes = spaced
    .split(/(%[0-9a-f]{2})/i)
    .flatMap((piece) => (isEscape(piece) ? [Number.parseInt(piece.slice(1), 16)] : [...encoder.encode(piece)]));
  return utf8.decode(Uint8Array.from(bytes));
}

function isEscape(piece: string): boolean {
  return piece.length === 3 && piece.startsWith("%");
}
