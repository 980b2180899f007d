/**
 * `/metadata`: everything known of a machine as env-file text. One `NAME=value` per line, each name once, and one value
 * is always one line; the same input yields the same bytes, so that a signature fetched later verifies.
 *
 * Four blocks, each sorted by name: metadata, selector, query, raw query. A later block wins a name over an earlier one.
 */

import { assert } from "../lib/errors.ts";
import { compareBytes } from "../lib/order.ts";
import type { Group } from "../model/group.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../model/json.ts";
import type { Labels } from "../model/labels.ts";
import { RenderError } from "./render-error.ts";
import { plainText, type Rendered } from "./rendered.ts";
import { isList, textOf } from "./values.ts";

// More nesting than this is a mistake, and names would grow without end.
const maxDepth = 64;
// In characters of names and values. A name has all keys on the way to it, so that little metadata can become a lot.
const maxLength = 8 * 1024 * 1024;

/**
 * A Group's own lines, in the order in which they are told. They are the same for every request that has no name of
 * theirs, which no request has but for those that begin with `REQUEST_`.
 */
export interface GroupLines {
  /** Up to the place of `MAC`. */
  readonly head: readonly Line[] | string;
  /** From there on. */
  readonly tail: readonly Line[] | string;
  readonly hasMac: boolean;
}

/**
 * Writes what `/metadata` tells of a Group whoever asks.
 * @throws {RenderError} for metadata nested or grown beyond reason.
 */
export function groupLines(group: Group): GroupLines {
  const metadata = linesOf(flatten(group.metadata));
  const selector = linesOf([...group.selector].map(([label, value]) => ({ path: [label], value })));
  const selected = new Set(selector.map(({ name }) => name));
  const own = metadata.filter(({ name }) => !selected.has(name));
  const macAt = own.length + selector.filter(({ name }) => compareBytes(name, macName) < 0).length;
  const all = [...own, ...selector];
  const fixed = all.some(({ name }) => name.startsWith(requestPrefix)) ? (lines: readonly Line[]) => lines : joined;
  const hasMac = all.some(({ name }) => name === macName);
  return { head: fixed(all.slice(0, macAt)), tail: fixed(all.slice(macAt)), hasMac };
}

/**
 * Writes the metadata of a machine.
 * @param rawQuery as sent, without the `?`; HTTP allows no line breaks in it.
 */
export function renderMetadata({ head, tail, hasMac }: GroupLines, labels: Labels, rawQuery: string): Rendered {
  assert(!/[\r\n]/.test(rawQuery), "A raw query with a line break reached the metadata renderer");
  const query = linesOf([...labels].map(([label, value]) => ({ path: ["request", "query", label], value })));
  const mac = labels.get("mac");
  // The contract lists the line without a condition: a machine is told its own MAC where nothing else names one.
  const ownMac = mac === undefined || hasMac ? "" : `${macName}=${mac}\n`;
  // Never quoted: the contract has it exactly as sent.
  const raw = { name: `${requestPrefix}RAW_QUERY`, text: `${requestPrefix}RAW_QUERY=${rawQuery}\n` };
  const request = [...query, raw];
  const body = without(head, request) + ownMac + without(tail, request) + joined(request);
  return { body, contentType: plainText };
}

/**
 * Names that several values of a Group's metadata would have, sorted; `/metadata` shows one value each.
 * @throws {RenderError} as `renderMetadata`.
 */
export function sharedNames(metadata: JsonObject): readonly string[] {
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const { path } of flatten(metadata)) {
    const name = nameOf(path);
    if (seen.has(name)) shared.add(name);
    seen.add(name);
  }
  return [...shared].toSorted(compareBytes);
}

/** A scalar and the keys that lead to it. */
interface Leaf {
  readonly path: readonly string[];
  readonly value: string;
}

/** `NAME=value`, with its line's end. */
interface Line {
  readonly name: string;
  readonly text: string;
}

const macName = "MAC";
/** What every name begins with that comes from a request. */
const requestPrefix = "REQUEST_";

/** The scalars of an object. Its `request` is not among them: the request's own lines have that name. */
function flatten(metadata: JsonObject): readonly Leaf[] {
  const leaves = new Leaves();
  for (const [key, value] of Object.entries(metadata)) if (key !== "request") collect(value, [key], leaves);
  return leaves.found;
}

class Leaves {
  readonly found: Leaf[] = [];
  #length = 0;

  add(leaf: Leaf): void {
    this.#length += leaf.value.length;
    for (const key of leaf.path) this.#length += key.length + 1;
    if (this.#length > maxLength) throw new RenderError("metadataTooLarge");
    this.found.push(leaf);
  }
}

function collect(value: JsonValue, path: readonly string[], leaves: Leaves): void {
  if (path.length > maxDepth) throw new RenderError("metadataTooDeep");
  if (isList(value)) {
    for (const [index, item] of value.entries()) collect(item, [...path, String(index)], leaves);
  } else if (isJsonObject(value)) {
    for (const [key, item] of Object.entries(value)) collect(item, [...path, key], leaves);
  } else if (value !== null) {
    leaves.add({ path, value: textOf(value) });
  }
}

/** Names the leaves and sorts them by name. Of several with one name, the lowest path in byte order stays. */
function linesOf(leaves: readonly Leaf[]): readonly Line[] {
  const named = leaves.map(({ path, value }) => ({ name: nameOf(path), path, value }));
  const sorted = named.toSorted((a, b) => compareBytes(a.name, b.name) || comparePaths(a.path, b.path));
  return sorted
    .filter(({ name }, at) => name !== sorted[at - 1]?.name)
    .map(({ name, value }) => ({ name, text: `${name}=${quote(value)}\n` }));
}

function comparePaths(a: readonly string[], b: readonly string[]): number {
  for (const [at, key] of a.entries()) {
    const order = at < b.length ? compareBytes(key, b[at] ?? "") : 1;
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** A path as a variable's name that every shell takes: upper-case letters, digits and `_`, and no digit in front. */
function nameOf(path: readonly string[]): string {
  const name = path
    .join("_")
    .toUpperCase()
    .replaceAll(/[^A-Z0-9_]/gu, "_");
  return /^(?:\d|$)/.test(name) ? `_${name}` : name;
}

/** A value as it stands behind the `=`: raw where that is safe, else in double quotes with escapes. */
function quote(value: string): string {
  if (!/[\p{Cc}\\]|^["'#\s]|\s$/u.test(value)) return value;
  const escaped = value.replaceAll(/[\\"$`]/g, String.raw`\$&`).replaceAll(/\p{Cc}/gu, escapeControl);
  return `"${escaped}"`;
}

function escapeControl(character: string): string {
  const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  return known ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

function joined(lines: readonly Line[]): string {
  return lines.map(({ text }) => text).join("");
}

/** A Group's lines but those whose names the request has, too. */
function without(lines: GroupLines["head"], request: readonly Line[]): string {
  if (typeof lines === "string") return lines;
  return joined(lines.filter((own) => !request.some(({ name }) => name === own.name)));
}
