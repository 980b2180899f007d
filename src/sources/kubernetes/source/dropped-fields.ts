/**
 * Finds parts of an object that its author wrote, but that did not reach davit. Without them a selector matches more
 * machines than its author meant, or a machine gets a boot that its objects close. Pure.
 *
 * - A label without a value: `kubectl apply` drops it, and the API server never sees it. The annotation of kubectl has
 *   the written text.
 * - Expressions and fields that close a boot, if the cluster's CRD is too old to know them: the API server drops them
 *   when a client writes the object. If an older CRD replaced a newer one, the API server drops them when davit reads
 *   the object. The annotation and the list of field managers show them.
 * - Names that the CRD does not know, such as misspelt ones: the API server drops them if the request turns strict
 *   validation off (`--validate=false`). The annotation shows them.
 *
 * Nothing shows what another client than kubectl wrote while the CRD was too old.
 */

import { type JsonObject, type JsonValue, objectOf, parseJsonObject } from "../../../model/json.ts";
import type { OwnName } from "../../../model/objects/source.ts";

export interface Dropped {
  /** The labels that were written without a value, except labels that have a value now, whoever wrote the value. */
  readonly labels: readonly string[];
  readonly expressions: boolean;
  /** Where the written text has a name that davit's CRD does not know. */
  readonly unknownIn?: "spec" | "spec.selector";
  /** The fields below `spec` that close a boot, such as `hold`. */
  readonly closing: readonly string[];
}

// A test compares these lists with the CRDs.
export const specNames: Readonly<Record<OwnName["kind"], readonly string[]>> = {
  Profile: [
    ...["assets", "boot", "cloudConfig", "displayName", "effect", "generic"],
    ...["genericParts", "ignition", "install", "metadata", "reports", "requireTls"],
  ],
  Group: [
    ...["approval", "args", "displayName", "enroll", "hold", "install"],
    ...["matchAll", "metadata", "priority", "profileRef", "requireTls", "selector"],
  ],
  Machine: ["approved", "hold", "identity", "install", "labels", "metadata"],
};
export const selectorNames: readonly string[] = ["matchLabels", "matchExpressions"];

/** Without one of these fields an object opens a boot, or another one. Those that only open are not among them. */
const closingFields: Readonly<Record<OwnName["kind"], readonly string[]>> = {
  Profile: ["effect", "install", "boot.grubScript", "requireTls"],
  Group: ["hold", "approval", "args", "requireTls"],
  Machine: ["hold", "labels"],
};

/** What a refused object says in place of a dropped field. Its value is not known: the safest one counts. */
const safest: Readonly<Record<string, JsonObject>> = {
  effect: { effect: "Install" },
  install: { effect: "Install" },
  hold: { hold: true },
  approval: { approval: "Required" },
  requireTls: { requireTls: true },
};

export const nothingDropped: Dropped = { labels: [], expressions: false, closing: [] };

/** Returns the written parts that an object lacks. */
export function droppedFields(kind: OwnName["kind"], { metadata, spec }: JsonObject): Dropped {
  const { annotations, managedFields } = objectOf(metadata);
  const text = objectOf(annotations)["kubectl.kubernetes.io/last-applied-configuration"];
  const writtenSpec = objectOf(typeof text === "string" ? parseJsonObject(text)?.spec : undefined);
  const owned = ownedSpecs(managedFields, typeof text === "string");
  const isOwned = (path: readonly string[]) => owned.some((fields) => at(fields, path.map(ownedName)) !== undefined);
  const closing = closingFields[kind].filter((field) => {
    const path = field.split(".");
    return at(objectOf(spec), path) === undefined && (closes(field, at(writtenSpec, path)) || isOwned(path));
  });
  const unknown = hasOther(writtenSpec, specNames[kind]) ? { unknownIn: "spec" as const } : {};
  if (kind !== "Group") return { ...nothingDropped, ...unknown, closing };
  const hasExpressions = Object.hasOwn(selectorOf(spec), "matchExpressions");
  const written = selectorOf(writtenSpec);
  const labels = matchLabelsOf(spec);
  const nulls = Object.entries(objectOf(written.matchLabels)).filter(([, value]) => value === null);
  const hasWritten = Object.hasOwn(written, "matchExpressions");
  return {
    ...(hasOther(written, selectorNames) ? { unknownIn: "spec.selector" } : unknown),
    labels: nulls.flatMap(([label]) => (Object.hasOwn(labels, label) ? [] : [label])),
    expressions: !hasExpressions && (hasWritten || isOwned(["selector", "matchExpressions"])),
    closing,
  };
}

export function isNothing({ labels, expressions, unknownIn, closing }: Dropped): boolean {
  return labels.length === 0 && !expressions && unknownIn === undefined && closing.length === 0;
}

/**
 * Returns the spec with the safest value in place of each dropped field, and a null in place of each dropped part of a
 * Group's selector. Admission refuses these nulls.
 */
export function withDropped(kind: OwnName["kind"], spec: JsonValue | undefined, dropped: Dropped): JsonObject {
  const closed = Object.assign({}, objectOf(spec), ...dropped.closing.map((field) => safest[field]));
  if (kind !== "Group") return closed;
  const { selector, ...others } = closed;
  const empty = Object.fromEntries(dropped.labels.map((label) => [label, null]));
  const matchLabels = { ...matchLabelsOf(spec), ...empty };
  // davit cannot know which machines the author meant. The null makes admission refuse the whole selector.
  const isPartial = dropped.expressions || dropped.unknownIn === "spec.selector";
  const expressions = isPartial ? { matchExpressions: null } : {};
  return { ...others, selector: { ...objectOf(selector), matchLabels, ...expressions } };
}

/** True if this value of a field closes a boot. */
function closes(field: string, value: JsonValue | undefined): boolean {
  if (field === "effect") return value === "Install";
  return value !== undefined && value !== null && value !== false;
}

/**
 * Returns the fields of the spec that each field manager is recorded to have written. If there is an annotation, the
 * record of `kubectl apply` does not count: the annotation is newer. The API server no longer updates the record of a
 * field that its CRD lacks.
 */
function ownedSpecs(managedFields: JsonValue | undefined, hasAnnotation: boolean): readonly JsonObject[] {
  if (!Array.isArray(managedFields)) return [];
  return managedFields.flatMap((entry: JsonValue) => {
    const { manager, fieldsV1 } = objectOf(entry);
    if (hasAnnotation && manager === "kubectl-client-side-apply") return [];
    return [objectOf(objectOf(fieldsV1)["f:spec"])];
  });
}

function ownedName(name: string): string {
  return `f:${name}`;
}

/** Returns the value at a path; undefined if there is none. */
function at(object: JsonObject, path: readonly string[]): JsonValue | undefined {
  const [name = "", ...rest] = path;
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return rest.length === 0 ? value : at(objectOf(value), rest);
}

function hasOther(object: JsonObject, names: readonly string[]): boolean {
  return Object.keys(object).some((name) => !names.includes(name));
}

function selectorOf(spec: JsonValue | undefined): JsonObject {
  return objectOf(objectOf(spec).selector);
}

function matchLabelsOf(spec: JsonValue | undefined): JsonObject {
  return objectOf(selectorOf(spec).matchLabels);
}
