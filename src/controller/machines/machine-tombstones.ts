/**
 * Plans tombstones of Machines. A Machine's labels may keep its machine away from a Group that installs. When the
 * Machine goes, or loses identities or labels, this may be half of a change: `kubectl replace --force` deletes an
 * object and creates it again. So the step that changes the Machine also writes a tombstone, and until it expires, no
 * `Install` is served to the identities of the earlier version. A Machine that only gains identities or labels leaves
 * none. Pure.
 */

import { machineTombstonePath } from "../../model/objects/documents.ts";
import {
  decodeMachineTombstone,
  encodeMachineTombstone,
  type MachineDocument,
  type MachineSpec,
} from "../../model/objects/machine.ts";
import type { ObjectName } from "../../model/objects/source.ts";
import type { TombstoneWrite } from "../tombstones/tombstones.ts";

/** A step's change to one Machine: its stored document and its new one. */
export interface MachineChange {
  readonly id: ObjectName;
  readonly before: MachineDocument | undefined;
  readonly after: MachineDocument | undefined;
}

export interface MachineTombstoneOptions {
  /** The text of the tombstone that is stored at a path. */
  readonly textAt: (path: string) => string | undefined;
  /** How long a tombstone lasts: whole seconds, at least 1. */
  readonly ttlSeconds: number;
}

// A tombstone collects the identities of all changes before it expires. Beyond this number, the oldest are dropped.
const mostIdentities = 256;

/** The writes to a Machine's tombstone. */
export function machineTombstoneWrites(
  { id: { namespace, name }, before, after }: MachineChange,
  { textAt, ttlSeconds }: MachineTombstoneOptions,
): readonly TombstoneWrite[] {
  if (before === undefined || (after !== undefined && keepsAll(before.spec, after.spec))) return [];
  const path = machineTombstonePath(namespace, name);
  const known = decodeMachineTombstone(textAt(path) ?? "")?.identities ?? [];
  const identities = [...new Set([...before.spec.identities, ...known])].slice(0, mostIdentities);
  const tenant = (after ?? before).tenant;
  return [{ path, text: encodeMachineTombstone({ identities, ...(tenant && { tenant }) }), ttlSeconds, namespace }];
}

/** True if the newer version has every identity and every label of the earlier one. */
function keepsAll(before: MachineSpec, after: MachineSpec): boolean {
  const has = new Set(after.identities);
  const isSame = ([label, value]: [string, string]) =>
    Object.hasOwn(after.labels, label) && after.labels[label] === value;
  return before.identities.every((identity) => has.has(identity)) && Object.entries(before.labels).every(isSame);
}
