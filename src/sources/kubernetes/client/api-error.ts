/** Why the API server gave no usable answer. An `ApiError` never quotes the answer, which may quote an object. */

import type { JsonObject } from "../../../model/json.ts";
import { apiGroup as davitGroup } from "../../../model/objects/source.ts";
import { lackedRule } from "../../../model/role-rule.ts";

const failures = {
  unreachable: "the API server cannot be reached",
  untrusted: "the API server's certificate is not trusted",
  late: "the API server does not answer in time",
  credentials: "the credentials cannot be read",
  answered: "the API server refuses",
  protocol: "davit cannot read the API server's answer",
} as const;

type ApiFailure = keyof typeof failures;

interface ApiErrorDetail {
  /** HTTP status of an `answered` failure. */
  readonly status?: number;
  /** The `reason` of a Status, the code of a system error, or what is wrong with the answer. */
  readonly what?: string | undefined;
  /** The message, instead of one made of the failure, `status` and `what`. */
  readonly text?: string | undefined;
  /** How long the server asks davit to wait. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly failure: ApiFailure;
  readonly status: number | undefined;
  readonly what: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(failure: ApiFailure, { status, what, text, retryAfterMs, cause }: ApiErrorDetail = {}) {
    const details = [status, what].filter((detail) => detail !== undefined).join(" ");
    super(text ?? (details === "" ? failures[failure] : `${failures[failure]} (${details})`), { cause });
    this.failure = failure;
    this.status = status;
    this.what = what;
    this.retryAfterMs = retryAfterMs;
  }

  /** True if the same request may succeed later even if nobody changes anything. */
  get isTransient(): boolean {
    if (this.failure !== "answered") return this.failure !== "protocol";
    return this.status === 429 || (this.status ?? 0) >= 500;
  }
}

/** An answer without success. */
interface FailedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: JsonObject | undefined;
}

/** Makes the error for an unsuccessful answer to a request. If a right is missing, the message names its rule. */
export function answeredError(request: SentRequest, { status, headers, body }: FailedAnswer): ApiError {
  const access = status === 403 && isOfRights(body) ? accessOf(request) : undefined;
  return new ApiError("answered", {
    status,
    what: reasonOf(body),
    text: access && missingRight(access),
    retryAfterMs: retryAfterMs(headers["retry-after"]),
  });
}

/** False if the API server refuses for another reason than a missing right: by a policy, a webhook or a quota. */
function isOfRights({ message }: JsonObject = {}): boolean {
  return typeof message !== "string" || message === "" || / cannot \w+ resource /.test(message);
}

/** The value of `ApiError.what` when the CRD in the cluster lacks a field that davit applies. */
export const fieldNotDeclared = "FieldNotDeclared";

function reasonOf(body: JsonObject | undefined): string | undefined {
  const { reason, message } = body ?? {};
  // Reasons are CamelCase words of a known set. davit shows nothing else, because it could quote an object.
  if (typeof reason === "string" && /^[A-Za-z]{1,64}$/.test(reason)) return reason;
  // For a field that the CRD lacks, server-side apply answers 500 without a reason (structured-merge-diff,
  // typed/validate.go).
  const isUndeclared = typeof message === "string" && message.includes("field not declared in schema");
  return isUndeclared ? fieldNotDeclared : undefined;
}

/** Headers of an answer, with names in lower case. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

// davit never waits longer than this, because machines wait for the API server's data.
const maxRetryAfterSeconds = 300;

function retryAfterMs(value: string | string[] | undefined): number | undefined {
  if (typeof value !== "string" || !/^\d{1,6}$/.test(value)) return undefined;
  return Math.min(Number(value), maxRetryAfterSeconds) * 1_000;
}

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

/**
 * Explains a 403: returns one sentence, without the full stop, of what davit may not do, and the rule of a Role that
 * gives the right. The right is read from the request, so every part of davit gives the same words.
 */
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
