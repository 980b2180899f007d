/**
 * Bodies of the key API, byte for byte as v2 clients know them: order of fields, escapes, one newline at the end.
 *
 * JSON.stringify writes the texts. Where Go escapes differently, the escapes are replaced in the whole body: those
 * characters occur only in texts. One search of a large body costs a tenth of a search in each text.
 */

import { toRfc3339 } from "../../lib/clock.ts";
import { type NodeRecord, rootPath, type StoreEvent } from "../../store/core/node.ts";
import { refusals, type StoreError } from "../../store/core/refusal.ts";
import type { ListingStep } from "../../store/tree/listing.ts";

/** The answer to a read of a node without a listing. */
export function readBody(node: NodeRecord): string {
  return asGoEscapes(`${readBegin}${nodeJson(node)}${readEnd}`);
}

/**
 * The answer to a read, in pieces of some size. The last piece is returned; if it is the only one, none is yielded.
 * Pieces may be empty, so that each takes about the same time to make.
 * @param pieceLength in characters, about; a piece is longer by one node at most.
 */
export function* readPieces(
  steps: Iterable<ListingStep | undefined>,
  pieceLength: number,
): Generator<string, string, undefined> {
  let text = readBegin;
  let cost = 0;
  let isFirst = true;
  for (const step of steps) {
    if (step === undefined) {
      cost += stepLength;
    } else {
      if (!isFirst && step.kind !== "close") text += ",";
      text += stepJson(step);
      isFirst = step.kind === "open";
    }
    if (text.length + cost < pieceLength) continue;
    yield asGoEscapes(text);
    text = "";
    cost = 0;
  }
  return asGoEscapes(text + readEnd);
}

const readBegin = '{"action":"get","node":';
const readEnd = "}\n";
// A step without a result costs as much as this many characters.
const stepLength = 50;

/** A change, as its writer gets it. */
export function eventBody({ action, node, prevNode }: StoreEvent): string {
  const previous = prevNode === undefined ? "" : `,"prevNode":${nodeJson(prevNode)}`;
  return asGoEscapes(`{"action":"${action}","node":${nodeJson(node)}${previous}}\n`);
}

const watchedBodies = new WeakMap<StoreEvent, string>();

/** The same for watchers: an event may have thousands of them, so it is written out once. */
export function watchedEventBody(event: StoreEvent): string {
  const known = watchedBodies.get(event);
  if (known !== undefined) return known;
  const body = eventBody(event);
  watchedBodies.set(event, body);
  return body;
}

/** The answer to a write that asked for `noValueOnSuccess`. */
export function actionBody(event: StoreEvent): string {
  return `{"action":"${event.action}"}\n`;
}

export function errorBody(error: StoreError): string {
  const { code, message } = refusals[error.refusal];
  const cause = error.causeText === "" ? "" : `,"cause":${JSON.stringify(error.causeText)}`;
  return asGoEscapes(`{"errorCode":${code},"message":${JSON.stringify(message)}${cause},"index":${error.index}}\n`);
}

function stepJson({ kind, node }: ListingStep): string {
  switch (kind) {
    case "leaf":
      return nodeJson(node);
    case "open":
      return `${beginJson(node)},"nodes":[`;
    case "close":
      return `]${endJson(node)}`;
  }
}

function nodeJson(node: NodeRecord): string {
  return beginJson(node) + endJson(node);
}

function beginJson(node: NodeRecord): string {
  return node.path === rootPath
    ? `{${contentJson(node, true)}`
    : `{"key":${JSON.stringify(node.path)}${contentJson(node, false)}`;
}

function endJson({ path, modifiedIndex, createdIndex }: NodeRecord): string {
  return path === rootPath ? "}" : `,"modifiedIndex":${modifiedIndex},"createdIndex":${createdIndex}}`;
}

function contentJson({ isDirectory, value, expiresAtMs, ttlSeconds }: NodeRecord, isFirst: boolean): string {
  const expiration = expiresAtMs === undefined ? "" : `,"expiration":"${timeJson(expiresAtMs)}"`;
  const end = ttlSeconds === undefined ? expiration : `${expiration},"ttl":${ttlSeconds}`;
  if (isDirectory) return `${isFirst ? "" : ","}"dir":true${end}`;
  return value === undefined ? end : `,"value":${JSON.stringify(value)}${end}`;
}

/** A time as Go writes it: a fraction of a second has no zeros at its end. */
export function timeJson(unixMs: number): string {
  return toRfc3339(unixMs).replace(/\.?0+Z$/, "Z");
}

// Characters that Go's encoding/json escapes and JSON.stringify does not, or escapes differently.
const special = ["<", ">", "&", "\\", "\u2028", "\u2029"];
const escapes = /\\[bf\\]|[<>&\u2028\u2029]/g;
const written: Readonly<Record<string, string>> = {
  "\\\\": "\\\\",
  "\\b": "\\u0008",
  "\\f": "\\u000c",
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};

/** JSON with Go's escapes. A search for one character costs a fifth of a nanosecond a character. */
function asGoEscapes(json: string): string {
  const isPlain = special.every((mark) => !json.includes(mark));
  return isPlain ? json : json.replaceAll(escapes, (found) => written[found] ?? found);
}

/** A text as Go writes it in JSON. */
export function textJson(text: string): string {
  return asGoEscapes(JSON.stringify(text));
}
