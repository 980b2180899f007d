/** Makes the answers of the store's listener that are not about a key, each with its headers. */

import type { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import type { Answer } from "../exchange.ts";
import { tokenChallenge } from "../guard/tokens.ts";
import { corsHeaders, jsonHead, refusalAnswer } from "./answers.ts";

const plainText = ["Content-Type", "text/plain; charset=utf-8"];
const nosniff = ["X-Content-Type-Options", "nosniff"];

export function jsonAnswer(status: number, body: string, headers: readonly string[] = []): Answer {
  return { status, headers: [...jsonHead, ...headers], body };
}

/** Refuses a client without valid credentials. If a token would be accepted, the answer has a challenge. */
export function unauthorizedAnswer(store: Store, error: StoreError): Answer {
  return refusalAnswer(store, error, error.refusal === "unauthorized" ? ["Www-Authenticate", tokenChallenge] : []);
}

/** Makes an error in plain text, as Go's net/http does. */
export function plainAnswer(status: number, text: string, headers: readonly string[] = corsHeaders): Answer {
  return { status, headers: [...plainText, ...headers, ...nosniff], body: text };
}

/** As `plainAnswer`, but without the header that Go adds only to errors. */
export function textAnswer(status: number, text: string): Answer {
  return { status, headers: [...plainText, ...corsHeaders], body: text };
}

/** Answers an unknown path with 404. OPTIONS succeeds on every path. */
export function outsideAnswer(method: string | undefined): Answer {
  if (method === "OPTIONS") return { status: 200, headers: corsHeaders, body: "" };
  return plainAnswer(404, "404 page not found\n");
}

/** @param allowed the methods of the path, in etcd's order; undefined leaves out the header. */
export function notAllowedAnswer(allowed: readonly string[] | undefined, headers: readonly string[] = []): Answer {
  const allow = allowed === undefined ? [] : ["Allow", allowed.join(",")];
  return plainAnswer(405, "Method Not Allowed\n", [...corsHeaders, ...headers, ...allow]);
}

/** Headers of the answers that have no index. */
export function clusterHeaders(store: Store): readonly string[] {
  const { clusterId } = store.identity;
  return ["X-Store-Cluster-Id", clusterId, "X-Etcd-Cluster-Id", clusterId];
}
