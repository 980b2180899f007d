/** What is asked of the fake API server. */

import type { IncomingMessage } from "node:http";
import { type JsonObject, parseJsonObject } from "../../../src/model/json.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: JsonObject | undefined;
  /** What it asks for: see `kindOf`. */
  readonly kind: "list" | "look" | "watch" | "get" | "patch" | "post";
}

export async function readRequest(incoming: IncomingMessage): Promise<SeenRequest> {
  const { method = "GET", url = "/", headers } = incoming;
  const { pathname: path, searchParams: query } = new URL(url, "http://fake");
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(Buffer.from(chunk));
  const body = parseJsonObject(Buffer.concat(chunks).toString("utf8"));
  return { method, path, query, headers, body, kind: kindOf(method, path, query) };
}

function kindOf(method: string, path: string, query: URLSearchParams): SeenRequest["kind"] {
  if (method === "PATCH") return "patch";
  if (method === "POST") return "post";
  if (query.get("watch") !== null) return "watch";
  if (placeOf(path).name !== undefined) return "get";
  // One object, to see which version the list has.
  return query.get("limit") === "1" ? "look" : "list";
}

/** What a path names. */
export function placeOf(path: string) {
  const matched = /^\/apis?(?:\/[\w.]+)?\/v\w+(?:\/namespaces\/([^/]+))?\/(\w+)(?:\/([^/]+))?/.exec(path) ?? [];
  const [, namespace, plural, name] = matched;
  return { namespace, plural, name };
}
