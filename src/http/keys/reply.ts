/** Answers of the key API: which headers they carry, and how a watch is answered. */

import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import { tokenChallenge } from "../bearer-tokens.ts";
import { type KeyAnswer, refusalAnswer } from "./answers.ts";

/** On every answer of the listener, so that web pages of other origins can read it. */
export const corsHeaders = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "POST, GET, OPTIONS, PUT, DELETE",
  "access-control-allow-headers": "accept, content-type, authorization",
};

/** The same as they go out: name, value, name, value. */
export const corsWireHeaders: readonly string[] = [
  ...["Access-Control-Allow-Origin", corsHeaders["access-control-allow-origin"]],
  ...["Access-Control-Allow-Methods", corsHeaders["access-control-allow-methods"]],
  ...["Access-Control-Allow-Headers", corsHeaders["access-control-allow-headers"]],
];

/** Answers with a JSON body. It sends a buffer, since Fastify would add a charset to the type of a string. */
export function sendJson(reply: FastifyReply, status: number, body: string): FastifyReply {
  return reply.code(status).header("content-type", "application/json").send(Buffer.from(body));
}

/** Sends the answer that both ways to a key share. */
export function sendAnswer(reply: FastifyReply, { status, headers, body }: KeyAnswer): FastifyReply {
  return withHeaders(reply, headers).code(status).send(Buffer.from(body));
}

/** Answers with a success that is already written. @param headers as in `KeyAnswer`. */
export function sendSuccess(reply: FastifyReply, headers: readonly string[], body: Buffer): FastifyReply {
  return withHeaders(reply, headers).code(200).send(body);
}

/** Begins an answer that the caller continues. @param headers as in `KeyAnswer`. */
export function beginSuccess(reply: FastifyReply, headers: readonly string[]): ServerResponse {
  withHeaders(reply, headers).hijack();
  return reply.raw.writeHead(200, Object.entries(reply.getHeaders()).flat().map(String));
}

function withHeaders(reply: FastifyReply, headers: readonly string[]): FastifyReply {
  for (let at = 0; at + 1 < headers.length; at += 2) reply.header(headers[at] ?? "", headers[at + 1]);
  return reply;
}

export function sendRefusal(reply: FastifyReply, store: Store, error: StoreError): FastifyReply {
  return sendAnswer(reply, refusalAnswer(store, error));
}

/** Refuses a client without valid credentials; with a challenge if a token would be accepted. */
export function sendUnauthorized(reply: FastifyReply, store: Store, error: StoreError): FastifyReply {
  const challenge = error.refusal === "unauthorized" ? { "www-authenticate": tokenChallenge } : {};
  return sendRefusal(reply.headers({ ...corsHeaders, ...challenge }), store, error);
}

/** Answers outside the API, as Go's net/http does. */
export function sendPlain(reply: FastifyReply, status: number, text: string): FastifyReply {
  reply.header("x-content-type-options", "nosniff");
  return reply.code(status).type("text/plain; charset=utf-8").send(text);
}

/** Answers an unknown path; an OPTIONS succeeds anywhere. */
export function sendOutside(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (request.method === "OPTIONS") return reply.code(200).send();
  return sendPlain(reply, 404, "404 page not found\n");
}

/** @param allowed the methods that the path knows, in the reference's order; undefined leaves out the header. */
export function sendNotAllowed(reply: FastifyReply, allowed: readonly string[] | undefined): FastifyReply {
  if (allowed !== undefined) reply.header("allow", allowed.join(","));
  return sendPlain(reply, 405, "Method Not Allowed\n");
}

/** On answers without an index. */
export function clusterHeaders(store: Store): Record<string, string> {
  const { clusterId } = store.identity;
  return { "x-store-cluster-id": clusterId, "x-etcd-cluster-id": clusterId };
}
