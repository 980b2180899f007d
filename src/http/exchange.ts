/** A request and its response, which every listener passes to its handler. */

import type { IncomingMessage } from "node:http";
import type { Soon } from "../lib/soon.ts";
import type { WireResponse } from "./response-headers.ts";
import { pathEnd } from "./target.ts";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: WireResponse;
  /** The path as sent, without the query, and without the `http://host` that a client of a proxy sends before it. */
  readonly path: string;
  /** The target after the first `?`, exactly as sent. It is ASCII, because Node refuses other bytes. */
  readonly rawQuery: string;
}

export interface Answer {
  readonly status: number;
  /**
   * Names and values in turn, in the order in which they are sent. Content-Type is first; `send` adds Content-Length.
   */
  readonly headers: readonly string[];
  /** Undefined for an answer that has neither a body nor a Content-Length, such as a 304. */
  readonly body?: string | Buffer | undefined;
  /** The length of the body in UTF-8, if known. */
  readonly byteLength?: number | undefined;
}

/** The answer to send. Undefined if the handler sends its answer itself, such as a long poll or a file. */
export type Handled = Soon<Answer | undefined>;

export function exchangeOf(request: IncomingMessage, response: WireResponse): Exchange {
  const { url = "" } = request;
  const end = pathEnd(url);
  const target = url.slice(0, end);
  const path = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/]*/i, "") || "/";
  return { request, response, path, rawQuery: url.slice(end + 1) };
}

/** Sends a whole answer. For HEAD, Node leaves out the body. */
export function send(response: WireResponse, { status, headers, body, byteLength }: Answer): void {
  if (body === undefined) {
    response.writeHead(status, [...headers]).end();
    return;
  }
  const bytes = byteLength ?? Buffer.byteLength(body);
  response.writeOrdered(status, [...headers, "Content-Length", String(bytes)]);
  // There are as many bytes as characters, so the text is ASCII. Node copies it faster if it is declared as latin1.
  if (typeof body === "string" && bytes === body.length) response.end(body, "latin1");
  else response.end(body);
}

/** Writes the head of an answer. The handler sends the body later. */
export function begin(response: WireResponse, status: number, headers: readonly string[]): WireResponse {
  response.writeHead(status, [...headers]);
  return response;
}
