/**
 * Finds out from `apiVersion`, `kind` and `metadata` which object a document describes.
 *
 * If the API group of an object only resembles davit's, davit reports an error, as kubectl does. If davit
 * ignored such a document, a typing error would remove an object and give its machines to a less specific Group.
 */

import { nearestWord } from "../../lib/text/nearest-word.ts";
import { isJsonObject, type JsonObject, type JsonValue, objectOf } from "../../model/json.ts";
import type { FindingCode } from "../../model/objects/findings.ts";
import {
  apiGroup,
  type ObjectKind,
  type ObjectName,
  type OwnKind,
  ownKinds,
  apiVersion as ownVersion,
} from "../../model/objects/source.ts";
import type { SchemaFinding } from "./check.ts";
import { isNamespace, isObjectName } from "./core-kinds.ts";

/** A document and its kind of object. */
interface KnownDocument {
  readonly objectKind: ObjectKind;
  readonly document: JsonObject;
}

export type Identity =
  | ({ readonly kind: "known" } & KnownDocument)
  /** Not for davit: an object of another kind. */
  | { readonly kind: "foreign" }
  /** Perhaps for davit, but its `apiVersion` or `kind` is missing or wrong. `meant` has the likely kind. */
  | { readonly kind: "unclear"; readonly finding: SchemaFinding; readonly meant?: KnownDocument };

/** Returns which object a document describes, or why that is unclear. */
export function identify(document: JsonValue): Identity {
  if (!isJsonObject(document)) {
    return unclear([], "not-an-object", "is no Kubernetes object: write apiVersion, kind, metadata and spec");
  }
  const { apiVersion, kind } = document;
  if (typeof apiVersion !== "string")
    return unclear(["apiVersion"], "missing-field", `is missing: write ${ownVersion} or v1`);
  if (typeof kind !== "string")
    return unclear(["kind"], "missing-field", "is missing: write Profile, Group, Machine, ConfigMap or Secret");
  const isOwn = apiVersion === apiGroup || apiVersion.startsWith(`${apiGroup}/`);
  return isOwn ? identifyOwn(apiVersion, kind, document) : identifyOther(apiVersion, kind, document);
}

function identifyOwn(apiVersion: string, kind: string, document: JsonObject): Identity {
  const objectKind = meantKind(kind);
  const meant = objectKind && { objectKind, document };
  if (apiVersion !== ownVersion)
    return { ...unclear(["apiVersion"], "unknown-version", versionText), ...(meant && { meant }) };
  if (meant === undefined) return unclear(["kind"], "unknown-kind", `is no kind of davit.dev: ${kindCure}`);
  if (objectKind === kind) return { kind: "known", ...meant };
  const text = `is no kind of davit.dev, probably meant as ${objectKind}: ${kindCure}`;
  return { ...unclear(["kind"], "unknown-kind", text), meant };
}

function identifyOther(apiVersion: string, kind: string, document: JsonObject): Identity {
  if (apiVersion === "v1" && (kind === "ConfigMap" || kind === "Secret")) {
    return { kind: "known", objectKind: kind, document };
  }
  if (apiVersion === "v1" && kind === "List") return unclear(["items"], "nested-list", listText);
  const objectKind = isAlmostOwn(apiVersion) ? meantKind(kind) : undefined;
  if (objectKind === undefined) return { kind: "foreign" };
  return { ...unclear(["apiVersion"], "misspelt-group", nearMissText), meant: { objectKind, document } };
}

/** True if the API group is missing, contains davit's name or resembles davit's group. */
function isAlmostOwn(apiVersion: string): boolean {
  const slash = apiVersion.indexOf("/");
  const group = apiVersion.slice(0, Math.max(slash, 0));
  return slash <= 0 || /davit/i.test(group) || nearestWord(group, [apiGroup]) !== undefined;
}

/** Returns davit's kind that a kind is or resembles, such as Group for `groups`. */
function meantKind(kind: string): OwnKind | undefined {
  const lower = (word: string) => word.toLowerCase();
  const near = nearestWord(lower(kind), ownKinds.map(lower));
  return ownKinds.find((own) => lower(own) === near);
}

/**
 * Returns a key of a foreign document. The key stays the same when the document moves within its file. It contains the
 * document's own text, so never show it.
 */
export function foreignKey(document: JsonValue): string {
  const { apiVersion, kind, metadata } = objectOf(document);
  const { namespace, name } = objectOf(metadata);
  return JSON.stringify([apiVersion, kind, namespace, name]);
}

/** Namespace and name of an object; undefined when they are not valid. A missing namespace is `default`. */
export function toObjectName(kind: ObjectKind, metadata: JsonValue | undefined): ObjectName | undefined {
  if (!isJsonObject(metadata)) return undefined;
  const { name } = metadata;
  const namespace = metadata.namespace ?? "default";
  if (typeof name !== "string" || typeof namespace !== "string") return undefined;
  return isObjectName(name) && isNamespace(namespace) ? { kind, namespace, name } : undefined;
}

const kindCure = "write Profile, Group or Machine";
const versionText = `is no version of davit.dev: write ${ownVersion}`;
const nearMissText = `is not the group of Profiles, Groups and Machines: write ${ownVersion}, or move it elsewhere`;
// The reader has already split every valid List into its objects. Only invalid and nested ones get this far.
const listText = 'is no list of objects: begin each entry with "- ", and put no List into a List';

function unclear(path: readonly string[], code: FindingCode, text: string) {
  return { kind: "unclear", finding: { path, code, text } } as const;
}
