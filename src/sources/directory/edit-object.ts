/**
 * Edits an object in the text of a manifest. It replaces and inserts as few characters as it can, so comments, layout
 * and every other object stay byte for byte. It parses the result again, and refuses one with any other change, as
 * aliases can cause.
 */

import { isDeepStrictEqual } from "node:util";
import { type Document, isMap, isScalar, isSeq, type Pair, parseAllDocuments, type YAMLMap } from "yaml";
import { isJsonObject, type JsonObject, type JsonValue, objectOf } from "../../model/json.ts";
import { apiGroup, type ObjectName } from "../../model/objects/source.ts";
import type { TextFormat } from "./yaml-documents.ts";

/** `absent`: the text does not define the object. `unclear`: it cannot be edited without a change of anything else. */
type EditOutcome =
  | { readonly kind: "edited"; readonly text: string }
  | { readonly kind: "absent" }
  | { readonly kind: "unclear" };

/** Returns the object as it is in the text; undefined if the text does not define it, or cannot be read. */
export function objectIn(text: string, format: TextFormat, name: ObjectName): JsonObject | undefined {
  const documents = parse(text, format);
  const [found] = documents === undefined ? [] : nodesOf(documents, name);
  return found && jsonOf(found);
}

/** Sets members of an object's `spec`, as a merge patch does: members that the change does not name stay. */
export function editObject(
  text: string,
  format: TextFormat,
  { name, spec }: { readonly name: ObjectName; readonly spec: JsonObject },
): EditOutcome {
  const documents = parse(text, format) ?? [];
  const [found, other] = nodesOf(documents, name);
  if (found === undefined) return { kind: "absent" };
  if (other !== undefined) return { kind: "unclear" };
  const splices: Splice[] = [];
  const edit = { text, format, splices };
  if (!merge(edit, found.node, { spec })) return { kind: "unclear" };
  const edited = spliced(text, splices);
  return isOnlyEdit(documents, parse(edited, format), { name, spec })
    ? { kind: "edited", text: edited }
    : { kind: "unclear" };
}

type ParsedDocuments = readonly Document.Parsed[];

function parse(text: string, format: TextFormat): ParsedDocuments | undefined {
  const options = format === "json" ? ({ schema: "json" } as const) : { merge: true };
  const documents = [...parseAllDocuments(text, { ...options, prettyErrors: false, logLevel: "error" })];
  return documents.some(({ errors }) => errors.length > 0) ? undefined : documents;
}

interface ObjectNode {
  readonly document: Document.Parsed;
  readonly node: YAMLMap;
}

/** Finds the definitions of an object among documents, and among the items of Lists. */
function nodesOf(documents: ParsedDocuments, name: ObjectName): readonly ObjectNode[] {
  return documents.flatMap((document) => {
    const { contents } = document;
    if (!isMap(contents)) return [];
    const items = contents.get("items");
    const nodes = isSeq(items) ? [contents, ...items.items] : [contents];
    const maps = nodes.filter((each) => isMap(each)).map((node) => ({ document, node }));
    return maps.filter((each) => isNamed(jsonOf(each), name));
  });
}

function jsonOf({ node, document }: ObjectNode): JsonObject | undefined {
  const value = valueOr(() => node.toJS(document));
  return isJsonObject(value) ? value : undefined;
}

/** Returns what `read` returns; null if aliases cannot be resolved. */
function valueOr(read: () => JsonValue): JsonValue {
  try {
    return read();
  } catch {
    // The parser of manifests reports it.
    return null;
  }
}

function isNamed(value: JsonObject | undefined, { kind, namespace, name }: ObjectName): boolean {
  const { apiVersion, kind: own, metadata } = value ?? {};
  if (own !== kind || typeof apiVersion !== "string" || !apiVersion.startsWith(`${apiGroup}/`)) return false;
  return isJsonObject(metadata) && metadata.name === name && (metadata.namespace ?? "default") === namespace;
}

/** Replaces the characters between two places of the text. */
interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

interface Edit {
  readonly text: string;
  readonly format: TextFormat;
  readonly splices: Splice[];
}

/** @returns false if a value has no place of its own in the text. */
function merge(edit: Edit, map: YAMLMap, members: JsonObject): boolean {
  return Object.entries(members).every(([name, value = null]) => {
    const pair = map.items.find(({ key }) => isScalar(key) && key.value === name);
    if (pair === undefined) return insert(edit, map, { [name]: value });
    if (isJsonObject(value) && isMap(pair.value)) return merge(edit, pair.value, value);
    const range = rangeOf(pair.value);
    if (range === undefined) return false;
    const [from, to] = range;
    // An empty value is where its colon ends.
    const gap = from === to ? " " : "";
    edit.splices.push({ from, to, text: gap + flowText(value, edit.format) });
    return true;
  });
}

/** Inserts a member at the end of a map. */
function insert(edit: Edit, map: YAMLMap, member: JsonObject): boolean {
  const last = map.items.at(-1);
  const first = rangeOf(map.items[0]?.key);
  const end = last === undefined ? undefined : endOf(last);
  if (map.flow === true || edit.format === "json") {
    const at = end ?? (rangeOf(map)?.[0] ?? 0) + 1;
    const text = flowText(member, edit.format).slice(1, -1);
    edit.splices.push({ from: at, to: at, text: end === undefined ? text : `, ${text}` });
    return true;
  }
  if (first === undefined || end === undefined) return false;
  const { text } = edit;
  const line = text.includes("\r\n") ? "\r\n" : "\n";
  const indent = " ".repeat(first[0] - (text.lastIndexOf("\n", first[0] - 1) + 1));
  const lines = blockLines(member, indent, edit.format).map((each) => each + line);
  const newline = text.indexOf("\n", Math.max(end - 1, 0));
  const at = newline < 0 ? text.length : newline + 1;
  edit.splices.push({ from: at, to: at, text: (newline < 0 ? line : "") + lines.join("") });
  return true;
}

/** Where the value of a pair ends, without the comment after it. */
function endOf({ key, value }: Pair): number | undefined {
  const range = rangeOf(value) ?? rangeOf(key);
  if (!isMap(value) || value.flow === true) return range?.[1];
  const last = value.items.at(-1);
  return (last && endOf(last)) ?? range?.[1];
}

function rangeOf(node: unknown): readonly [from: number, to: number] | undefined {
  if (!isScalar(node) && !isMap(node) && !isSeq(node)) return undefined;
  return node.range ? [node.range[0], node.range[1]] : undefined;
}

function blockLines(object: JsonObject, indent: string, format: TextFormat): readonly string[] {
  return Object.entries(object).flatMap(([name, value = null]) =>
    isJsonObject(value)
      ? [`${indent}${name}:`, ...blockLines(value, `${indent}  `, format)]
      : [`${indent}${name}: ${flowText(value, format)}`],
  );
}

/** A text in quotes is a text in YAML, too: a ledger's id may look like a number. */
function flowText(value: JsonValue, format: TextFormat): string {
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member = null]) => {
    const key = format === "json" ? JSON.stringify(name) : name;
    return `${key}: ${flowText(member, format)}`;
  });
  return `{${members.join(", ")}}`;
}

function spliced(text: string, splices: readonly Splice[]): string {
  let edited = text;
  const order = splices.map((splice, at) => ({ ...splice, at }));
  // From the end, so that earlier places stay. Of two insertions at one place, the later one comes first.
  for (const { from, to, text: own } of order.toSorted((a, b) => b.from - a.from || b.at - a.at)) {
    edited = edited.slice(0, from) + own + edited.slice(to);
  }
  return edited;
}

/** True if the edited documents have this change and no other one. */
function isOnlyEdit(
  before: ParsedDocuments,
  after: ParsedDocuments | undefined,
  { name, spec }: { readonly name: ObjectName; readonly spec: JsonObject },
): boolean {
  const [old] = nodesOf(before, name);
  const [edited] = nodesOf(after ?? [], name);
  if (after === undefined || old === undefined || edited === undefined) return false;
  if (!isDeepStrictEqual(jsonOf(edited), merged(jsonOf(old) ?? {}, { spec }))) return false;
  // Both without the object: the rest must be the same.
  const rest = (documents: ParsedDocuments) =>
    documents.map((document) =>
      without(
        valueOr(() => document.toJS()),
        name,
      ),
    );
  return isDeepStrictEqual(rest(before), rest(after));
}

function without(value: JsonValue, name: ObjectName): JsonValue {
  if (!isJsonObject(value)) return value;
  if (isNamed(value, name)) return null;
  const { items } = value;
  return Array.isArray(items) ? { ...value, items: items.map((item) => without(item, name)) } : value;
}

/** A merge patch by RFC 7386, without removals. */
function merged(object: JsonObject, patch: JsonObject): JsonObject {
  const changed = Object.entries(patch).map(([name, value = null]) => {
    const own = object[name];
    return [name, isJsonObject(value) ? merged(objectOf(own), value) : value] as const;
  });
  return { ...object, ...Object.fromEntries(changed) };
}
