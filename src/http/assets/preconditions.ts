/** Evaluates conditional and range headers (RFC 9110 sections 13 and 14). Pure: headers in, a decision out. */

import type { IncomingHttpHeaders } from "node:http";

/** The values by which a client recognizes a file's state. */
interface Validators {
  readonly etag: string;
  readonly modified: string;
}

/** The bytes of a file from `start` to `end`, both included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

type RangeSelection =
  | { readonly kind: "whole" }
  | { readonly kind: "part"; readonly range: ByteRange }
  /** The file has none of the requested bytes. */
  | { readonly kind: "none" };

/** True when the client already has the current file: the answer is 304. */
export function isUnchanged(headers: IncomingHttpHeaders, { etag, modified }: Validators): boolean {
  const noneMatch = headers["if-none-match"];
  if (noneMatch !== undefined) return noneMatch.trim() === "*" || entityTags(noneMatch).includes(etag);
  const sinceMs = Date.parse(headers["if-modified-since"] ?? "");
  return Date.parse(modified) <= sinceMs;
}

/**
 * Selects the requested bytes. The whole file is selected for a malformed header, an unknown unit, several ranges, or
 * an `If-Range` that does not hold.
 */
export function selectRange(headers: IncomingHttpHeaders, sizeBytes: number, validators: Validators): RangeSelection {
  const [, first, last] = /^bytes=\s*(\d*)-(\d*)\s*$/.exec(headers.range ?? "") ?? [];
  if (first === undefined || last === undefined || !ifRangeHolds(headers, validators)) return { kind: "whole" };
  if (first === "") return last === "" ? { kind: "whole" } : suffix(Number(last), sizeBytes);
  const start = Number(first);
  const end = last === "" ? Number.POSITIVE_INFINITY : Number(last);
  if (end < start) return { kind: "whole" };
  return start < sizeBytes ? { kind: "part", range: { start, end: Math.min(end, sizeBytes - 1) } } : { kind: "none" };
}

/** The last `count` bytes. */
function suffix(count: number, sizeBytes: number): RangeSelection {
  if (count === 0 || sizeBytes === 0) return { kind: "none" };
  return { kind: "part", range: { start: Math.max(0, sizeBytes - count), end: sizeBytes - 1 } };
}

/** True without `If-Range`, or if it equals the file's tag or date exactly. A weak tag never equals it. */
function ifRangeHolds(headers: IncomingHttpHeaders, { etag, modified }: Validators): boolean {
  const condition = headers["if-range"];
  return condition === undefined || condition === etag || condition === modified;
}

/** The tags of a list, without the mark of weak tags: If-None-Match does not distinguish weak and strong tags. */
function entityTags(list: string): string[] {
  return list.match(/"[^"]*"/g) ?? [];
}
