/**
 * Explains to a person why a request to the API server failed: what is missing, and where to look. Error codes stay in
 * brackets, so that the person can search for them. Pure.
 */

import { ApiError, missingRight, type NeededAccess } from "../client/api-error.ts";
import type { Resource } from "../client/resources.ts";
import { WatchFailure } from "./watch-failure.ts";

/** A request to the API server. */
export interface ApiCall {
  readonly verb: "get" | "list" | "watch" | "patch";
  readonly resource: Resource;
  readonly subresource?: "status";
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** Set if the request is for a single object. */
  readonly name?: string | undefined;
}

/** Returns one sentence, without the full stop. */
export function failureText(failure: WatchFailure | ApiError, asked: ApiCall): string {
  const error = failure instanceof WatchFailure ? failure.cause : failure;
  // A failure from an error event of a watch has a status, but no `ApiError` as its cause.
  const status = failure.status;
  if (status !== undefined) return statusText(status, asked, error) ?? failure.message;
  if (!(error instanceof ApiError)) return failure.message;
  const code = error.what === undefined ? "" : ` (${error.what})`;
  const text = textOfCode(error);
  return text === undefined ? failure.message : `${text}${code}`;
}

function statusText(status: number, asked: ApiCall, error: unknown): string | undefined {
  switch (status) {
    case 401:
      return stranger;
    case 403:
      return error instanceof ApiError ? error.message : missingRight(accessTo(asked));
    case 404:
      return isOfDavit(asked)
        ? `The cluster does not know ${resourceOf(asked)} (404): install the CRDs, kubectl apply -f crds/`
        : `What answers does not know ${resourceOf(asked)} (404): is it a Kubernetes API server?`;
    case 429:
      return "The API server has no room for davit now (429)";
    default:
      return status >= 500 ? `The API server cannot answer now (${status})` : undefined;
  }
}

const stranger =
  "The API server does not know who davit is (401): its token or certificate is of another cluster, or ended";

function textOfCode({ failure, what = "" }: ApiError): string | undefined {
  switch (failure) {
    case "unreachable":
      return unreachableTexts.find(({ codes }) => codes.includes(what))?.text;
    case "untrusted":
      return untrustedTexts.find(({ codes }) => codes.includes(what))?.text ?? foreignAuthority;
    case "late":
      return "The API server takes a connection but does not answer in time";
    case "protocol":
      return "What answers is no Kubernetes API server, or something between changes its answers";
    default:
      return undefined;
  }
}

const unreachableTexts = [
  {
    codes: ["ECONNREFUSED"],
    text: "Nothing listens where the API server should be: is it running, and is the server of the kubeconfig right?",
  },
  {
    codes: ["ENOTFOUND", "EAI_AGAIN"],
    text: "The API server's name is not known: look at the server of the kubeconfig, and at DNS",
  },
  {
    codes: ["ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT", "EHOSTUNREACH", "ENETUNREACH"],
    text: "No answer from where the API server should be: look at routes and firewalls",
  },
];

const untrustedTexts = [
  { codes: ["CERT_HAS_EXPIRED"], text: "The API server's certificate has expired" },
  { codes: ["CERT_NOT_YET_VALID"], text: "The API server's certificate is not valid yet: look at the clocks" },
  {
    codes: ["ERR_TLS_CERT_ALTNAME_INVALID"],
    text: "The API server's certificate is for another name than the server of the kubeconfig",
  },
  { codes: ["ERR_SSL_WRONG_VERSION_NUMBER"], text: "What listens where the API server should be does not speak TLS" },
];

const foreignAuthority =
  "The API server's certificate is not signed by the authority in the kubeconfig: look at certificate-authority";

function accessTo({ verb, resource: { plural, apiVersion }, subresource, namespace, name }: ApiCall): NeededAccess {
  const apiGroup = apiVersion.includes("/") ? apiVersion.replace(/\/.*/, "") : "";
  return { verb, apiGroup, resource: subresource === undefined ? plural : `${plural}/${subresource}`, namespace, name };
}

/** Returns a resource's name as `kubectl` or a Role writes it: `groups.davit.dev`, `groups/status`. */
function resourceOf({ resource: { plural, apiVersion }, subresource }: ApiCall): string {
  if (subresource !== undefined) return `${plural}/${subresource}`;
  const [group, version] = apiVersion.split("/");
  return version === undefined ? plural : `${plural}.${group}`;
}

function isOfDavit({ resource: { apiVersion } }: ApiCall): boolean {
  return apiVersion.includes("/");
}
