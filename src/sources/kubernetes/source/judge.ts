/**
 * Turns an object of the API server into an object of the model. The API server has checked the object by the cluster's
 * CRD, which may be older or newer than davit. So davit checks it again by its own CRD, like a document of a file.
 * Pure.
 */

import { isDeepStrictEqual } from "node:util";
import { compareBytes } from "../../../lib/order.ts";
import { isJsonObject, type JsonObject, type JsonValue, objectOf } from "../../../model/json.ts";
import type { ProfileCaution } from "../../../model/objects/profile.ts";
import {
  type GroupObject,
  isOwnKind,
  type MachineObject,
  type ObjectKind,
  type SourceObject,
} from "../../../model/objects/source.ts";
import type { Admission, RefusedDocument } from "../../admission/admission.ts";
import type { SchemaFinding } from "../../admission/check.ts";
import type { Resource } from "../client/resources.ts";
import type { HeldMeta, MirroredObject } from "../watch/mirror.ts";
import type { SharedConditions } from "../watch/shared-conditions.ts";
import { type Dropped, droppedFields, isNothing, nothingDropped, withDropped } from "./dropped-fields.ts";

/** What an object means to davit, and its current status. */
export interface Judgement {
  readonly uid: string;
  readonly generation: number;
  /** The accepted object, or the stand-in of a refused Group or Machine. */
  readonly object?: SourceObject;
  /** Why the object was refused. */
  readonly refusal?: string;
  /** As in `Refusal`. */
  readonly hidesMachines?: true;
  /** As in `Refusal`. */
  readonly caution?: ProfileCaution;
  readonly status: JsonObject;
  /** Who changed the spec last, as far as the API server says. It is no part of what the object means. */
  readonly manager?: SpecManager;
  /** Written parts that did not reach davit. */
  readonly dropped: Dropped;
}

/** The rules by which `judge` accepts objects, and the conditions that their statuses share. */
interface JudgeTools {
  readonly admission: Admission;
  readonly conditions: SharedConditions;
}

/**
 * Judges an object. If only the object's status differs from the previous version, the result holds the previous
 * `object`, so the object counts as unchanged. `judge` compares contents, because equal generations prove nothing after
 * the API server went back to an older state.
 */
export function judge(
  tools: JudgeTools,
  resource: Resource,
  { object, meta, before }: { object: JsonObject; meta: HeldMeta; before: MirroredObject<Judgement> | undefined },
): Judgement {
  const judged = judgeAnew(tools, resource, { object, meta });
  const { status } = judged;
  const manager = isOwnKind(resource.kind) ? specManager(object) : undefined;
  const isSame = before !== undefined && isDeepStrictEqual(unmanaged({ ...before.value, status }), judged);
  return { ...(isSame ? { ...unmanaged(before.value), status } : judged), ...(manager && { manager }) };
}

function unmanaged({ manager: _, ...judged }: Judgement): Judgement {
  return judged;
}

function judgeAnew(
  { admission, conditions }: JudgeTools,
  resource: Resource,
  { object, meta }: { object: JsonObject; meta: HeldMeta },
): Judgement {
  const generation = generationOf(object);
  const status = isJsonObject(object.status) ? conditions.of(object.status) : {};
  const { dropped, written } = writtenOf(resource.kind, object);
  const verdict = admission.admit(toDocument(written, meta, resource), {
    origin,
    findings: findingsOf(dropped),
    meta: { uid: meta.uid, generation: Math.max(generation, 1) },
  });
  const base = { uid: meta.uid, generation, status, dropped };
  if (verdict.kind === "accepted") return { ...base, object: verdict.object };
  const refusal = verdict.kind === "refused" ? describe(verdict) : "it is of another group";
  const standIn = verdict.kind === "refused" ? toStandIn(verdict, meta, { generation, refusal }) : undefined;
  const hidesMachines = verdict.kind === "refused" && verdict.hidesMachines;
  const caution = verdict.kind === "refused" ? verdict.caution : undefined;
  const read = { ...(hidesMachines && { hidesMachines }), ...(caution && { caution }) };
  return { ...base, ...(standIn && { object: standIn }), refusal, ...read };
}

/** Returns what was dropped of an object, and the object that admission is to judge. */
function writtenOf(kind: ObjectKind, object: JsonObject): { readonly dropped: Dropped; readonly written: JsonObject } {
  const dropped = isOwnKind(kind) ? droppedFields(kind, object) : nothingDropped;
  if (isNothing(dropped) || !isOwnKind(kind)) return { dropped: nothingDropped, written: object };
  return { dropped, written: { ...object, spec: withDropped(kind, object.spec, dropped) } };
}

/** The origin of every object in a cluster. */
export const origin = "cluster";

/** Returns an object's generation; 0 for ConfigMaps and Secrets, which have none. */
function generationOf({ metadata }: JsonObject): number {
  const generation = isJsonObject(metadata) ? metadata.generation : undefined;
  return typeof generation === "number" ? generation : 0;
}

/** Returns the object as a person would write it, without the API server's additions. */
function toDocument(object: JsonObject, { namespace, name }: HeldMeta, { apiVersion, kind }: Resource): JsonValue {
  const { labels } = objectOf(object.metadata);
  const metadata = { name, namespace, ...(isJsonObject(labels) && { labels }) };
  const content = Object.entries(object).filter(([field]) => contentFields.has(field));
  return { apiVersion, kind, metadata, ...Object.fromEntries(content) };
}

const contentFields: ReadonlySet<string> = new Set(["spec", "data"]);

/** Describes the first mistake: the path of its field, and what to do. It shows no name that a user chose. */
function describe({ findings }: RefusedDocument): string {
  const [first] = findings;
  if (first === undefined) return "it cannot be read";
  // Only davit makes such a finding. Its path has no name that a user chose, so davit shows the whole path.
  if (first.isBeyondCrd === true) return `${first.path.join(".")}: ${first.text}`;
  const path = first.isUnknownField === true ? first.path.slice(0, -1) : first.path.slice(0, shownDepth);
  const question = first === droppedLabel ? "" : "; is the CRD in the cluster of this version of davit?";
  return `${path.join(".")}: ${first.text}${question}`;
}

function findingsOf({ labels, expressions, unknownIn, closing }: Dropped): readonly SchemaFinding[] {
  return [
    ...(labels.length > 0 ? [droppedLabel] : []),
    ...(expressions ? [droppedList] : []),
    ...(unknownIn === undefined ? [] : [{ ...droppedName, path: unknownIn.split(".") }]),
    ...closing.map((field) => ({ ...droppedField, path: ["spec", ...field.split(".")] })),
  ];
}

const droppedName: SchemaFinding = {
  path: [],
  isBeyondCrd: true,
  code: "unknown-field",
  text:
    "a name was written that it does not have, and dropped: correct it and kubectl apply it again, " +
    "after the CRDs of a version that has it, if there is one",
};
const droppedLabel: SchemaFinding = {
  path: ["spec", "selector", "matchLabels"],
  code: "broken-rule",
  text: "kubectl apply dropped a label without a value: write its value, or remove the label, and apply it again",
};
const droppedField: SchemaFinding = {
  path: [],
  isBeyondCrd: true,
  code: "broken-rule",
  text:
    "it was written, but the cluster does not show it: apply the CRDs of this version of davit, then this object " +
    "again",
};
const droppedList: SchemaFinding = {
  path: ["spec", "selector", "matchExpressions"],
  isBeyondCrd: true,
  code: "broken-rule",
  text:
    "it was written and dropped, by an older CRD or since it was empty: " +
    "apply the CRDs of this version of davit, then the Group again, with its expressions",
};

// Down to this depth the CRDs declare every name: spec.boot.kernel, spec.ignition.inline.
const shownDepth = 3;

function toStandIn(
  { standIn }: RefusedDocument,
  { namespace, name, uid }: HeldMeta,
  { generation, refusal }: { readonly generation: number; readonly refusal: string },
): GroupObject | MachineObject | undefined {
  if (standIn === undefined) return undefined;
  return { ...standIn, namespace, name, uid, generation, origin, refusal };
}

/** A field manager: the name that a client gives itself. The API server does not verify it. */
interface SpecManager {
  readonly manager: string;
  /** `Apply` or `Update`. */
  readonly operation?: string;
  /** When it changed its fields last, RFC 3339 with seconds. */
  readonly managedAt?: string;
}

/**
 * Returns the manager of fields of the spec that changed last; undefined if the object has no record. A manager that
 * only removed fields has none, and one that changed only the status or metadata does not count.
 */
export function specManager({ metadata }: JsonObject): SpecManager | undefined {
  const entries = isJsonObject(metadata) && Array.isArray(metadata.managedFields) ? metadata.managedFields : [];
  const managers = entries.flatMap((entry: JsonValue) => managerIn(entry) ?? []);
  // The times are in UTC and of equal length. The sort is stable, so the last of equals wins.
  return managers.toSorted((a, b) => compareBytes(a.managedAt ?? "", b.managedAt ?? "")).at(-1);
}

function managerIn(entry: JsonValue): SpecManager | undefined {
  if (!isJsonObject(entry)) return undefined;
  const { manager, operation, time, subresource, fieldsV1 } = entry;
  if (typeof manager !== "string" || (subresource ?? "") !== "") return undefined;
  if (!isJsonObject(fieldsV1) || !Object.hasOwn(fieldsV1, "f:spec")) return undefined;
  return {
    manager,
    ...(typeof operation === "string" && { operation }),
    ...(typeof time === "string" && { managedAt: time }),
  };
}
