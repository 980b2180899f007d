/**
 * Which object a document is, from its `apiVersion`, `kind` and `metadata`.
 *
 * A Profile or Group of almost our group is an error, as it is for kubectl. Were it passed over as another project's, a
 * slip of the keyboard would take an object away, and hand its machines to a less specific Group.
 */

import type { FindingCode } from "../model/findings.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../model/json.ts";
import type { ObjectKind, ObjectName } from "../model/source.ts";
import type { SchemaFinding } from "./check.ts";
import { isNamespace, isObjectName } from "./core-kinds.ts";

/** A document and the kind of object that it is. */
interface KnownDocument {
  readonly objectKind: ObjectKind;
  readonly document: JsonObject;
}

export type Identity =
  | ({ readonly kind: "known" } & KnownDocument)
  /** Of a group that davit does not read. */
  | { readonly kind: "foreign" }
  /** Nobody can tell, or a kind or version that davit.dev does not have: it may be meant for davit. */
  | { readonly kind: "unclear"; readonly finding: SchemaFinding; readonly meant?: KnownDocument };

const davitGroup = "davit.dev";
const davitVersion = `${davitGroup}/v1alpha1`;

/** Tells what a document is. */
export function identify(document: JsonValue): Identity {
  if (!isJsonObject(document)) {
    return unclear([], "not-an-object", "is no Kubernetes object: write apiVersion, kind, metadata and spec");
  }
  const { apiVersion, kind } = document;
  if (typeof apiVersion !== "string")
    return unclear(["apiVersion"], "missing-field", `is missing: write ${davitVersion} or v1`);
  if (typeof kind !== "string")
    return unclear(["kind"], "missing-field", "is missing: write Profile, Group, ConfigMap or Secret");
  const isOwn = apiVersion === davitGroup || apiVersion.startsWith(`${davitGroup}/`);
  return isOwn ? identifyOwn(apiVersion, kind, document) : identifyOther(apiVersion, kind, document);
}

function identifyOwn(apiVersion: string, kind: string, document: JsonObject): Identity {
  const meant = isOwnKind(kind) ? { objectKind: kind, document } : undefined;
  if (apiVersion !== davitVersion)
    return { ...unclear(["apiVersion"], "unknown-version", versionText), ...(meant && { meant }) };
  return meant === undefined ? unclear(["kind"], "unknown-kind", kindText) : { kind: "known", ...meant };
}

function identifyOther(apiVersion: string, kind: string, document: JsonObject): Identity {
  if (apiVersion === "v1" && (kind === "ConfigMap" || kind === "Secret")) {
    return { kind: "known", objectKind: kind, document };
  }
  if (apiVersion === "v1" && kind === "List") return unclear(["items"], "nested-list", listText);
  if (!isOwnKind(kind) || !isAlmostOwn(apiVersion)) return { kind: "foreign" };
  return { ...unclear(["apiVersion"], "misspelt-group", nearMissText), meant: { objectKind: kind, document } };
}

/** True without a group, or with one that has our name in it. */
function isAlmostOwn(apiVersion: string): boolean {
  const slash = apiVersion.indexOf("/");
  return slash <= 0 || /davit/i.test(apiVersion.slice(0, slash));
}

/** A text that is the same for the same foreign document, wherever in a file it stands. It quotes: never show it. */
export function foreignKey(document: JsonValue): string {
  const { apiVersion, kind, metadata } = isJsonObject(document) ? document : {};
  const { namespace, name } = isJsonObject(metadata) ? metadata : {};
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

const kindText = "is no kind of davit.dev: write Profile or Group";
const versionText = `is no version of davit.dev: write ${davitVersion}`;
const nearMissText = `is not the group of Profiles and Groups: write ${davitVersion}, or move the document elsewhere`;
// A List of objects was unfolded before it came here.
const listText = 'is no list of objects: begin each entry with "- ", and put no List into a List';

function isOwnKind(kind: string): kind is "Profile" | "Group" {
  return kind === "Profile" || kind === "Group";
}

function unclear(path: readonly string[], code: FindingCode, text: string) {
  return { kind: "unclear", finding: { path, code, text } } as const;
}
