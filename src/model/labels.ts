/**
 * Reads labels: what a machine claims about itself in the query of its request. Labels do not prove who the machine is.
 * docs/reference/api-boot.md, "Labels", has the rules. Bad input in a query is no error, because firmware cannot change
 * its query: davit skips or marks such input. Only a query with too many labels is an error.
 */

import { isOwnUuid, normalizeMac } from "./hardware-ids.ts";

/**
 * Maps label names to values. Groups select by these values. `sentLabels` returns these labels and unusable ones, by
 * which no Group selects. This is a Map, so that `constructor` and `__proto__` are names like any other.
 */
export interface Labels extends ReadonlyMap<string, string> {
  /** Faults in the identity labels. Nearly every request has none, and this member is then absent. */
  readonly flaws?: LabelFlaws;
}

/** Faults in a request's identity labels. */
export interface LabelFlaws {
  /** Labels that the request has, but with a text that davit cannot read. `uuid` is never one of them. */
  readonly unreadable: ReadonlySet<string>;
  /** Labels that the request has several times with different values. */
  readonly repeated: ReadonlySet<string>;
  /** True if the request's uuid is malformed, or if many boards share it. Such a uuid counts as absent. */
  readonly isUuidNameless: boolean;
  /**
   * Every label to show to people. A label without a usable value has the text that the machine sent. Malformed MAC
   * addresses and texts with a bad percent escape are left out.
   */
  readonly sent: ReadonlyMap<string, string>;
}

/** Labels that have a meaning for davit. Requests may write their names in any letter case, selectors in lower case. */
export const reservedLabels: ReadonlySet<string> = new Set(["uuid", "mac", "hostname", "serial", "domain", "arch"]);

/** The labels that name one machine. Other labels name what many machines share, such as a role or a place. */
export const identityLabels: readonly string[] = ["uuid", "mac", "serial", "hostname"];
const identities: ReadonlySet<string> = new Set(identityLabels);

/**
 * davit refuses a request with more labels. If it dropped the labels beyond the limit, it could drop the one that names
 * the machine.
 */
const maxLabels = 256;

/** A query has more than `maxLabels` labels. Firmware sends no such query. */
export class LabelError extends Error {
  override readonly name = "LabelError";
}

/**
 * Reads labels from a raw query (without the `?`), by the rules of matchbox v0.9.0. If a name comes several times, its
 * first value counts. davit drops a part of the query with a bad percent escape. Reserved names may be in any letter
 * case. davit also does what matchbox does not: it trims the values of identity labels, and records unreadable and
 * repeated identity labels in `flaws`.
 * @throws {LabelError} for more than 256 labels.
 */
export function labelsFromQuery(rawQuery: string): Labels {
  const read = new ReadLabels();
  // Most machines send no escapes, so this checks the whole query once, not each part.
  const decode = /[%+]/.test(rawQuery) ? decodeText : asItIs;
  for (let from = 0, end = 0; end < rawQuery.length; from = end + 1) {
    end = indexOrEnd(rawQuery, "&", from);
    if (end === from) continue;
    const equals = Math.min(indexOrEnd(rawQuery, "=", from), end);
    const name = decode(rawQuery.slice(from, equals));
    if (name !== undefined) read.add(name, decode(rawQuery.slice(equals + 1, end)));
  }
  return read.labels;
}

/**
 * Returns the labels to show to people. They include labels by which no Group selects, such as an unreadable serial, or
 * a uuid that many boards share.
 */
export function sentLabels(labels: Labels): ReadonlyMap<string, string> {
  return labels.flaws?.sent ?? labels;
}

class ReadLabels {
  readonly #labels = new Map<string, string>();
  #odd: OddLabels | undefined;

  get labels(): Labels {
    return this.#odd === undefined ? this.#labels : this.#odd.mark(this.#labels);
  }

  /** Adds one label of the query. @param text the decoded value; undefined if the value has a bad percent escape. */
  add(sent: string, text: string | undefined): void {
    const name = labelName(sent);
    if (identities.has(name)) this.#addIdentity(name, text);
    else if (text !== undefined) this.#addOther(name, text);
  }

  #addIdentity(name: string, text: string | undefined): void {
    const value = text === undefined ? undefined : identityValue(name, text);
    const known = this.#labels.get(name);
    if (known !== undefined || this.#odd?.has(name) === true) {
      if (value === undefined || known !== value) this.#oddOnes().repeat(name, text);
      return;
    }
    this.#assertRoom();
    if (value !== undefined) this.#labels.set(name, value);
    else this.#oddOnes().add(name, text);
  }

  #addOther(name: string, value: string): void {
    if (this.#labels.has(name)) return;
    this.#assertRoom();
    this.#labels.set(name, value);
  }

  #assertRoom(): void {
    if (this.#labels.size + (this.#odd?.size ?? 0) >= maxLabels) throw new LabelError(`More than ${maxLabels} labels`);
  }

  #oddOnes(): OddLabels {
    this.#odd ??= new OddLabels();
    return this.#odd;
  }
}

/** Collects the identity labels of a request that have no usable value, or several different values. */
class OddLabels {
  /** The labels without a usable value, each with its decoded text; undefined for a bad percent escape. */
  readonly #texts = new Map<string, string | undefined>();
  readonly #repeated = new Set<string>();

  /** How many labels have no usable value. */
  get size(): number {
    return this.#texts.size;
  }

  has(name: string): boolean {
    return this.#texts.has(name);
  }

  add(name: string, text: string | undefined): void {
    this.#texts.set(name, text);
  }

  /**
   * Compares a further value of a label with the label's first value. If the two differ, the label counts as repeated.
   * If the first value is usable, the caller has already found the difference.
   */
  repeat(name: string, text: string | undefined): void {
    if (!this.has(name) || oddKey(name, this.#texts.get(name)) !== oddKey(name, text)) this.#repeated.add(name);
  }

  mark(labels: Map<string, string>): Labels {
    const unreadable = new Set<string>();
    const sent = new Map(labels);
    for (const [name, text] of this.#texts) {
      // A uuid without a usable value counts as absent (`isUuidNameless`), not as unreadable. So does an empty MAC
      // address.
      if (name !== "uuid" && text?.trim() !== "") unreadable.add(name);
      // davit shows MAC addresses in their normalised form only. A malformed address has no such form.
      if (name !== "mac" && text !== undefined) sent.set(name, name === "uuid" ? text.trim().toLowerCase() : text);
    }
    const isUuidNameless = this.has("uuid");
    const flaws: LabelFlaws = { unreadable, repeated: this.#repeated, isUuidNameless, sent };
    return Object.assign(labels, { flaws });
  }
}

/** Returns a key for a value of an identity label. Values with the same meaning have equal keys. */
function oddKey(name: string, text: string | undefined): string | undefined {
  const value = text === undefined ? undefined : identityValue(name, text);
  if (value !== undefined) return value;
  return name === "uuid" ? "" : text?.trim();
}

function indexOrEnd(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at;
}

/**
 * Returns the value of an identity label in the form by which Groups select. Returns undefined if the value cannot be
 * read, or if the value is a uuid that many boards share.
 */
function identityValue(name: string, text: string): string | undefined {
  // Nearly every value is well-formed, so each quick check comes before the slow ones.
  if (name === "mac") return normalizeMac(text) ?? normalizeMac(text.trim());
  if (text === "") return text;
  if (name === "uuid") return uuidValue(text.toLowerCase());
  if (!oddText.test(text)) return text;
  const value = text.trim();
  return unreadableText.test(value) ? undefined : value;
}

function uuidValue(lower: string): string | undefined {
  if (isOwnUuid(lower)) return lower;
  const uuid = lower.trim();
  return uuid === "" || isOwnUuid(uuid) ? uuid : undefined;
}

// Matches control characters and U+FFFD. `decodeText` puts U+FFFD in the place of bytes that are not UTF-8.
const unreadableText = /[\p{Cc}\uFFFD]/u;
// Matches what `unreadableText` matches, and also blanks at the start or the end of a value.
const oddText = /[\p{Cc}\uFFFD]|^\s|\s$/u;

/**
 * Returns the form in which davit stores a selector's value and compares it with labels. Values of `mac` and `uuid` are
 * in lower case. Values of `uuid`, `serial` and `hostname` lose the blanks around them. All other values are unchanged.
 * @returns undefined for a malformed MAC address, which no machine's label can equal.
 */
export function normalizeLabel(name: string, value: string): string | undefined {
  if (name === "mac") return normalizeMac(value);
  if (!identities.has(name)) return value;
  // A value of only blanks stays as it is, and matches no machine. Trimmed, it would match the many machines that send
  // an empty value.
  const text = value.trim() === "" ? value : value.trim();
  return name === "uuid" ? text.toLowerCase() : text;
}

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

/**
 * Decodes percent escapes, and `+` as a space. Bytes that are not UTF-8 become U+FFFD. Returns undefined for a text
 * with a bad percent escape.
 */
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
