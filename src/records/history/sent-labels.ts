/**
 * The reserved labels of machines, as the history keeps them. A machine sends the same labels again and again: one set
 * from its firmware, and often a smaller one from its operating system. All requests with the same set share one copy.
 */

import { isOwnUuid } from "../../model/labels/hardware-ids.ts";
import { type Labels, reservedLabels } from "../../model/labels/labels.ts";

const names = [...reservedLabels];

/**
 * The longest value that a selector can name. Machines can send longer values, which only expressions such as `Prefix`
 * or `Exists` can match. The history does not record them, because one request can send values of several KiB.
 */
const maxValueLength = 253;

export const noLabels: Labels = new Map();

/** Returns a label's value as the history records it; undefined for a missing, empty or too long value. */
export function keptValue(labels: Labels, name: string): string | undefined {
  const value = labels.get(name);
  return value === undefined || value === "" || value.length > maxValueLength ? undefined : value;
}

/** Returns a copy of the labels that the history keeps. */
export function keptLabels(labels: Labels): Labels {
  return new Map(
    names.flatMap((name) => {
      const value = keptValue(labels, name);
      return value === undefined ? [] : [[name, ownCopy(value)] as const];
    }),
  );
}

/** True if `kept` equals the part of these labels that the history keeps. */
export function isSameSet(kept: Labels, labels: Labels): boolean {
  // A plain loop, because every request runs this.
  for (const name of names) if (kept.get(name) !== keptValue(labels, name)) return false;
  return true;
}

/** Copies a string. A slice of a request's target would keep the whole target in memory (V8's sliced strings). */
export function ownCopy(text: string): string {
  return Buffer.from(text).toString();
}

/**
 * Returns the key of a machine, from the first label that names it; undefined if none does. The MAC is first, because
 * every firmware sends it, and because some boards share a UUID.
 */
export function machineKey(labels: Labels): string | undefined {
  const mac = keptValue(labels, "mac");
  if (mac !== undefined) return mac;
  for (const name of ["uuid", "serial", "hostname"]) {
    const value = keptValue(labels, name);
    if (value !== undefined && (name !== "uuid" || isOwnUuid(value))) return `${name}=${value}`;
  }
  return undefined;
}
