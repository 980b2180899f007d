/** Makes the findings about a Profile and its Groups, in words for their authors. */

import { type ObjectName, objectKey } from "../../model/objects/source.ts";
import { reasonCodes } from "../../render/core/reason-codes.ts";
import { renderReasons } from "../../render/core/render-error.ts";
import type { Finding } from "../status/conditions.ts";
import type { Lack } from "./profile-needs.ts";

// A person reads the message, corrects the first findings and looks again.
const maxFindings = 10;

function placeText({ field, isOfGroup, at }: Lack): string {
  const where = at === undefined ? "" : `: line ${at.line}, column ${at.column}`;
  return `${field}${isOfGroup ? " of the Group" : ""}${where}`;
}

/** The text of a fault. @param scope says for which Groups. */
function faultText({ reason, variable }: Lack, scope: string): string {
  if (reason !== "undefinedVariable") return `${renderReasons[reason]}, ${scope}`;
  return `${variable === undefined ? "a variable" : `the variable "${variable}"`} is not defined ${scope}`;
}

function cureOf({ reason }: Lack): string {
  if (reason !== "undefinedVariable") return "mend the template, or the metadata";
  return "define it in the metadata, or surround it with {{#if}}";
}

/** The findings on a Profile: one for each faulty place. Each names the first Group that it harms. */
export function profileFindings(
  harmed: readonly { readonly name: ObjectName; readonly lack: Lack }[],
): readonly Finding[] {
  const sorted = harmed.toSorted((a, b) => (objectKey(a.name) < objectKey(b.name) ? -1 : 1));
  const places = new Map<string, { readonly lack: Lack; readonly names: ObjectName[] }>();
  for (const { name, lack } of sorted) {
    const key = `${placeText(lack)} ${faultText(lack, "")}`;
    const place = places.get(key) ?? { lack, names: [] };
    place.names.push(name);
    places.set(key, place);
  }
  return [...places.values()].slice(0, maxFindings).map(({ lack, names }) => {
    const scope = `for Group "${names[0]?.name}"${names.length > 1 ? " and others" : ""}`;
    return findingOf("Accepted", `${placeText(lack)}: ${faultText(lack, scope)}: ${cureOf(lack)}`, lack);
  });
}

/** What fails for a Group, and where. */
export function lackText(lack: Lack): string {
  return `${placeText(lack)}: ${faultText(lack, "for this Group")}`;
}

/** The finding on a Group that waits for the newest version of its Profile. */
export function lateFinding({ name }: ObjectName): Finding {
  const message =
    `The newest version of Profile "${name}" is not valid for all its Groups, and the older one that stays is not ` +
    "for machines that this Group takes since: they are answered 503 until the Profile is ready, see its status";
  return { type: "ResolvedRefs", reason: "ProfileOutdated", message };
}

/** The finding on a Group that keeps davit from serving the newest version of its Profile. */
export function harmFinding({ name }: ObjectName, lack: Lack): Finding {
  const message = `Profile "${name}": ${lackText(lack)}, so the Profile's last good version stays: ${cureOf(lack)}`;
  return findingOf("ResolvedRefs", message, lack);
}

/** The finding on a Group that keeps its older metadata and arguments. */
export function keptFinding({ name }: ObjectName, lack: Lack): Finding {
  const fault =
    lack.reason === "undefinedVariable"
      ? `${faultText(lack, "any more")}, and Profile "${name}" prints it (${placeText(lack)})`
      : `Profile "${name}" fails with it (${placeText(lack)}: ${renderReasons[lack.reason]})`;
  const place = `spec.metadata${lack.isOfGroup ? " or spec.args" : ""}`;
  const message = `${place}: ${fault}: put it back, or change the Profile first`;
  return findingOf("Accepted", message, lack);
}

function findingOf(type: Finding["type"], message: string, { reason, field, at }: Lack): Finding {
  const place = { field, ...(at && { position: at }) };
  const shown = reason === "undefinedVariable" ? "UndefinedVariable" : "RenderFailed";
  return { type, reason: shown, message, code: reasonCodes[reason], place };
}
