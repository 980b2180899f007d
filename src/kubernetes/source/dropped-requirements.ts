/**
 * Finds parts of a selector that its author wrote, but that did not reach davit. Without them the selector in the
 * cluster matches more machines than its author meant. Pure.
 *
 * - A label without a value: `kubectl apply` drops it, and the API server never sees it. The annotation of kubectl has
 *   the written text.
 * - Expressions, if the cluster's CRD is too old to know them: the API server drops them when a client writes the
 *   Group. If an older CRD replaced a newer one, the API server drops them when davit reads the Group. The annotation
 *   and the list of field managers show them.
 * - Names that the CRD does not know, such as misspelt ones: the API server drops them if the request turns strict
 *   validation off (`--validate=false`). The annotation shows them.
 */

import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "../../model/json.ts";

export interface Dropped {
  /** The labels that were written without a value, except labels that have a value now, whoever wrote the value. */
  readonly labels: readonly string[];
  readonly expressions: boolean;
  /** Where the written text has a name that davit's CRD does not know. */
  readonly unknownIn?: "spec" | "spec.selector";
}

// A test compares both lists with the CRD.
export const specNames: readonly string[] = [
  ...["approval", "args", "displayName", "enroll", "hold", "install"],
  ...["matchAll", "metadata", "priority", "profileRef", "selector"],
];
export const selectorNames: readonly string[] = ["matchLabels", "matchExpressions"];

/** Returns the written parts that a Group lacks. */
export function droppedRequirements({ metadata, spec }: JsonObject): Dropped {
  const { annotations, managedFields } = objectOf(metadata);
  const text = objectOf(annotations)["kubectl.kubernetes.io/last-applied-configuration"];
  const hasExpressions = Object.hasOwn(selectorOf(spec), "matchExpressions");
  const writtenSpec = objectOf(typeof text === "string" ? parseJsonObject(text)?.spec : undefined);
  const written = selectorOf(writtenSpec);
  const labels = matchLabelsOf(spec);
  const nulls = Object.entries(objectOf(written.matchLabels)).filter(([, value]) => value === null);
  const hasWritten = Object.hasOwn(written, "matchExpressions");
  const unknownIn = hasOther(written, selectorNames)
    ? "spec.selector"
    : hasOther(writtenSpec, specNames)
      ? "spec"
      : undefined;
  return {
    ...(unknownIn && { unknownIn }),
    labels: nulls.flatMap(([label]) => (Object.hasOwn(labels, label) ? [] : [label])),
    expressions: !hasExpressions && (hasWritten || isOwned(managedFields, typeof text === "string")),
  };
}

export function isNothing({ labels, expressions, unknownIn }: Dropped): boolean {
  return labels.length === 0 && !expressions && unknownIn === undefined;
}

/** Returns the spec with a null in place of each dropped part of the selector. Admission refuses these nulls. */
export function withDropped(spec: JsonValue | undefined, dropped: Dropped): JsonObject {
  const { selector, ...others } = objectOf(spec);
  const empty = Object.fromEntries(dropped.labels.map((label) => [label, null]));
  const matchLabels = { ...matchLabelsOf(spec), ...empty };
  // davit cannot know which machines the author meant. The null makes admission refuse the whole selector.
  const isPartial = dropped.expressions || dropped.unknownIn === "spec.selector";
  const expressions = isPartial ? { matchExpressions: null } : {};
  return { ...others, selector: { ...objectOf(selector), matchLabels, ...expressions } };
}

/**
 * True when a field manager is recorded as the writer of expressions. If there is an annotation, the record of
 * `kubectl apply` does not count: the annotation is newer. The API server no longer updates the record of a field that
 * its CRD lacks.
 */
function isOwned(managedFields: JsonValue | undefined, hasAnnotation: boolean): boolean {
  if (!Array.isArray(managedFields)) return false;
  return managedFields.some((entry: JsonValue) => {
    const { manager, fieldsV1 } = objectOf(entry);
    if (hasAnnotation && manager === "kubectl-client-side-apply") return false;
    const selector = objectOf(objectOf(objectOf(fieldsV1)["f:spec"])["f:selector"]);
    return Object.hasOwn(selector, "f:matchExpressions");
  });
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

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
