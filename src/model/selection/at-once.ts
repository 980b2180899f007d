/**
 * Decides which changes take effect immediately. Other objects may have changed together with an object, and davit may
 * not know them yet. So only changes that make machines wait take effect immediately; all others are delayed. A Group
 * that is newly held, loses machines or is removed is held immediately, and so is a Machine. An approval or a grant
 * that is withdrawn or changed no longer counts, and neither does a grant whose object gives something else. So an
 * incomplete change never gives a machine anything that the complete change would not. Pure.
 */

import { isDeepEqual } from "../../lib/deep-equal.ts";
import type { GroupSpec } from "../objects/group.ts";
import type { MachineSpec } from "../objects/machine.ts";
import type { GroupObject, MachineObject, SourceObject } from "../objects/source.ts";
import { implies, selectionOf } from "./implication.ts";

/**
 * Returns the object to use until the change may take effect.
 * @param held the object in use.
 * @param wanted the same object in its newest version; undefined after a removal.
 * @returns `held`, or `held` with changes that make machines wait, or a new object that is held; undefined for none.
 */
export function countingAtOnce(
  held: SourceObject | undefined,
  wanted: SourceObject | undefined,
): SourceObject | undefined {
  if (held === undefined) return wanted !== undefined && isHeld(wanted) ? wanted : undefined;
  if (held.kind === "Group") return groupAtOnce(held, wanted?.kind === "Group" ? wanted.spec : undefined);
  return held.kind === "Machine" ? machineAtOnce(held, wanted?.kind === "Machine" ? wanted.spec : undefined) : held;
}

function isHeld(object: SourceObject): boolean {
  return (object.kind === "Group" || object.kind === "Machine") && object.spec.hold;
}

function groupAtOnce(held: GroupObject, wanted: GroupSpec | undefined): GroupObject {
  const { install, ...others } = held.spec;
  const isApproved = wanted?.approval === undefined && others.approval === undefined;
  const keepsGrant = isDeepEqual(wanted?.install, install) && wanted !== undefined && givesSame(held.spec, wanted);
  const spec: GroupSpec = {
    ...others,
    ...(install && keepsGrant && { install }),
    ...(!isApproved && { approval: "Required" }),
    hold: others.hold || !keepsAll(held.spec, wanted),
  };
  return isDeepEqual(spec, held.spec) ? held : { ...held, spec };
}

/** True when the newest version selects every machine of the previous one, and does not hold them. */
function keepsAll(spec: GroupSpec, wanted: GroupSpec | undefined): boolean {
  if (wanted === undefined || wanted.hold) return false;
  return implies(selectionOf(spec), selectionOf(wanted));
}

/** Returns a new object as it is until it may take effect: its machines wait, and it grants nothing. */
export function heldUntilThen(object: GroupObject | MachineObject): GroupObject | MachineObject {
  if (object.kind === "Group") {
    const { install: _, ...spec } = object.spec;
    return { ...object, spec: { ...spec, hold: true } };
  }
  const { install: _, ...spec } = object.spec;
  return { ...object, spec: { ...spec, hold: true } };
}

/** True for specs by which a machine gets the same scripts and configs. */
export function givesSame(one: GroupSpec, other: GroupSpec): boolean {
  return isDeepEqual(givenBy(one), givenBy(other));
}

function givenBy({ profile, metadata, args, requireTls }: GroupSpec) {
  return { profile, metadata, args, requireTls };
}

function machineAtOnce(held: MachineObject, wanted: MachineSpec | undefined): MachineObject {
  const { install, ...others } = held.spec;
  const keepsGrant = isDeepEqual(wanted?.install, install) && isDeepEqual(wanted?.metadata, others.metadata);
  const spec: MachineSpec = {
    ...others,
    ...(install && keepsGrant && { install }),
    approved: others.approved && wanted?.approved === true,
    hold: others.hold || !isSameMachine(others, wanted),
  };
  return isDeepEqual(spec, held.spec) ? held : { ...held, spec };
}

/** True when the newest version names every machine of the previous one, with the same labels, and does not hold it. */
function isSameMachine({ identities, labels }: Omit<MachineSpec, "install">, wanted: MachineSpec | undefined): boolean {
  if (wanted === undefined || wanted.hold) return false;
  return identities.every((each) => wanted.identities.includes(each)) && isDeepEqual(wanted.labels, labels);
}
