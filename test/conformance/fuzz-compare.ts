/**
 * Compares what davit and etcd said. Bodies must be the same bytes, except for times, which must be near each other and
 * fit each other, for listings that nobody asked to be sorted, and for what the table of deviations excuses.
 */

import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "../../src/model/json.ts";
import { type DeviationName, isMovedDirectory } from "./fuzz-deviations.ts";
import type { AskedRequest, Pair, TimedAnswer } from "./fuzz-lane.ts";

export interface Known {
  /** Indexes of the changes that were updates. */
  readonly updates: ReadonlySet<number>;
  /** How far the clock of a server may be off, in milliseconds. */
  readonly clockMs: number;
  /** The longest that the two servers took for a request so far. */
  readonly slowestMs: number;
}

export type Comparison =
  | { readonly kind: "same" }
  | { readonly kind: "excused"; readonly by: DeviationName }
  | { readonly kind: "different"; readonly what: string };

const same: Comparison = { kind: "same" };

/** @param request as it was sent to both. */
export function compareAnswers(request: AskedRequest, answers: Pair<TimedAnswer>, known: Known): Comparison {
  const { etcd, davit } = answers;
  if (etcd.status !== davit.status) return different(`status ${etcd.status}, not ${davit.status}`);
  if (isBadEscape(etcd) && isBadEscape(davit)) return { kind: "excused", by: "bad-escape" };
  const header = headerThatDiffers(answers);
  if (header !== undefined) return different(header);
  const length = lengthThatIsWrong(request, davit);
  if (length !== undefined) return different(length);
  const time = wrongTimes(etcd, known) ?? wrongTimes(davit, known);
  if (time !== undefined) return different(time);
  const isSorted = /[?&]sorted=(1|t|T|TRUE|true|True)(&|$)/.test(request.target);
  return compareTexts({ etcd: etcd.body, davit: davit.body }, known, isSorted);
}

/** Compares bodies, or events of a watch. */
export function compareTexts(texts: Pair<string>, known: Known, isSorted = true): Comparison {
  if (texts.etcd === texts.davit) return same;
  const etcd = withoutTimes(texts.etcd);
  const davit = withoutTimes(texts.davit);
  const time = timeThatDiffers(etcd, davit, known);
  if (time !== undefined) return different(time);
  if (etcd.text === davit.text) return same;
  const etcdJson = parseJsonObject(etcd.text);
  const davitJson = parseJsonObject(davit.text);
  if (etcdJson === undefined || davitJson === undefined) return different("the body");
  const order = isSorted ? (json: JsonObject) => json : inOrder;
  // A text written in other ways would differ in length.
  if (!isSorted && etcd.text.length === davit.text.length && isEqual(order(etcdJson), order(davitJson))) return same;
  const moved = isMovedDirectory(order(etcdJson), order(davitJson), known.updates);
  return moved ? { kind: "excused", by: "directory-index" } : different("the body");
}

function different(what: string): Comparison {
  return { kind: "different", what };
}

const equalHeaders = [
  ...["content-type", "transfer-encoding", "location", "allow", "x-content-type-options", "x-etcd-index"],
  ...["access-control-allow-origin", "access-control-allow-methods", "access-control-allow-headers"],
] as const;
const sharedHeaders = ["x-raft-index", "x-raft-term", "x-etcd-cluster-id"] as const;
const twinHeaders = ["index", "cluster-id"] as const;

function headerThatDiffers({ etcd, davit }: Pair<TimedAnswer>): string | undefined {
  for (const name of equalHeaders) {
    // Of a long body davit knows the length.
    if (name === "transfer-encoding" && davit.headers.has("content-length")) continue;
    if (etcd.headers.get(name) !== davit.headers.get(name)) return `the header ${name}`;
  }
  for (const name of sharedHeaders) {
    if (etcd.headers.has(name) !== davit.headers.has(name)) return `the header ${name}`;
  }
  for (const name of twinHeaders) {
    if (davit.headers.get(`x-store-${name}`) !== davit.headers.get(`x-etcd-${name}`))
      return `the header x-store-${name}`;
  }
  return undefined;
}

function isBadEscape({ status, headers, body }: TimedAnswer): boolean {
  // Of a HEAD there is no body.
  const isPlain = headers.get("content-type") === "text/plain; charset=utf-8";
  return status === 400 && isPlain && (body === "400 Bad Request" || body === "");
}

function lengthThatIsWrong({ method }: AskedRequest, { headers, body }: TimedAnswer): string | undefined {
  const length = headers.get("content-length");
  if (method === "HEAD" || length === undefined) return undefined;
  return Number(length) === Buffer.byteLength(body) ? undefined : "the header content-length";
}

interface WithoutTimes {
  readonly text: string;
  readonly expirationsMs: readonly number[];
  readonly ttls: readonly number[];
}

const expirationField = /"expiration":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,8}[1-9])?Z)"/g;
const ttlField = /"ttl":(-?\d+)/g;

function withoutTimes(text: string): WithoutTimes {
  return {
    text: text.replaceAll(expirationField, '"expiration":"{time}"').replaceAll(ttlField, '"ttl":0'),
    expirationsMs: [...text.matchAll(expirationField)].map(([, time = ""]) => Date.parse(time)),
    ttls: [...text.matchAll(ttlField)].map(([, ttl]) => Number(ttl)),
  };
}

// In a listing without order the times cannot be told apart: its text is compared without them.
function timeThatDiffers(etcd: WithoutTimes, davit: WithoutTimes, { slowestMs, clockMs }: Known): string | undefined {
  if (etcd.text !== davit.text) return undefined;
  const isNear = (limit: number, theirs: readonly number[], ours: readonly number[]) =>
    theirs.every((their, at) => Math.abs(their - (ours[at] ?? Number.NaN)) <= limit);
  // davit counts the ttl from its answer on, and adds twice the time of a slow write: see `store/whole-ttl.ts`.
  const laterMs = 3 * slowestMs + clockMs;
  if (!isNear(laterMs, etcd.expirationsMs, davit.expirationsMs)) return "an expiration";
  return isNear(1 + Math.floor(laterMs / 1_000), etcd.ttls, davit.ttls) ? undefined : "a ttl";
}

// davit shows no more than the ttl that was requested. The expiration may be later by this: `store/whole-ttl.ts`.
const spareMs = 1_000;

/** A ttl in an answer is the time from the answer to the expiration beside it, in seconds, rounded up. */
function wrongTimes({ body, sentAtMs, answeredAtMs }: TimedAnswer, { clockMs }: Known): string | undefined {
  for (const [, time = "", ttl] of body.matchAll(/"expiration":"([^"]+)"(?:,"ttl":(-?\d+))?/g)) {
    const expirationMs = Date.parse(time);
    const most = Math.ceil((expirationMs - sentAtMs + clockMs) / 1_000);
    const least = Math.ceil((expirationMs - answeredAtMs - clockMs - spareMs) / 1_000);
    const seconds = Number(ttl ?? 0);
    if (seconds > Math.max(most, 0) || seconds < Math.max(least, 0)) return `the ttl ${ttl} beside ${time}`;
  }
  return undefined;
}

function inOrder(json: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(json).map(([name, value]) => [name, name === "nodes" ? sorted(value) : nested(value)]),
  );
}

function nested(value: JsonValue): JsonValue {
  return isJsonObject(value) ? inOrder(value) : value;
}

function sorted(value: JsonValue): JsonValue {
  if (!Array.isArray(value)) return value;
  const keyOf = (each: JsonValue) => (isJsonObject(each) ? String(each.key) : "");
  return value.map(nested).toSorted((one, other) => Buffer.compare(Buffer.from(keyOf(one)), Buffer.from(keyOf(other))));
}

function isEqual(one: JsonObject, other: JsonObject): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
