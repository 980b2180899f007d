/**
 * Answers errors that no route of the store's listener has answered. Clients of the listener read v2 error bodies, so
 * nearly all errors have one. Malformed requests are answered in plain text, as Go's net/http does.
 */

import { refusals, StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import { type AnswerError, type ErrorAnswer, RequestError, type RequestRefusal, requestRefusals } from "../errors.ts";
import { corsHeaders, refusalAnswer } from "./answers.ts";

/** Refusals that etcd words differently. */
const causes: Partial<Record<RequestRefusal, string>> = {
  bodyCut: "unexpected EOF",
  badBody: "invalid byte in chunk length",
};

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
