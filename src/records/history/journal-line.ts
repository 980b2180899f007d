/**
 * The form of a request in the journal: a line of its CRC-32 in hex, a space and a JSON array. A line is ASCII: what
 * machines send is escaped, so a line is safe for a terminal.
 */

import { crc32 } from "node:zlib";
import { asciiJson } from "../../lib/text/ascii-json.ts";
import { type Labels, reservedLabels } from "../../model/labels/labels.ts";
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
/** The marks end with the number of the boot: an older davit ignores it. */
const bootFactor = 4;
const maxBoot = 2 ** 32 - 1;

/**
 * Returns the line of a request, with its newline.
 * @param text the request, as `encodeRequest` returns it.
 * @param startedAtMs Unix milliseconds.
 */
export function journalLine(text: string, startedAtMs: number, via: string | undefined): string {
  const end = via === undefined ? "]" : `,${JSON.stringify(via)}]`;
  const json = `[${tenths(startedAtMs)},${text.slice(1, -1)}${end}`;
  return `${crcOf(json)} ${json}\n`;
}

/**
 * Reads a line without its newline.
 * @param offsetMs the difference of the wall clock and the caller's clock.
 * @returns undefined if the line is damaged.
 */
export function decodeEntry(line: string, offsetMs: number, names: RefusalNames): JournalEntry | undefined {
  const json = line.slice(crcLength + 1);
  if (line.slice(0, crcLength) !== crcOf(json)) return undefined;
  const all: unknown = JSON.parse(json);
  if (!Array.isArray(all)) return undefined;
  const [startedAtMs, ...values] = all as readonly unknown[];
  const via = values[valueCount];
  if (!isNumber(startedAtMs)) return undefined;
  return entryOf(values, { startedMs: startedAtMs - offsetMs, via: isText(via) ? via : undefined }, names);
}

const valueCount = 11;

/**
 * Returns a request as a JSON array, without its start time and the follower's name. It is ASCII, so its length is its
 * bytes.
 */
export function encodeRequest({ seen, labels }: JournalEntry, names: RefusalNames): string {
  const kept = labels === undefined ? [] : [...reservedLabels].flatMap((name) => pairOf(labels, name));
  return asciiJson([
    tenths(seen.durationMs),
    seen.address,
    seen.endpoint,
    seen.path ?? null,
    (seen.isHead ? headMark : 0) + (seen.isCut ? cutMark : 0) + seen.boot * bootFactor,
    seen.status,
    names.nameOf(seen.refusal) ?? null,
    seen.group ?? null,
    seen.sentBytes,
    seen.ofBytes ?? null,
    Object.fromEntries(kept),
  ]);
}

/** Reads the values of `encodeRequest`. @returns undefined for values of other types. */
export function entryOf(
  values: readonly unknown[],
  known: Pick<SeenRequest, "startedMs" | "via">,
  names: RefusalNames,
): JournalEntry | undefined {
  const [durationMs, address, endpoint, path, marks, status, reason, group, sentBytes, ofBytes, labels] = values;
  const numbers = [durationMs, marks, status, sentBytes];
  if (!numbers.every(isNumber) || !isText(address) || !isText(endpoint) || !isRecord(labels)) return undefined;
  const [duration = 0, mark = 0, code = 0, sent = 0] = numbers;
  const pairs = Object.entries(labels).filter((pair): pair is [string, string] => isText(pair[1]));
  return {
    seen: {
      startedMs: known.startedMs,
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
      via: known.via,
      boot: bootIn(mark),
    },
    labels: pairs.length === 0 ? undefined : new Map(pairs),
  };
}

/** The number may come from a follower, which can send anything. */
function bootIn(marks: number): number {
  const boot = Math.floor(marks / bootFactor);
  return boot >= 0 && boot <= maxBoot ? boot : 0;
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
