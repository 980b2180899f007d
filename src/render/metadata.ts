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
 * Writes the metadata of a machine.
 * @param rawQuery as sent, without the `?`; HTTP allows no line breaks in it.
 * @throws {RenderError} for metadata nested or grown beyond reason.
 */
export function renderMetadata(group: Group, labels: Labels, rawQuery: string): Rendered {
  assert(!/[\r\n]/.test(rawQuery), "A raw query with a line break reached the metadata renderer");
  const metadata = toBlock(flatten(group.metadata));
  const selector = toBlock([...group.selector].map(([label, value]) => ({ path: [label], value })));
  const query = toBlock([...labels].map(([label, value]) => ({ path: ["request", "query", label], value })));
  const mac = labels.get("mac");
  // The contract lists the line without a condition: a machine is told its own MAC where nothing else names one.
  if (mac !== undefined && !metadata.has("MAC") && !selector.has("MAC")) selector.set("MAC", mac);
  // Never quoted: the contract has it exactly as sent.
  const raw = new Map([["REQUEST_RAW_QUERY", rawQuery]]);
  const blocks = [metadata, selector, query, raw];
  const lines = blocks.flatMap((block, at) => linesOf(block, blocks.slice(at + 1)));
  return { body: lines.join(""), contentType: plainText };
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

/** Name to value as it is written. */
type NamedValues = Map<string, string>;

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

/** Names the leaves. Of several with one name, the lowest path in byte order stays. */
function toBlock(leaves: readonly Leaf[]): NamedValues {
  const lowestLast = leaves.toSorted((a, b) => comparePaths(b.path, a.path));
  return new Map(lowestLast.map(({ path, value }) => [nameOf(path), quote(value)]));
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

function linesOf(block: NamedValues, laterBlocks: readonly NamedValues[]): readonly string[] {
  return [...block]
    .filter(([name]) => !laterBlocks.some((later) => later.has(name)))
    .toSorted(([a], [b]) => compareBytes(a, b))
    .map(([name, value]) => `${name}=${value}\n`);
}
