/** Converts the definitions of one name in files to an object, a refusal or a problem. Pure. */

import type { GroupSpec } from "../model/objects/group.ts";
import type { ProfileCaution } from "../model/objects/profile.ts";
import { refusedMachine } from "../model/objects/refused-machine.ts";
import {
  fileUid,
  type GroupObject,
  isOwnKind,
  type ObjectName,
  type Refusal,
  type SourceObject,
} from "../model/objects/source.ts";
import type { FileProblem } from "./file-problem.ts";
import type { Definition } from "./read-file.ts";

/**
 * Returns the refusal of an object; undefined for ConfigMaps and Secrets, because they have no status that could show
 * it. The generation is always 1, because files have no generations.
 */
export function toRefusal(id: ObjectName, message: string, same: readonly Definition[]): Refusal | undefined {
  const { kind, namespace, name } = id;
  if (!isOwnKind(kind)) return undefined;
  const origin = same[0] === undefined ? "" : originOf(same[0]);
  const refusal = { kind, namespace, name, uid: fileUid(id), generation: 1, origin, message };
  if (kind === "Machine") return refusal;
  if (kind === "Profile") return { ...refusal, caution: cautionOf(same) };
  const isVague = same.length > 1 || same.some(hidesMachines);
  return { ...refusal, standIns: same.map(standInOf), ...(isVague && { hidesMachines: true }) };
}

/**
 * Returns what takes effect of a Profile although it is refused. If the Profile is defined twice, either definition may
 * be the intended one. So its machines boot from their own disk only if all definitions say so. If one definition has
 * the effect `Install`, the Profile counts as an installing one.
 */
function cautionOf(same: readonly Definition[]): ProfileCaution {
  const all = same.map((definition): ProfileCaution => {
    if (definition.kind === "refused") return definition.caution ?? {};
    const spec = definition.object.kind === "Profile" ? definition.object.spec : undefined;
    const isInstall = spec?.effect === "Install" && { isInstall: true as const };
    const local = spec?.boot?.kind === "local" && { local: spec.boot.local };
    return { ...local, ...isInstall, ...(spec?.requireTls && { requireTls: true }) };
  });
  const [first] = all;
  const local = all.every((each) => each.local !== undefined) ? first?.local : undefined;
  const isInstall = all.some((each) => each.isInstall) && { isInstall: true as const };
  const requireTls = all.some((each) => each.requireTls) && { requireTls: true as const };
  return { ...(local && { local }), ...isInstall, ...requireTls };
}

/** Returns the readable part of a Group; undefined if there is none, or for an object of another kind. */
function standInOf(definition: Definition): GroupSpec | undefined {
  const object = objectIn(definition);
  return object?.kind === "Group" ? object.spec : undefined;
}

function hidesMachines(definition: Definition): boolean {
  return definition.kind === "refused" && definition.hidesMachines === true;
}

export function duplicateProblem(first: Definition, second: Definition): FileProblem {
  const { kind, namespace, name } = nameOfDefinition(second);
  const place = originOf(first);
  const message = `${kind} ${namespace}/${name} is defined a second time, first in ${place}: remove or rename one`;
  const { file, at } = second.place;
  return { origin: originOf(second), message, code: "duplicate-object", file, at, text: message };
}

/** Returns the object that takes effect when its newest version is refused; undefined if none does. */
export function refusedObject(
  held: SourceObject | undefined,
  read: readonly (SourceObject | undefined)[],
  refusal: string,
): SourceObject | undefined {
  if (held?.kind === "Machine" || read.some((object) => object?.kind === "Machine")) {
    const machines = read.filter((object) => object?.kind === "Machine");
    return refusedMachine(held?.kind === "Machine" ? held : undefined, machines, refusal);
  }
  return held !== undefined && !isRefused(held) ? held : refusedGroup([...read, held], refusal);
}

/** Returns the first readable version of a Group as a refused Group; undefined if no version is readable. */
function refusedGroup(same: readonly (SourceObject | undefined)[], refusal: string): GroupObject | undefined {
  for (const object of same) {
    if (object?.kind === "Group") return { ...object, refusal };
  }
  return undefined;
}

export function objectIn(definition: Definition): SourceObject | undefined {
  return definition.kind === "accepted" ? definition.object : definition.standIn;
}

function isRefused(object: SourceObject): boolean {
  return object.kind === "Group" && object.refusal !== undefined;
}

export function nameOfDefinition(definition: Definition): ObjectName {
  return definition.kind === "accepted" ? nameOf(definition.object) : definition.name;
}

export function originOf(definition: Definition): string {
  return definition.kind === "accepted" ? definition.object.origin : definition.origin;
}

export function nameOf({ kind, namespace, name }: SourceObject): ObjectName {
  return { kind, namespace, name };
}
