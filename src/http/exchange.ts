/** A request and its answer, as every listener hands them to its handler. */

import type { IncomingMessage } from "node:http";
import type { Soon } from "../lib/soon.ts";
import type { WireResponse } from "./response-headers.ts";
import { pathEnd } from "./target.ts";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: WireResponse;
  /** As sent, without the query, and without the `http://host` that proxies' clients put first. */
  readonly path: string;
  /** The target after the first `?`, exactly as sent: ASCII, since Node refuses anything else. */
  readonly rawQuery: string;
}

export interface Answer {
  readonly status: number;
  /** Name, value, name, value, as they go out: Content-Type first, and no Content-Length. */
  readonly headers: readonly string[];
  /** Undefined for an answer that has none, and no length, such as a 304. */
  readonly body?: string | Buffer | undefined;
  /** Of the body as UTF-8, if known. */
  readonly byteLength?: number | undefined;
}

/** Undefined from a handler that sends its answer itself: a long poll, a file. */
export type Handled = Soon<Answer | undefined>;

export function exchangeOf(request: IncomingMessage, response: WireResponse): Exchange {
  const { url = "" } = request;
  const end = pathEnd(url);
  const target = url.slice(0, end);
  const path = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/]*/i, "") || "/";
  return { request, response, path, rawQuery: url.slice(end + 1) };
}

/** Sends a whole answer. For HEAD Node leaves out the body. */
export function send(response: WireResponse, { status, headers, body, byteLength }: Answer): void {
  if (body === undefined) {
    response.writeHead(status, [...headers]).end();
    return;
  }
  const bytes = byteLength ?? Buffer.byteLength(body);
  response.writeOrdered(status, [...headers, "Content-Length", String(bytes)]);
  // Byte count equals letter count, so the text is ASCII. Node copies that faster if it is declared.
  if (typeof body === "string" && bytes === body.length) response.end(body, "latin1");
  else response.end(body);
}

/** Begins an answer that its handler continues. */
export function begin(response: WireResponse, status: number, headers: readonly string[]): WireResponse {
  response.writeHead(status, [...headers]);
  return response;
}
