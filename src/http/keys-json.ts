/** Bodies of the key API, byte for byte as v2 clients know them: order of fields, escapes, one newline at the end. */

import { toRfc3339 } from "../lib/clock.ts";
import type { NodeRecord, NodeView, StoreEvent } from "../store/node.ts";
import { rootPath } from "../store/node.ts";
import { refusals, type StoreError } from "../store/refusal.ts";

/** The answer to a read. */
export function readBody(node: NodeView): string {
  return `{"action":"get","node":${nodeJson(node)}}\n`;
}

/** A change, as its writer gets it. */
export function eventBody({ action, node, prevNode }: StoreEvent): string {
  const previous = prevNode === undefined ? "" : `,"prevNode":${nodeJson(prevNode)}`;
  return `{"action":"${action}","node":${nodeJson(node)}${previous}}\n`;
}

const watchedBodies = new WeakMap<StoreEvent, string>();

/** The same for watchers: of one event there may be thousands, so it is written out once. */
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
  const cause = error.causeText === "" ? "" : `,"cause":${textJson(error.causeText)}`;
  return `{"errorCode":${code},"message":${textJson(message)}${cause},"index":${error.index}}\n`;
}

interface OpenList {
  readonly nodes: readonly NodeView[];
  readonly end: string;
  next: number;
}

// Lists wait in an array instead of on the call stack: a path may be thousands of names deep.
function nodeJson(node: NodeView): string {
  if (node.nodes === undefined) return `${nodeStart(node)}${nodeIndexes(node)}}`;
  const parts: string[] = [];
  const open: OpenList[] = [];
  beginNode(node, parts, open);
  for (let list = open.at(-1); list !== undefined; list = open.at(-1)) {
    const next = list.nodes[list.next];
    if (next === undefined) {
      parts.push(list.end);
      open.pop();
      continue;
    }
    if (list.next > 0) parts.push(",");
    list.next += 1;
    beginNode(next, parts, open);
  }
  return parts.join("");
}

function beginNode(node: NodeView, parts: string[], open: OpenList[]): void {
  if (node.nodes === undefined) {
    parts.push(`${nodeStart(node)}${nodeIndexes(node)}}`);
    return;
  }
  parts.push(`${nodeStart(node)},"nodes":[`);
  open.push({ nodes: node.nodes, end: `]${nodeIndexes(node)}}`, next: 0 });
}

function nodeStart(node: NodeView): string {
  return node.path === rootPath
    ? `{${contentJson(node, true)}`
    : `{"key":${textJson(node.path)}${contentJson(node, false)}`;
}

function nodeIndexes({ path, modifiedIndex, createdIndex }: NodeView): string {
  return path === rootPath ? "" : `,"modifiedIndex":${modifiedIndex},"createdIndex":${createdIndex}`;
}

function contentJson({ isDirectory, value, expiresAtMs, ttlSeconds }: NodeRecord, isFirst: boolean): string {
  const expiration = expiresAtMs === undefined ? "" : `,"expiration":"${timeJson(expiresAtMs)}"`;
  const end = ttlSeconds === undefined ? expiration : `${expiration},"ttl":${ttlSeconds}`;
  if (isDirectory) return `${isFirst ? "" : ","}"dir":true${end}`;
  return value === undefined ? end : `,"value":${textJson(value)}${end}`;
}

/** A time as Go writes it: a fraction of a second has no zeros at its end. */
export function timeJson(unixMs: number): string {
  return toRfc3339(unixMs).replace(/\.?0+Z$/, "Z");
}

// What Go's encoding/json escapes and JSON.stringify does not, or writes in another way.
const special = /[<>&\u2028\u2029\b\f]/;
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

/** A text as Go writes it in JSON. */
export function textJson(text: string): string {
  const json = JSON.stringify(text);
  return special.test(text) ? json.replaceAll(escapes, (found) => written[found] ?? found) : json;
}
