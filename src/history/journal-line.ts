/**
 * The form of a request in the journal: a line of its CRC-32 in hex, a space and a JSON array. A line is ASCII: what
 * machines send is escaped, so a line is safe for a terminal.
 */

import { crc32 } from "node:zlib";
import { type Labels, reservedLabels } from "../model/labels.ts";
import { keptValue } from "./label-sets.ts";
import type { SeenRequest } from "./request-rows.ts";

/** Names the reasons of refusals. Their numbers may differ between versions of davit, and their names do not. */
export interface RefusalNames {
  /** Returns undefined for 0. */
  readonly nameOf: (refusal: number) => string | undefined;
  /** Returns 0 for a name that this davit does not know. */
  readonly numberOf: (name: string) => number;
}

/** A request and the labels of its machine. */
export interface JournalEntry {
  /** The time is by the clock of the caller. */
  readonly seen: SeenRequest;
  /** The reserved labels; undefined if the request names no machine. */
  readonly labels: Labels | undefined;
}

const crcLength = 8;
const headMark = 1;
const cutMark = 2;

/**
 * Returns the line of a request, with its newline.
 * @param offsetMs is added to the start time: the difference of the wall clock and the caller's clock.
 */
export function encodeEntry({ seen, labels }: JournalEntry, offsetMs: number, names: RefusalNames): string {
  const kept = labels === undefined ? [] : [...reservedLabels].flatMap((name) => pairOf(labels, name));
  const json = JSON.stringify([
    tenths(seen.startedMs + offsetMs),
    tenths(seen.durationMs),
    seen.address,
    seen.endpoint,
    seen.path ?? null,
    (seen.isHead ? headMark : 0) | (seen.isCut ? cutMark : 0),
    seen.status,
    names.nameOf(seen.refusal) ?? null,
    seen.group ?? null,
    seen.sentBytes,
    seen.ofBytes ?? null,
    Object.fromEntries(kept),
  ]).replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return `${crcOf(json)} ${json}\n`;
}

/**
 * Reads a line without its newline.
 * @param offsetMs as in `encodeEntry`; it is subtracted.
 * @returns undefined if the line is damaged.
 */
export function decodeEntry(line: string, offsetMs: number, names: RefusalNames): JournalEntry | undefined {
  const json = line.slice(crcLength + 1);
  if (line.slice(0, crcLength) !== crcOf(json)) return undefined;
  const values: unknown = JSON.parse(json);
  if (!Array.isArray(values)) return undefined;
  const [startedAtMs, durationMs, address, endpoint, path, marks, status, reason, group, sentBytes, ofBytes, labels] =
    values as readonly unknown[];
  const numbers = [startedAtMs, durationMs, marks, status, sentBytes];
  if (!numbers.every(isNumber) || !isText(address) || !isText(endpoint) || !isRecord(labels)) return undefined;
  const [started = 0, duration = 0, mark = 0, code = 0, sent = 0] = numbers;
  const known = Object.entries(labels).filter((pair): pair is [string, string] => isText(pair[1]));
  return {
    seen: {
      startedMs: started - offsetMs,
      durationMs: duration,
      address,
      endpoint,
      path: isText(path) ? path : undefined,
      isHead: (mark & headMark) !== 0,
      isCut: (mark & cutMark) !== 0,
      status: code,
      refusal: isText(reason) ? names.numberOf(reason) : 0,
      group: isText(group) ? group : undefined,
      sentBytes: sent,
      ofBytes: isNumber(ofBytes) ? ofBytes : undefined,
    },
    labels: known.length === 0 ? undefined : new Map(known),
  };
}

function pairOf(labels: Labels, name: string): readonly (readonly [string, string])[] {
  const value = keptValue(labels, name);
  return value === undefined ? [] : [[name, value]];
}

function crcOf(json: string): string {
  return crc32(json).toString(16).padStart(crcLength, "0");
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
