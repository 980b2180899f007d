/**
 * Requests that name their machine in the path, for clients that can give no query, such as cloud-init. Such a request
 * is turned into the same request with a query before anything else reads it. So labels, permits, signatures, limits,
 * logs and metrics know one form only.
 *
 *   /by/mac/52-54-00-a1-9c-ae/grub.sig?zone=a   /grub.sig?mac=52-54-00-a1-9c-ae&zone=a
 *   /nocloud/52-54-00-a1-9c-ae/user-data        /nocloud/user-data?mac=52-54-00-a1-9c-ae
 */

import { configNames } from "../../boot/boot-configs.ts";
import { isUuid, normalizeMac } from "../../model/labels/hardware-ids.ts";
import { identityLabels } from "../../model/labels/labels.ts";
import { signatureForms } from "./signatures.ts";

/** A request's path and query, as in `Exchange`. */
interface RequestTarget {
  readonly path: string;
  readonly rawQuery: string;
}

const endpoint = `(?:${configNames.join("|")})(?:\\.(?:${signatureForms.join("|")}))?`;
const withKind = new RegExp(`^/by/(${identityLabels.join("|")})/([^/]+)(/(?:${endpoint}|(?:generic|nocloud)/[^/]+))$`);
const nocloud = /^\/nocloud\/([^/]+)(\/[^/]+)$/;

/**
 * Returns the target of the same request with a query: the label of the path, then the query as sent. If the query has
 * another value of this label, davit treats both as it treats a label that is sent twice.
 * @returns the target itself, if its path names no machine.
 */
export function byQuery<Asked extends RequestTarget>(target: Asked): Asked {
  const { path, rawQuery } = target;
  if (!path.startsWith("/by/") && !path.startsWith("/nocloud/")) return target;
  const [, kind, value = "", rest = ""] = withKind.exec(path) ?? [];
  if (kind !== undefined) return { ...target, path: rest, rawQuery: joined(kind, value, rawQuery) };
  const [, sole, file = ""] = nocloud.exec(path) ?? [];
  if (sole === undefined) return target;
  return { ...target, path: `/nocloud${file}`, rawQuery: joined(kindOf(sole), sole, rawQuery) };
}

/** Returns the label that a text looks like. A serial number that looks like another one needs `/by/serial/`. */
function kindOf(value: string): string {
  const text = value.replaceAll(/%3a/gi, ":");
  if (isUuid(text)) return "uuid";
  return normalizeMac(text) === undefined ? "serial" : "mac";
}

/** @param value as in the path: there `&` and `+` stand for themselves. */
function joined(kind: string, value: string, rawQuery: string): string {
  const label = `${kind}=${value.replaceAll("&", "%26").replaceAll("+", "%2B")}`;
  return rawQuery === "" ? label : `${label}&${rawQuery}`;
}
