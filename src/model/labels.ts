/**
 * Labels: what a machine claims about itself in the query of its request. They are no proof of identity.
 * Rules: docs/reference/api-boot.md, "Labels". davit drops bad input, because firmware cannot change its query. Only a
 * query with too many labels is an error.
 */

import { isOwnUuid, normalizeMac } from "./hardware-ids.ts";

/**
 * Label name to value. Groups may select by these values; `sentLabels` has further values, which identify no machine. A
 * Map, so that `constructor` and `__proto__` are names like any other.
 */
export interface Labels extends ReadonlyMap<string, string> {
  /** Absent in nearly every request. */
  readonly flaws?: LabelFlaws;
}

/** Faults in a request's identity labels. */
export interface LabelFlaws {
  /** Labels that are present but cannot be read. */
  readonly unreadable: ReadonlySet<string>;
  /** Labels that the request has several times, with different values. */
  readonly repeated: ReadonlySet<string>;
  /** The uuid is malformed, or shared by many boards: it counts as absent. */
  readonly isUuidNameless: boolean;
  /** The labels as the machine sent them, where davit can show that text. */
  readonly sent: ReadonlyMap<string, string>;
}

/** Label names that davit gives a meaning. Requests may write them in any letter case, selectors only in lower case. */
export const reservedLabels: ReadonlySet<string> = new Set(["uuid", "mac", "hostname", "serial", "domain", "arch"]);

/** Labels that name one machine, unlike a role or a place. */
export const identityLabels: readonly string[] = ["uuid", "mac", "serial", "hostname"];
const identities: ReadonlySet<string> = new Set(identityLabels);

/** A request with more labels is refused: the first labels alone may lack the label that names the machine. */
const maxLabels = 256;

/** The query has too many labels. Firmware sends no such query. */
export class LabelError extends Error {
  override readonly name = "LabelError";
}

/**
 * Reads labels from a raw query (without the `?`), with the rules of matchbox v0.9.0. The first value of a name counts.
 * A part with a bad percent escape is dropped. Reserved names may be in any letter case. Beyond matchbox, davit trims
 * the values of identity labels, and records unreadable and repeated ones in `flaws`.
 * @throws {LabelError} for more than 256 names.
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
 * Returns the labels as the machine sent them, for display. They include a uuid that names no machine, and an
 * unreadable serial.
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

  /** Adds a part of the query. @param text undefined for a bad escape. */
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

/** The identity labels of a request that have no usable value, or several. */
class OddLabels {
  /** Labels without a usable value, with the decoded text that the machine sent; undefined for a bad escape. */
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

  /** Records a further value of a label as a repetition if it differs from the first one. */
  repeat(name: string, text: string | undefined): void {
    if (!this.has(name) || oddKey(name, this.#texts.get(name)) !== oddKey(name, text)) this.#repeated.add(name);
  }

  mark(labels: Map<string, string>): Labels {
    const unreadable = new Set<string>();
    const sent = new Map(labels);
    for (const [name, text] of this.#texts) {
      // A uuid without a usable value identifies nothing, so it need not be readable. An empty MAC address is absent.
      if (name !== "uuid" && text?.trim() !== "") unreadable.add(name);
      // A MAC address is only shown in its normalised form, which a malformed one does not have.
      if (name !== "mac" && text !== undefined) sent.set(name, name === "uuid" ? text.trim().toLowerCase() : text);
    }
    const isUuidNameless = this.has("uuid");
    const flaws: LabelFlaws = { unreadable, repeated: this.#repeated, isUuidNameless, sent };
    return Object.assign(labels, { flaws });
  }
}

/** Returns a text that is equal for values with the same meaning. */
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
 * Returns the value of an identity label in the form by which Groups select. Undefined if the value cannot be read, or
 * if it is a uuid that many boards share.
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

// `decodeText` replaces bytes that are not UTF-8 by U+FFFD.
const unreadableText = /[\p{Cc}\uFFFD]/u;
/** Matches what `unreadableText` matches, and blanks at either end. */
const oddText = /[\p{Cc}\uFFFD]|^\s|\s$/u;

/**
 * Returns the form in which a selector's value is stored and compared with labels. `mac` and `uuid` are in lower case.
 * Identity labels have no blanks around them. All other values are unchanged.
 * @returns undefined when the label cannot have the value (`mac` only).
 */
export function normalizeLabel(name: string, value: string): string | undefined {
  if (name === "mac") return normalizeMac(value);
  if (!identities.has(name)) return value;
  // A value of blanks matches no machine. It is not trimmed, because many machines send an empty value.
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

/** Decodes percent escapes, and `+` as a space. Bytes that are not UTF-8 become U+FFFD. Undefined for a bad escape. */
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
