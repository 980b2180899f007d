/**
 * Labels that were written without a value and that `kubectl apply` dropped on the way, so that the API server never saw
 * them and the selector in the cluster takes more machines than its text says. What was written is in the annotation
 * that kubectl keeps. Pure.
 */

import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from "../model/json.ts";

/** The names of such labels of a Group. One that has a value by now, from whomever, was not dropped. */
export function droppedLabels({ metadata, spec }: JsonObject): readonly string[] {
  const { annotations } = objectOf(metadata);
  const text = objectOf(annotations)["kubectl.kubernetes.io/last-applied-configuration"];
  // Nearly every text has none, and none is read with every event.
  if (typeof text !== "string" || !text.includes("null")) return [];
  const labels = matchLabelsOf(spec);
  const written = Object.entries(matchLabelsOf(parseJsonObject(text)?.spec));
  return written.flatMap(([label, value]) => (value === null && !Object.hasOwn(labels, label) ? [label] : []));
}

/** The spec as it was written: refused by the same rule that refuses it wherever the labels are not dropped. */
export function withDroppedLabels(spec: JsonValue | undefined, labels: readonly string[]): JsonObject {
  const { selector, ...others } = objectOf(spec);
  const empty = Object.fromEntries(labels.map((label) => [label, null]));
  return { ...others, selector: { ...objectOf(selector), matchLabels: { ...matchLabelsOf(spec), ...empty } } };
}

function matchLabelsOf(spec: JsonValue | undefined): JsonObject {
  return objectOf(objectOf(objectOf(spec).selector).matchLabels);
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
