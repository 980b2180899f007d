/** CRDs as they were before they had some of their fields: they drop what they do not know, and merge selectors. */

import { parse } from "yaml";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/model/json.ts";
import { packagedCrdsDirectory, readCrds } from "../../src/sources/admission/crds.ts";
import type { Cluster } from "../../tools/cluster/cluster.ts";

const younger = ["x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-map-type"];

/** Returns a CRD without the fields of these names, wherever they are. @param plural such as `groups`. */
export async function olderCrd(plural: string, fields: readonly string[]): Promise<JsonObject> {
  const crds = (await readCrds(packagedCrdsDirectory)).map((text): JsonValue => parse(text));
  const crd = crds.find((each) => JSON.stringify(each).includes(`"${plural}.davit.dev"`));
  const older = without(crd ?? null, new Set([...younger, ...fields]));
  if (!isJsonObject(older)) throw new Error(`no CRD of ${plural}`);
  return older;
}

/** Replaces a CRD of the cluster by an older one. */
export async function applyOlderCrd(cluster: Cluster, plural: string, fields: readonly string[]): Promise<void> {
  const flags = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
  const { code, stderr } = await cluster.kubectl(flags, { input: JSON.stringify(await olderCrd(plural, fields)) });
  if (code !== 0) throw new Error(stderr);
}

/** A value without fields of these names, wherever they are. */
function without(value: JsonValue, names: ReadonlySet<string>): JsonValue {
  if (Array.isArray(value)) return value.map((each: JsonValue) => without(each, names));
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([name]) => !names.has(name));
  return Object.fromEntries(kept.map(([name, child]) => [name, without(child, names)]));
}
