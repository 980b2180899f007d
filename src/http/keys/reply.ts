/** Makes the answers of the store's listener that are not about a key, each with its headers. */

import { refusals, StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import { type AnswerError, type ErrorAnswer, RequestError, type RequestRefusal, requestRefusals } from "../errors.ts";
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

/** Refusals that etcd words differently. */
const causes: Partial<Record<RequestRefusal, string>> = {
  bodyCut: "unexpected EOF",
  badBody: "invalid byte in chunk length",
};

/**
 * Answers errors that no route of the store's listener has answered. Clients of the listener read v2 error bodies, so
 * nearly all errors have one. Malformed requests are answered in plain text, as Go's net/http does.
 */
export function keysErrors(store: Store): AnswerError {
  return (thrown) => {
    if (!(thrown instanceof RequestError)) {
      // A bug's message may quote a value, so only the log gets it.
      const answer = errorAnswer(store, 500, new StoreError("logFailed", "internal error", 0));
      return { ...answer, report: { err: thrown } };
    }
    if (thrown.reason === "badRequest") return { status: 400, headers: plainHeaders, body: "400 Bad Request" };
    const { status, text } = requestRefusals[thrown.reason];
    const refusal = status === refusals.crowded.status ? "crowded" : "invalidForm";
    const answer = errorAnswer(store, status, new StoreError(refusal, causes[thrown.reason] ?? text, 0));
    return { ...answer, headers: { ...answer.headers, ...thrown.headers } };
  };
}

const plainHeaders = recordOf([...corsHeaders, "Content-Type", "text/plain; charset=utf-8"]);

function errorAnswer(store: Store, status: number, error: StoreError): ErrorAnswer {
  const { headers, body } = refusalAnswer(store, error);
  return { status, headers: recordOf(headers), body };
}

function recordOf(headers: readonly string[]): Readonly<Record<string, string>> {
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), headers[at + 1] ?? ""]] : []));
  return Object.fromEntries(pairs);
}
