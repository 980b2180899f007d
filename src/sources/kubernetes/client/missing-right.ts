/**
 * Explains a 403 of the API server: which right davit lacks, and the rule of a Role that gives it. It reads the right
 * from the request, so every part of davit gives the same words. Pure.
 */

import { apiGroup as davitGroup } from "../../../model/objects/source.ts";
import { lackedRule } from "../../../model/role-rule.ts";

/** A request to the API server, as RBAC sees it. */
export interface NeededAccess {
  readonly verb: "get" | "list" | "watch" | "create" | "patch" | "delete";
  /** Empty for the core group. */
  readonly apiGroup: string;
  /** Plural, with its subresource: `groups/status`. */
  readonly resource: string;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** Set if the request is for a single object. */
  readonly name?: string | undefined;
}

/** Returns one sentence, without the full stop: what davit may not do, and the missing rule. */
export function missingRight(access: NeededAccess): string {
  const { verb, apiGroup, resource, namespace, name } = access;
  const where = namespace === undefined ? "in all namespaces" : `in namespace "${namespace}"`;
  const isOfDavit = apiGroup === davitGroup;
  const of = isOfDavit && !resource.includes("/") ? `.${apiGroup}` : "";
  const which = name === undefined ? "" : ` "${name}"`;
  // A rule names only objects that others may share: ConfigMaps and Secrets.
  const rule = lackedRule(
    { apiGroup, resource, verbs: [verb], name: isOfDavit ? undefined : name },
    namespace === undefined ? "ClusterRole" : "Role",
  );
  return `davit may not ${verb} ${resource}${of}${which} ${where} (403): ${rule}`;
}

/** A request as the client sends it. */
export interface SentRequest {
  readonly method?: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
}

/** Returns what a request needs; undefined for a path without a resource. */
export function accessOf({ method = "GET", path, query = {} }: SentRequest): NeededAccess | undefined {
  const [, apiGroup = "", namespace, plural, ownName, subresource] = resourcePath.exec(path) ?? [];
  if (plural === undefined) return undefined;
  const name = ownName ?? /^metadata\.name=(.+)$/.exec(query.fieldSelector ?? "")?.[1];
  const list = query.watch === undefined ? "list" : "watch";
  const verb = writes[method] ?? (ownName === undefined ? list : "get");
  const resource = subresource === undefined ? plural : `${plural}/${subresource}`;
  return { verb, apiGroup, resource, namespace, name: subresource === undefined ? name : undefined };
}

const resourcePath = /^\/(?:api|apis\/([^/]+))\/v[^/]+(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/;

const writes: Readonly<Record<string, NeededAccess["verb"]>> = { POST: "create", PATCH: "patch", DELETE: "delete" };
