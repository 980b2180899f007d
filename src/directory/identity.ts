/** Which object a document is, from its `apiVersion`, `kind` and `metadata`. */

import { isJsonObject, type JsonObject, type JsonValue } from "../model/json.ts";
import type { ObjectKind, ObjectName } from "../model/source.ts";
import type { Finding } from "./check.ts";
import { isNamespace, isObjectName } from "./core-kinds.ts";

export type Identity =
  | { readonly kind: "known"; readonly objectKind: ObjectKind; readonly document: JsonObject }
  /** Of a group that davit does not read. */
  | { readonly kind: "foreign" }
  /** Nobody can tell, or a kind that the group davit.dev does not have: it may be meant for davit. */
  | { readonly kind: "unclear"; readonly finding: Finding };

const davitGroup = "davit.dev";
const davitVersion = `${davitGroup}/v1alpha1`;

/** Tells what a document is. */
export function identify(document: JsonValue): Identity {
  if (!isJsonObject(document)) {
    return unclear([], "is no Kubernetes object: write apiVersion, kind, metadata and spec");
  }
  const { apiVersion, kind } = document;
  if (typeof apiVersion !== "string") return unclear(["apiVersion"], `is missing: write ${davitVersion} or v1`);
  if (typeof kind !== "string") return unclear(["kind"], "is missing: write Profile, Group, ConfigMap or Secret");
  const [group] = apiVersion.split("/");
  if (group === davitGroup) return identifyOwn(apiVersion, kind, document);
  if (apiVersion === "v1" && (kind === "ConfigMap" || kind === "Secret")) {
    return { kind: "known", objectKind: kind, document };
  }
  return { kind: "foreign" };
}

/** Namespace and name of an object; undefined when they are not valid. A missing namespace is `default`. */
export function toObjectName(kind: ObjectKind, metadata: JsonValue | undefined): ObjectName | undefined {
  if (!isJsonObject(metadata)) return undefined;
  const { name } = metadata;
  const namespace = metadata.namespace ?? "default";
  if (typeof name !== "string" || typeof namespace !== "string") return undefined;
  return isObjectName(name) && isNamespace(namespace) ? { kind, namespace, name } : undefined;
}

function identifyOwn(apiVersion: string, kind: string, document: JsonObject): Identity {
  if (apiVersion !== davitVersion) return unclear(["apiVersion"], `is no version of davit.dev: write ${davitVersion}`);
  if (kind === "Profile" || kind === "Group") return { kind: "known", objectKind: kind, document };
  return unclear(["kind"], "is no kind of davit.dev: write Profile or Group");
}

function unclear(path: readonly string[], text: string): Identity {
  return { kind: "unclear", finding: { path, text } };
}
