/**
 * Renders `/metadata`: everything that davit knows of a machine, as the text of an env file. Each line is `NAME=value`.
 * Each name occurs once, and each value takes one line. Equal input yields equal bytes, so a signature that is fetched
 * later is valid. To a shell, everything from the request is only data.
 *
 * The text has four blocks: metadata, selector, query, raw query. Each block is sorted by name. If two blocks share a
 * name, the later one wins.
 */

import { assert } from "../../lib/errors.ts";
import { compareBytes } from "../../lib/order.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import type { Group } from "../../model/objects/group.ts";
import { RenderError } from "../core/render-error.ts";
import { plainText, type Rendered } from "../core/rendered.ts";
import { isList, textOf, withDefaults } from "../core/values.ts";
import type { RenderBudget } from "../template/limits.ts";

// Deeper metadata is a mistake. Without a limit, names could become very long.
const maxDepth = 64;
// In characters of all names and values. A name contains every key on its path, so small metadata can yield a large
// text.
const maxLength = 8 * 1024 * 1024;

/**
 * The lines of a Group's metadata and selector, in their final order. A request can add a line `MAC`. It can also
 * override a line whose name begins with `REQUEST_`; few Groups have such lines.
 */
export interface GroupLines {
  /** The lines before `MAC`; one text if no request can override any of them. */
  readonly head: readonly EnvLine[] | string;
  /** The lines after `MAC`; one text if no request can override any of them. */
  readonly tail: readonly EnvLine[] | string;
  /** True if the Group's lines already have a `MAC`: then no request adds one. */
  readonly hasMac: boolean;
  /** True if one of the lines may leave a quote open for a shell. */
  readonly isOpen: boolean;
}

/**
 * Writes the part of `/metadata` that comes from a Group and its Profile.
 * @param defaults the Profile's metadata.
 * @param budget counts every value, and the work of sorting them.
 * @throws {RenderError} for metadata that is nested too deeply or becomes too long, or when the budget is used up.
 * @throws {TooLongHere} when a short budget is used up.
 */
export function groupLines(
  group: Pick<Group, "metadata" | "selector">,
  defaults?: JsonObject,
  budget?: RenderBudget,
): GroupLines {
  const leaves = flatten(withDefaults(group.metadata, defaults), budget);
  budget?.sort(leaves.length);
  const metadata = linesOf(leaves);
  const selector = linesOf(Object.entries(group.selector).map(([label, value]) => ({ path: [label], value })));
  const selected = new Set(selector.map(({ name }) => name));
  const own = metadata.filter(({ name }) => !selected.has(name));
  const macAt = own.length + selector.filter(({ name }) => compareBytes(name, macName) < 0).length;
  const all = [...own, ...selector];
  const hasRequestName = all.some(({ name }) => name.startsWith(requestPrefix));
  const hasMac = all.some(({ name }) => name === macName);
  const fixed = hasRequestName ? folded : joined;
  return { head: fixed(all.slice(0, macAt)), tail: fixed(all.slice(macAt)), hasMac, isOpen: all.some(leavesOpen) };
}

/** Merges neighbouring lines that no request can override into one line without a name. */
function folded(lines: readonly EnvLine[]): readonly EnvLine[] {
  const folds: EnvLine[] = [];
  let from = 0;
  for (const [at, line] of lines.entries()) {
    if (!line.name.startsWith(requestPrefix)) continue;
    if (at > from) folds.push({ name: "", text: joined(lines.slice(from, at)) });
    folds.push(line);
    from = at + 1;
  }
  return [...folds, { name: "", text: joined(lines.slice(from)) }];
}

/** Returns how many lines are compared with the names of each request. */
export function openLineCount({ head, tail }: GroupLines): number {
  const count = (part: GroupLines["head"]) => (typeof part === "string" ? 0 : part.length);
  return count(head) + count(tail);
}

/**
 * Writes the whole `/metadata` of a machine.
 * @param lines the result of `groupLines` for the machine's Group.
 * @param rawQuery as sent, without the `?`; HTTP allows no line breaks in it.
 */
export function renderMetadata(lines: GroupLines, labels: Labels, rawQuery: string): Rendered {
  const { head, tail, hasMac, isOpen } = lines;
  const query = queryValues(sentLabels(labels));
  const ofRequest: number[] = [];
  let body = without(head, query);
  const add = (start: string, value: string) => {
    body += start;
    ofRequest.push(body.length, body.length + value.length);
    body += `${value}\n`;
  };
  // Every machine that sends a MAC gets a line `MAC`: the Group's line, or else this one.
  const mac = labels.get("mac");
  if (mac !== undefined && !hasMac) add(`${macName}=`, mac);
  body += without(tail, query);
  for (const { start, at } of query.lines) add(start, requestValue(query.values[at] ?? "", isOpen));
  add(`${rawQueryName}=`, requestQuery(rawQuery, isOpen));
  return { body, contentType: plainText, ofRequest };
}

/**
 * Returns the names that several values of a Group's metadata share, sorted. `/metadata` shows one value for each name.
 * @throws {RenderError} as `groupLines`.
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

const macName = "MAC";
/** The prefix of every name that comes from a request. */
const requestPrefix = "REQUEST_";
const rawQueryName = `${requestPrefix}RAW_QUERY`;

/** Lists the scalars of an object. It skips the key `request`, because the request's own lines begin with that name. */
function flatten(metadata: JsonObject, budget?: RenderBudget): readonly Leaf[] {
  const leaves = new Leaves(budget);
  for (const [key, value] of Object.entries(metadata)) if (key !== "request") collect(value, [key], leaves);
  return leaves.found;
}

class Leaves {
  readonly found: Leaf[] = [];
  readonly #budget: RenderBudget | undefined;
  #length = 0;

  constructor(budget: RenderBudget | undefined) {
    this.#budget = budget;
  }

  /** Counts a visited value, which can be a list or an object. */
  count(path: readonly string[]): void {
    this.#budget?.count(1 + path.length);
  }

  add(leaf: Leaf): void {
    this.#length += leaf.value.length;
    for (const key of leaf.path) this.#length += key.length + 1;
    if (this.#length > maxLength) throw new RenderError("metadataTooLarge");
    this.found.push(leaf);
  }
}

function collect(value: JsonValue, path: readonly string[], leaves: Leaves): void {
  if (path.length > maxDepth) throw new RenderError("metadataTooDeep");
  leaves.count(path);
  if (isList(value)) {
    for (const [index, item] of value.entries()) collect(item, [...path, String(index)], leaves);
  } else if (isJsonObject(value)) {
    for (const [key, item] of Object.entries(value)) collect(item, [...path, key], leaves);
  } else if (value !== null) {
    leaves.add({ path, value: textOf(value) });
  }
}

/** Returns a Group's lines, except those whose names the request overrides. */
function without(lines: GroupLines["head"], query: QueryValues): string {
  if (typeof lines === "string") return lines;
  const names = new Set([rawQueryName, ...query.lines.map(({ name }) => name)]);
  return joined(lines.filter(({ name }) => !names.has(name)));
}

// The pattern leaves out `=`, so that no reader takes a value for an assignment.
const harmless = /^[A-Za-z0-9._:@%+,/-]*$/;

// The pattern allows the `&` and `=` of queries. Every part after an `&` needs a `=`, unless it is empty: a shell would
// run any other part as a command.
const harmlessQuery = /^[A-Za-z0-9._:@%+,/=-]*(?:&(?:[A-Za-z0-9._:@%+,/-]*=[A-Za-z0-9._:@%+,/=-]*)?)*$/;

/**
 * Writes a request's value for the right side of an env line, so that a shell that sources the answer reads it as data
 * only. A harmless value stays bare. Any other value gets single
 * quotes, and `?` for each control character.
 * @param isOpen true if earlier lines leave a quote open: then quotes do not protect. So `?` replaces each character
 * that is not harmless.
 */
function requestValue(value: string, isOpen: boolean): string {
  if (harmless.test(value)) return value;
  return isOpen ? masked(value) : inSingleQuotes(value.replaceAll(/\p{Cc}/gu, "?"));
}

/**
 * Writes a raw query for the right side of an env line. Unless `isOpen`, it replaces no characters: HTTP allows no
 * control characters in a query.
 * @param isOpen as for `requestValue`.
 */
function requestQuery(rawQuery: string, isOpen: boolean): string {
  if (harmlessQuery.test(rawQuery)) return rawQuery;
  assert(!/[\r\n]/.test(rawQuery), "A raw query with a line break reached the metadata renderer");
  return isOpen ? masked(rawQuery) : inSingleQuotes(rawQuery);
}

function masked(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9._:@%+,/-]/gu, "?");
}

function inSingleQuotes(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** The line of a label in the answer. */
interface QueryLine {
  readonly name: string;
  /** The name and a `=`. */
  readonly start: string;
  /** The position of the label, and of its value, in the request. */
  readonly at: number;
}

interface QueryValues {
  /** Sorted by name. If several labels share a name, the lowest label in byte order wins. */
  readonly lines: readonly QueryLine[];
  /** The values of all labels, in the order of the request. */
  readonly values: readonly string[];
}

/** The labels of a request up to one of them: a tree by labels has one `LabelOrder` for each order. */
class LabelOrder {
  readonly next = new Map<string, LabelOrder>();
  lines: readonly QueryLine[] | undefined;
}

/** The most cached orders. A site has some dozens, but a stranger can send any. */
const maxOrders = 1_000;
/** Requests with a longer label are not cached: no site has them. */
const maxLabelLength = 64;
let firstOrder = new LabelOrder();
let orderCount = 0;

/**
 * Returns the labels of a request as `/metadata` shows them: named and sorted. Machines send the same few labels in the
 * same order again and again, so the names and their order are cached. Making them takes longer than all the rest of an
 * answer.
 */
function queryValues(labels: ReadonlyMap<string, string>): QueryValues {
  const values: string[] = [];
  let order = firstOrder;
  for (const [label, value] of labels) {
    values.push(value);
    order = order.next.get(label) ?? grown(order, label);
  }
  order.lines ??= queryLinesOf([...labels.keys()]);
  return { lines: order.lines, values };
}

function grown(order: LabelOrder, label: string): LabelOrder {
  const next = new LabelOrder();
  if (label.length > maxLabelLength) return next;
  order.next.set(label, next);
  orderCount++;
  if (orderCount > maxOrders) [firstOrder, orderCount] = [new LabelOrder(), 0];
  return next;
}

function queryLinesOf(labels: readonly string[]): readonly QueryLine[] {
  const named = labels.map((label, at) => ({ label, at, name: nameOf(["request", "query", label]) }));
  const sorted = named.toSorted((a, b) => compareBytes(a.name, b.name) || compareBytes(a.label, b.label));
  return sorted
    .filter(({ name }, at) => name !== sorted[at - 1]?.name)
    .map(({ name, at }) => ({ name, start: `${name}=`, at }));
}

/** A scalar and the keys that lead to it. */
interface Leaf {
  readonly path: readonly string[];
  readonly value: string;
}

/** A `NAME=value` line. `text` is the whole line with its line break. */
interface EnvLine {
  readonly name: string;
  readonly text: string;
}

/**
 * Makes `NAME=value` lines of an env file, sorted by name. Every shell accepts the names, and each value takes one
 * line. If several leaves share a name, the leaf with the lowest path in byte order wins.
 */
function linesOf(leaves: readonly Leaf[]): readonly EnvLine[] {
  const named = leaves.map(({ path, value }) => ({ name: nameOf(path), path, value }));
  const sorted = named.toSorted((a, b) => compareBytes(a.name, b.name) || comparePaths(a.path, b.path));
  return (
    sorted
      .filter(({ name }, at) => name !== sorted[at - 1]?.name)
      // `join`, not `+`: V8 stores the result of `+` in pieces. These strings live as long as their Group, so memory
      // matters.
      .map(({ name, value }) => ({ name, text: [name, "=", quote(value), "\n"].join("") }))
  );
}

function comparePaths(a: readonly string[], b: readonly string[]): number {
  for (const [at, key] of a.entries()) {
    const order = at < b.length ? compareBytes(key, b[at] ?? "") : 1;
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Returns a path as a name that every shell accepts: upper-case letters, digits and `_`, without a leading digit. */
function nameOf(path: readonly string[]): string {
  const name = path
    .join("_")
    .toUpperCase()
    .replaceAll(/[^A-Z0-9_]/gu, "_");
  return /^(?:\d|$)/.test(name) ? `_${name}` : name;
}

/**
 * Writes a value of the metadata or the selector: as it is, so that every reader of env files gets the operator's text.
 * Only a value with a control character, which could break the line, gets double quotes and escapes.
 */
function quote(value: string): string {
  if (!/\p{Cc}/u.test(value)) return value;
  const escaped = value.replaceAll(/[\\"$`]/g, String.raw`\$&`).replaceAll(/\p{Cc}/gu, escapeControl);
  return `"${escaped}"`;
}

function escapeControl(character: string): string {
  const known = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  return known ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}

const escapeOrQuoted = /\\.|'[^']*'|"[^\\"`$]*(?:(?:\\.|\$(?![({[]))[^\\"`$]*)*"/gsu;

/**
 * True if a line leaves a quote, a substitution or the like open for a shell, so that the shell reads the next lines as
 * part of it. True also for some lines that do not.
 */
function leavesOpen({ text }: EnvLine): boolean {
  if (!/[\\"'`$<]/.test(text)) return false;
  return /\$["']/.test(text) || /[\\"'`]|\$[({[]|<</.test(text.slice(0, -1).replaceAll(escapeOrQuoted, ""));
}

/** Returns the lines as one text. */
function joined(lines: readonly EnvLine[]): string {
  return lines.map(({ text }) => text).join("");
}
