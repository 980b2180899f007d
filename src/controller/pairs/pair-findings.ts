/** Makes the findings about a Profile and its Groups, in words for their authors. */

import { type ObjectName, objectKey } from "../../model/objects/source.ts";
import { reasonCodes } from "../../render/core/reason-codes.ts";
import { renderReasons } from "../../render/core/render-error.ts";
import type { PartFault } from "../../render/judge/judge.ts";
import type { Finding } from "../status/conditions.ts";

// A person reads the message, corrects the first findings and looks again.
const maxFindings = 10;

function placeText({ field, isOfGroup, at }: PartFault): string {
  const where = at === undefined ? "" : `: line ${at.line}, column ${at.column}`;
  return `${field}${isOfGroup ? " of the Group" : ""}${where}`;
}

/** The text of a fault. @param scope says for which Groups. */
function scopedText({ reason, variable }: PartFault, scope: string): string {
  if (reason !== "undefinedVariable") return `${renderReasons[reason]}, ${scope}`;
  return `${variable === undefined ? "a variable" : `the variable "${variable}"`} is not defined ${scope}`;
}

function cureOf({ reason }: PartFault): string {
  if (reason !== "undefinedVariable") return "mend the template, or the metadata";
  return "define it in the metadata, or surround it with {{#if}}";
}

/** The findings on a Profile: one for each faulty place. Each names the first Group that it harms. */
export function profileFindings(
  harmed: readonly { readonly name: ObjectName; readonly fault: PartFault }[],
): readonly Finding[] {
  const sorted = harmed.toSorted((a, b) => (objectKey(a.name) < objectKey(b.name) ? -1 : 1));
  const places = new Map<string, { readonly fault: PartFault; readonly names: ObjectName[] }>();
  for (const { name, fault } of sorted) {
    const key = `${placeText(fault)} ${scopedText(fault, "")}`;
    const place = places.get(key) ?? { fault, names: [] };
    place.names.push(name);
    places.set(key, place);
  }
  return [...places.values()].slice(0, maxFindings).map(({ fault, names }) => {
    const scope = `for Group "${names[0]?.name}"${names.length > 1 ? " and others" : ""}`;
    return findingOf("Accepted", `${placeText(fault)}: ${scopedText(fault, scope)}: ${cureOf(fault)}`, fault);
  });
}

/** What fails for a Group, and where. */
export function faultText(fault: PartFault): string {
  return `${placeText(fault)}: ${scopedText(fault, "for this Group")}`;
}

/** The finding on a Group that waits for the newest version of its Profile. */
export function lateFinding({ name }: ObjectName): Finding {
  const message =
    `The newest version of Profile "${name}" is not valid for all its Groups, and the older one that stays is not ` +
    "for machines that this Group takes since: they are answered 503 until the Profile is ready, see its status";
  return { type: "ResolvedRefs", reason: "ProfileOutdated", message };
}

/** The finding on a Group that keeps davit from serving the newest version of its Profile. */
export function harmFinding({ name }: ObjectName, fault: PartFault): Finding {
  const message = `Profile "${name}": ${faultText(fault)}, so the Profile's last good version stays: ${cureOf(fault)}`;
  return findingOf("ResolvedRefs", message, fault);
}

/** The finding on a Group that keeps its older metadata and arguments. */
export function keptFinding({ name }: ObjectName, fault: PartFault): Finding {
  const text =
    fault.reason === "undefinedVariable"
      ? `${scopedText(fault, "any more")}, and Profile "${name}" prints it (${placeText(fault)})`
      : `Profile "${name}" fails with it (${placeText(fault)}: ${renderReasons[fault.reason]})`;
  const place = `spec.metadata${fault.isOfGroup ? " or spec.args" : ""}`;
  const message = `${place}: ${text}: put it back, or change the Profile first`;
  return findingOf("Accepted", message, fault);
}

function findingOf(type: Finding["type"], message: string, { reason, field, at }: PartFault): Finding {
  const place = { field, ...(at && { position: at }) };
  const shown = reason === "undefinedVariable" ? "UndefinedVariable" : "RenderFailed";
  return { type, reason: shown, message, code: reasonCodes[reason], place };
}
