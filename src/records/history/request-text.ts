/**
 * The form of a request in the journal and between davits: a JSON array in ASCII, so its length is its bytes, and what
 * machines send is safe for a terminal. In the journal, a line has its CRC-32 in hex, a space and the array, which
 * begins with the time.
 */

import { crc32 } from "node:zlib";
import { asciiJson } from "../../lib/text/visible.ts";
import { reservedLabels } from "../../model/labels/labels.ts";
import type { SeenRequest } from "./request.ts";
import { keptValue } from "./sent-labels.ts";

const crcLength = 8;
const headMark = 1;
const cutMark = 2;
/** The marks end with the number of the boot. */
const bootFactor = 4;
const maxBoot = 2 ** 32 - 1;

/** Returns a request as a JSON array, without its start time. Values that are missing at its end are left out. */
export function encodeRequest(seen: SeenRequest): string {
  const { labels } = seen;
  const kept = [...reservedLabels].flatMap((name) => {
    const value = labels && keptValue(labels, name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const values = [
    tenths(seen.durationMs),
    seen.address,
    seen.endpoint,
    seen.path ?? null,
    (seen.isHead ? headMark : 0) + (seen.isCut ? cutMark : 0) + seen.boot * bootFactor,
    seen.status,
    seen.refusal ?? null,
    seen.group ?? null,
    seen.sentBytes,
    seen.ofBytes ?? null,
    Object.fromEntries(kept),
    seen.via ?? null,
    seen.profile ?? null,
    seen.script ?? null,
  ];
  while (values.at(-1) === null) values.pop();
  return asciiJson(values);
}

/** Reads the values of `encodeRequest`. @returns undefined for values of other types. */
export function requestOf(values: readonly unknown[], startedMs: number): SeenRequest | undefined {
  const [durationMs, address, endpoint, path, marks, status, refusal, group, ...more] = values;
  const [sentBytes, ofBytes, labels, via, profile, script] = more;
  if (!isNumber(durationMs) || !isNumber(marks) || !isNumber(status) || !isNumber(sentBytes)) return undefined;
  if (!isText(address) || !isText(endpoint) || !isRecord(labels)) return undefined;
  const pairs = Object.entries(labels).filter((pair): pair is [string, string] => isText(pair[1]));
  const boot = Math.floor(marks / bootFactor);
  return {
    startedMs,
    durationMs,
    address,
    endpoint,
    path: textIn(path),
    isHead: (marks & headMark) !== 0,
    isCut: (marks & cutMark) !== 0,
    status,
    refusal: textIn(refusal),
    group: textIn(group),
    sentBytes,
    ofBytes: isNumber(ofBytes) ? ofBytes : undefined,
    via: textIn(via),
    // The number may come from a follower, which can send anything.
    boot: boot >= 0 && boot <= maxBoot ? boot : 0,
    profile: textIn(profile),
    script: textIn(script),
    labels: pairs.length === 0 ? undefined : new Map(pairs),
  };
}

/**
 * Returns the line of a request, with its newline.
 * @param text the request, as `encodeRequest` returns it.
 * @param startedAtMs Unix milliseconds.
 */
export function journalLine(text: string, startedAtMs: number): string {
  const json = `[${tenths(startedAtMs)},${text.slice(1)}`;
  return `${crcOf(json)} ${json}\n`;
}

/**
 * Reads a line without its newline.
 * @param offsetMs the difference of the wall clock and the caller's clock.
 * @returns undefined if the line is damaged.
 */
export function decodeLine(line: string, offsetMs: number): SeenRequest | undefined {
  const json = line.slice(crcLength + 1);
  if (line.slice(0, crcLength) !== crcOf(json)) return undefined;
  const all: unknown = JSON.parse(json);
  if (!Array.isArray(all)) return undefined;
  const [startedAtMs, ...values] = all as readonly unknown[];
  return isNumber(startedAtMs) ? requestOf(values, startedAtMs - offsetMs) : undefined;
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

function textIn(value: unknown): string | undefined {
  return isText(value) ? value : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
