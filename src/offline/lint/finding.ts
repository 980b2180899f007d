/** A finding of lint: a mistake or advice, with its place. */

import type { FieldPlace } from "../../controller/status/conditions.ts";
import { assert } from "../../lib/errors.ts";
import { compareBytes } from "../../lib/order.ts";
import { type FindingCode, type FindingSeverity, findingRules } from "../../model/objects/findings.ts";
import { fieldOf, partsOf, type TemplateSource } from "../../model/objects/profile.ts";
import { holderOf, type ObjectName } from "../../model/objects/source.ts";
import type { Manifests } from "../load/load-manifests.ts";
import type { FilePlace } from "../load/object-places.ts";

/** A made-up URL by which machines would reach davit. The address is from a block for documentation (RFC 5737). */
export const davitUrl = "http://192.0.2.1:8080";

export interface LintFinding extends FilePlace {
  readonly code: FindingCode;
  readonly severity: FindingSeverity;
  /** One sentence without its full stop; it quotes no text of a template or Secret. */
  readonly message: string;
}

/** Makes a finding. Its severity depends only on the code. */
export function findingAt(place: FilePlace, code: FindingCode, message: string): LintFinding {
  const { file, line, column } = place;
  return { file, line, column, severity: findingRules[code].severity, code, message };
}

/** Compares findings by place, then code, then message. The order is total, so equal manifests give equal output. */
export function compareFindings(a: LintFinding, b: LintFinding): number {
  return (
    compareBytes(a.file, b.file) ||
    a.line - b.line ||
    a.column - b.column ||
    compareBytes(a.code, b.code) ||
    compareBytes(a.message, b.message)
  );
}

/** Returns an object's name for messages: `Group default/web`. */
export function objectText({ kind, namespace, name }: ObjectName): string {
  return `${kind} ${namespace}/${name}`;
}

type WrittenManifests = Pick<Manifests, "view" | "places">;

/** Returns the place of an object's field, or the place in a template's text if `at` has a position in it. */
export function placeOfField(
  { view, places }: WrittenManifests,
  name: ObjectName,
  at: FieldPlace | undefined,
): FilePlace {
  const { field = "", position } = at ?? {};
  const path = pathOf(field);
  const template = name.kind === "Profile" ? templateAt({ view }, name, field) : undefined;
  if (template === undefined) return found(places.placeOf(name, path, position));
  if (template.kind === "inline") return found(places.placeOf(name, [...path, "inline"], position));
  const holder = holderOf(template, name.namespace);
  const isThere = position !== undefined && view.get(holder.kind, holder.namespace, holder.name) !== undefined;
  if (isThere) return found(textPlace(places, holder, { key: template.key, position }));
  return found(places.placeOf(name, [...path, "templateFrom", `${template.kind}KeyRef`]));
}

/** Returns the template that a field of a Profile has or references; undefined for any other field. */
export function templateAt(
  { view }: Pick<WrittenManifests, "view">,
  { namespace, name }: ObjectName,
  field: string,
): TemplateSource | undefined {
  const templates = view.get("Profile", namespace, name)?.spec.templates ?? {};
  const part = partsOf(templates).find((candidate) => field === `spec.${fieldOf(candidate)}`);
  return part && templates[part];
}

/** Returns the position in the text of a key. For base64 in a Secret, it returns the place of the key instead. */
function textPlace(
  places: WrittenManifests["places"],
  holder: ObjectName,
  { key, position }: { readonly key: string; readonly position: NonNullable<FieldPlace["position"]> },
): FilePlace | undefined {
  if (holder.kind === "ConfigMap") return places.placeOf(holder, ["data", key], position);
  const plain = ["stringData", key];
  return places.has(holder, plain) ? places.placeOf(holder, plain, position) : places.placeOf(holder, ["data", key]);
}

/** Splits a field's path: `spec.boot.args[2]` becomes `spec`, `boot`, `args`, `2`. */
function pathOf(field: string): readonly string[] {
  return [...field.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)].map(([all, bracketed]) => bracketed ?? all);
}

function found(place: FilePlace | undefined): FilePlace {
  assert(place !== undefined, "A finding is about what was read from a text");
  return place;
}
