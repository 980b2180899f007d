/**
 * Reads labels: what a machine claims about itself in the query of its request. docs/reference/api-boot.md, "Labels",
 * has the rules. davit skips or marks bad input instead of refusing it, because firmware cannot change its query.
 */

import { isOwnUuid, normalizeMac } from "./hardware-ids.ts";

/**
 * Maps label names to the values by which Groups select. This is a Map, so that `constructor` and `__proto__` are names
 * like any other.
 */
export interface Labels extends ReadonlyMap<string, string> {
  /** Absent in nearly every request. */
  readonly flaws?: LabelFlaws;
  /**
   * Further values of `uuid` and `mac`: those that the machine's Machine lists, without the value of the label itself.
   * A Group that names one of them names the machine. Absent if there are none.
   */
  readonly further?: ReadonlyMap<string, readonly string[]>;
}

/** One label. */
export type LabelPair = readonly [name: string, value: string];

/** Returns all values of a label; none without the label. */
export function valuesOf(labels: Labels, name: string): readonly string[] {
  const value = labels.get(name);
  const further = labels.further?.get(name) ?? [];
  return value === undefined ? further : [value, ...further];
}

/** Returns every label with each of its values. */
export function pairsOf(labels: Labels): Iterable<LabelPair> {
  if (labels.further === undefined) return labels;
  const further = [...labels.further].flatMap(([name, values]) => values.map((value) => [name, value] as const));
  return [...labels, ...further];
}

/** Returns the labels as a machine sends them by each of its identities: one value of `uuid` and of `mac` at a time. */
export function variantsOf(labels: Labels): readonly Labels[] {
  let variants: readonly Labels[] = [new Map(labels)];
  for (const name of labels.further?.keys() ?? []) {
    variants = variants.flatMap((variant) => valuesOf(labels, name).map((value) => new Map(variant).set(name, value)));
  }
  return variants;
}

/** Faults in a request's identity labels. */
interface LabelFlaws {
  /** Labels with a text that davit cannot read, such as `serial=%zz`; never `uuid`. */
  readonly unreadable: ReadonlySet<string>;
  /** Labels with several different values, such as `serial=a&serial=b`. */
  readonly repeated: ReadonlySet<string>;
  /** True if the request's uuid is malformed, or if many boards share it. Such a uuid counts as absent. */
  readonly isUuidNameless: boolean;
  /**
   * The labels to show to people, also those by which no Group selects:
   *
   * - `serial=a%00` is shown as the machine sent it, decoded.
   * - `serial=%zz` and `mac=bad` are not shown.
   */
  readonly sent: ReadonlyMap<string, string>;
}

/** Labels that have a meaning for davit. */
export const reservedLabels: ReadonlySet<string> = new Set(["uuid", "mac", "hostname", "serial", "domain", "arch"]);

/** The labels that name one machine. */
export const identityLabels: readonly string[] = ["uuid", "mac", "serial", "hostname"];
const identities: ReadonlySet<string> = new Set(identityLabels);

/** davit refuses a request with more labels. If davit dropped some of them, it could drop an identity label. */
const maxLabels = 256;

/** A query has more than `maxLabels` labels. */
export class LabelError extends Error {
  override readonly name = "LabelError";
}

/**
 * Reads labels from a raw query (without the `?`), by the rules of matchbox v0.9.0:
 *
 *   role=a&role=b   {role: "a"}
 *   role=%zz&os=b   {os: "b"}
 *   ARCH=a&Role=b   {arch: "a", Role: "b"}
 *
 * For identity labels davit adds rules:
 *
 *   serial=+s1      {serial: "s1"}
 *   serial=%zz      {}, with `serial` in `flaws.unreadable`
 *
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

/** Returns the labels to show to people: `LabelFlaws.sent`, or all labels if there are no flaws. */
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

class OddLabels {
  /** Identity labels for which `identityValue` has no value, with their decoded texts; undefined for `serial=%zz`. */
  readonly #texts = new Map<string, string | undefined>();
  readonly #repeated = new Set<string>();

  get size(): number {
    return this.#texts.size;
  }

  has(name: string): boolean {
    return this.#texts.has(name);
  }

  add(name: string, text: string | undefined): void {
    this.#texts.set(name, text);
  }

  /** Marks a label as repeated, unless `#texts` has the same value for this label (`oddKey`). */
  repeat(name: string, text: string | undefined): void {
    if (!this.has(name) || oddKey(name, this.#texts.get(name)) !== oddKey(name, text)) this.#repeated.add(name);
  }

  mark(labels: Map<string, string>): Labels {
    const unreadable = new Set<string>();
    const sent = new Map(labels);
    for (const [name, text] of this.#texts) {
      // A bad uuid and an empty MAC address count as absent, not as unreadable.
      if (name !== "uuid" && text?.trim() !== "") unreadable.add(name);
      // davit shows MAC addresses in normalised form only.
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
  if (name === "uuid") return uuidValue(text);
  if (!oddText.test(text)) return text;
  const value = text.trim();
  return unreadableText.test(value) ? undefined : value;
}

function uuidValue(text: string): string | undefined {
  if (isOwnUuid(text)) return text;
  const uuid = text.toLowerCase().trim();
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
