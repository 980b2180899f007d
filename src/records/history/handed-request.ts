/**
 * Reads a request that a follower hands to its writer: a JSON array of `encodeRequest`. The writer checks every value,
 * because it shows them: a follower can be of another version, or not be one.
 */

import type { JsonValue } from "../../model/json.ts";
import { normalizeMac } from "../../model/labels/hardware-ids.ts";
import { type Labels, reservedLabels } from "../../model/labels/labels.ts";
import { sightingForms } from "../../model/sighting.ts";
import { entryOf, type JournalEntry, type RefusalNames } from "./journal-line.ts";
import { keptValue } from "./label-sets.ts";
import type { SeenRequest } from "./request-rows.ts";

/** When and where the writer got a request. */
export interface HandedFrom {
  readonly via: string;
  /** When the batch arrived, by the writer's monotonic clock. */
  readonly arrivedMs: number;
  readonly agoMs: number;
}

/** A request of an earlier day is of no use. */
const maxAgeMs = 24 * 60 * 60_000;

/** Reads a request. @returns undefined if the history could not show it. */
export function decodeHanded(value: JsonValue, from: HandedFrom, names: RefusalNames): JournalEntry | undefined {
  const { via, arrivedMs, agoMs } = from;
  if (!Array.isArray(value) || !isBetween(agoMs, 0, maxAgeMs)) return undefined;
  const entry = entryOf(value, { startedMs: arrivedMs - agoMs, via }, names);
  if (entry === undefined || !isSound(entry.seen) || !areSound(entry.labels)) return undefined;
  // Its answer had ended before the follower sent it.
  return { ...entry, seen: { ...entry.seen, durationMs: Math.min(entry.seen.durationMs, agoMs) } };
}

const endpointForm = /^[\w./:-]{1,64}$/;
const pathForm = /^[\x21-\x7e\xa0-\xff]{1,512}$/;

function isSound({ durationMs, address, endpoint, path, status, group, sentBytes, ofBytes }: SeenRequest): boolean {
  return (
    isBetween(durationMs, 0, maxAgeMs) &&
    isBetween(sentBytes, 0, Number.MAX_SAFE_INTEGER) &&
    isBetween(ofBytes ?? 0, 0, Number.MAX_SAFE_INTEGER) &&
    Number.isInteger(status) &&
    isBetween(status, 100, 599) &&
    sightingForms.address.test(address) &&
    endpointForm.test(endpoint) &&
    (path === undefined || pathForm.test(path)) &&
    (group === undefined || sightingForms.group.test(group))
  );
}

function areSound(labels: Labels | undefined): boolean {
  if (labels === undefined) return true;
  const isKept = [...labels.keys()].every((name) => reservedLabels.has(name) && keptValue(labels, name) !== undefined);
  const { mac, uuid } = Object.fromEntries(labels);
  return isKept && (mac === undefined || normalizeMac(mac) === mac) && (uuid === undefined || isLower(uuid));
}

function isLower(uuid: string): boolean {
  return uuid.toLowerCase() === uuid;
}

function isBetween(value: number, least: number, most: number): boolean {
  return value >= least && value <= most;
}
