/**
 * Drafts the document of a Machine. davit never uses more than the newest version of the object says:
 *
 * - While the newest version is refused, nothing is approved or granted, and no `Install` is served. The labels and the
 *   metadata of the last accepted version of the same uid stay. If either version sets `hold`, the Machine is held. The
 *   identities of both versions count.
 * - While nothing readable defines the Machine, its grant does not count, and no `Install` is served (`leaving`).
 * - In a lost namespace, nothing is approved or granted: the Machine may have changed.
 *
 * Pure.
 */

import { machinePath } from "../../model/objects/documents.ts";
import { encodeMachine, type MachineDocument, type MachineSpec } from "../../model/objects/machine.ts";
import type { MachineObject, ObjectMeta, ObjectName, Refusal, SourceView } from "../../model/objects/source.ts";
import type { Documents, DocumentWrite } from "../core/documents.ts";

/** The source's and the store's versions of a Machine. */
export interface MachineVersions {
  readonly id: ObjectName;
  /** The newest accepted version, or a stand-in. */
  readonly object: MachineObject | undefined;
  /** The refusal of the newest version. */
  readonly refusal: Refusal | undefined;
  readonly stored: MachineDocument | undefined;
  readonly isGone: boolean;
  /** True if the object is in view only for now: nothing defines it any more. */
  readonly isLeaving: boolean;
  /** True if the Machine's namespace is lost. */
  readonly isUnheard: boolean;
  /** See `MachineDocument`. */
  readonly isTenant: boolean;
}

/** Returns the document that the store should have; undefined for none. */
export function draftMachine(known: MachineVersions): MachineDocument | undefined {
  const document = versionOf(known);
  if (document === undefined) return undefined;
  const { tenant: _, ...others } = document;
  return known.isTenant ? { ...others, tenant: true } : others;
}

/** Returns the document of a Machine on which davit failed: the stored one, which approves and grants nothing. */
export function machineStandIn({ object, stored }: MachineVersions): MachineDocument | undefined {
  const before = stored ?? (object && toDocument(object));
  if (before === undefined) return undefined;
  const hold = before.spec.hold || object?.spec.hold === true;
  return withoutTrust({ ...before, spec: { ...before.spec, hold } });
}

function versionOf(known: MachineVersions): MachineDocument | undefined {
  const { object, stored, isGone, isLeaving, isUnheard } = known;
  if (refusedUid(known) !== undefined) return refusedVersion(known);
  if (object === undefined) return isGone || stored === undefined ? undefined : asLeaving(stored);
  const own = toDocument(object);
  if (isUnheard) return withoutTrust(own);
  return isLeaving ? asLeaving(own) : own;
}

/** Returns the uid of a refused newest version; undefined if the newest version is not refused. */
function refusedUid({ object, refusal }: MachineVersions): string | undefined {
  return refusal?.uid ?? (object?.refusal === undefined ? undefined : object.uid);
}

/** The last accepted version, with what the source shows of the refused one. */
function refusedVersion(known: MachineVersions): MachineDocument | undefined {
  const { object, stored } = known;
  const shown = object && toDocument(object);
  const accepted = object?.refusal === undefined ? shown : (storedOf(known) ?? shown);
  // The source shows nothing of the refused version: what the store has stays, even of an object before this one.
  const base = accepted ?? stored;
  if (base === undefined) return undefined;
  const versions = [base.spec, ...(shown ? [shown.spec] : [])];
  const identities = [...new Set(versions.flatMap((spec) => spec.identities))];
  return withoutTrust({ ...base, spec: { ...base.spec, identities, hold: versions.some(({ hold }) => hold) } });
}

function storedOf(known: MachineVersions): MachineDocument | undefined {
  return known.stored?.uid === refusedUid(known) ? known.stored : undefined;
}

function withoutTrust({ refused: _, leaving, ...document }: MachineDocument): MachineDocument {
  const spec = { ...withoutGrant(document.spec), approved: false };
  return { ...document, spec, refused: true, ...(leaving && { leaving }) };
}

function asLeaving({ leaving: _, ...document }: MachineDocument): MachineDocument {
  return { ...document, spec: withoutGrant(document.spec), leaving: true };
}

function withoutGrant({ install: _, ...spec }: MachineSpec): MachineSpec {
  return spec;
}

function toDocument(object: MachineObject): MachineDocument {
  return { ...provenanceOf(object), spec: object.spec };
}

function provenanceOf({ origin, uid, generation }: ObjectMeta) {
  return { origin, uid, generation };
}

/**
 * The holds and withdrawn approvals of Machines that take effect before the first list is complete: they only make
 * machines wait.
 */
export function earlyMachineHolds(
  names: readonly ObjectName[],
  view: Pick<SourceView, "get">,
  documents: Pick<Documents, "machine">,
): readonly DocumentWrite[] {
  return names.flatMap(({ kind, namespace, name }) => {
    if (kind !== "Machine") return [];
    const object = view.get("Machine", namespace, name);
    const stored = documents.machine(namespace, name);
    if (object === undefined || stored === undefined) return [];
    const hold = stored.spec.hold || object.spec.hold;
    const approved = stored.spec.approved && object.spec.approved;
    if (hold === stored.spec.hold && approved === stored.spec.approved) return [];
    const held = { ...stored, spec: { ...stored.spec, hold, approved } };
    return [{ path: machinePath(namespace, name), text: encodeMachine(held) }];
  });
}
