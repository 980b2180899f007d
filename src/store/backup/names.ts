/**
 * Names of scheduled backups: `davit-CLUSTER-NUMBER-TIME.backup`, such as
 * `davit-5f0c…-00000042-20260102T030405Z.backup`. The number orders them, since a clock may be set back. The cluster is
 * that of the store: a store that was lost and began anew never counts or removes the backups of the lost one.
 */

import { dateOf, toRfc3339 } from "../../lib/clock.ts";

/** A scheduled backup, by its name. */
export interface NamedBackup {
  readonly name: string;
  readonly number: number;
  /** When it was taken by the clock of that time, Unix milliseconds, in whole seconds. */
  readonly atMs: number;
}

/** The name of a backup. */
export function backupName(clusterId: string, number: number, atMs: number): string {
  const time = toRfc3339(atMs)
    .replace(/\.\d+Z$/, "Z")
    .replaceAll(/[-:]/g, "");
  return `davit-${clusterId}-${String(number).padStart(8, "0")}-${time}.backup`;
}

/** The whole backups of a cluster among the names of a directory, the oldest first. */
export function backupsAmong(names: readonly string[], clusterId: string): readonly NamedBackup[] {
  return names.flatMap((name) => parsed(name, clusterId, ".backup")).toSorted((a, b) => a.number - b.number);
}

/** The unfinished backups of a cluster that a crash left. */
export function unfinishedAmong(names: readonly string[], clusterId: string): readonly string[] {
  return names.flatMap((name) => {
    const [, whole = ""] = /^(.*)\.[0-9a-f]{8}(\.tmp)?$/.exec(name) ?? [];
    return parsed(whole, clusterId, ".backup").length === 0 ? [] : [name];
  });
}

function parsed(name: string, clusterId: string, ending: string): readonly NamedBackup[] {
  const start = `davit-${clusterId}-`;
  if (!name.startsWith(start) || !name.endsWith(ending)) return [];
  const [, digits, ...time] =
    /^(\d{8,15})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(name.slice(start.length, -ending.length)) ?? [];
  const [year, month, day, hour, minute, second] = time;
  const atMs = dateOf(Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)).getTime();
  const number = Number(digits);
  return Number.isNaN(atMs) || backupName(clusterId, number, atMs) !== name ? [] : [{ name, number, atMs }];
}
