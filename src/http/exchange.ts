/**
 * A request and its response, which every listener passes to its handler: what handlers read of the request, and how
 * they send an answer.
 */

import type { IncomingMessage } from "node:http";
import type { Soon } from "../lib/soon.ts";
import { RequestError } from "./errors.ts";
import type { WireResponse } from "./response-headers.ts";

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

/**
 * Returns the index at which a target's path ends: its first `?`, or its end. An object for each request would cost
 * more.
 */
export function pathEnd(target: string): number {
  const mark = target.indexOf("?");
  return mark < 0 ? target.length : mark;
}

/** This many answers are sent at once, so that with many requests in a turn none waits for all the others. */
const maxWaiting = 32;

interface Waiting {
  readonly response: WireResponse;
  readonly answer: Answer;
  readonly fail: (error: unknown) => void;
}

/**
 * Sends the answers that become ready in one turn of the event loop together, at its end.
 *
 * A write to a client that waits on the same computer, such as a proxy, wakes it. To wake a process takes longer than
 * the write. Between single answers, such a client falls asleep again. If several answers are sent together, only the
 * first one wakes it.
 */
export class TurnAnswers {
  readonly #waiting: Waiting[] = [];

  /** Sends an answer at the end of this turn, or earlier. @param fail gets what `send` throws. */
  add(response: WireResponse, answer: Answer, fail: (error: unknown) => void): void {
    const count = this.#waiting.push({ response, answer, fail });
    if (count === 1) setImmediate(() => this.#sendAll());
    else if (count === maxWaiting) this.#sendAll();
  }

  #sendAll(): void {
    for (const { response, answer, fail } of this.#waiting.splice(0)) {
      try {
        send(response, answer);
      } catch (error) {
        fail(error);
      }
    }
  }
}

/**
 * Reads a body as UTF-8. The promise never settles if the connection ends first, because then no answer can be sent.
 * @throws {RequestError} bodyTooLarge. Then the rest of the body is read and dropped first, because a client that still
 * sends may never read the answer.
 */
export function readSmallBody(request: IncomingMessage, maxBytes: number): Promise<string> {
  // A client that announces too much need not send it: it gets the answer now, and its connection ends.
  if (Number(request.headers["content-length"] ?? 0) > maxBytes)
    return Promise.reject(new RequestError("bodyTooLarge", { connection: "close" }));
  const chunks: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else chunks.length = 0;
    });
    request.on("end", () => {
      if (bytes > maxBytes) reject(new RequestError("bodyTooLarge"));
      else resolve(Buffer.concat(chunks).toString());
    });
  });
}

/**
 * Returns what a log, a metric or the history may have of a path. A machine's report token is in its path, and is a
 * secret. It is left out in any spelling of it: also one that no route answers, because a token in the log of a wrong
 * URL is as good as one of the right URL.
 */
export function withoutToken(path: string): string {
  const plain = unescapedWhole(path);
  // Most paths have neither.
  if (!/report/i.test(plain) && !longName.test(plain)) return path;
  if (/(?:^|[^a-z\d])report(?:[^a-z\d.]|\.\w+[/\\]|$)/i.test(plain)) return "/report";
  // Names of assets can be as long as a token.
  const isLong = plain.split(/[^\w-]/).some((name) => longName.test(name) && !/^[\da-f-]+$/i.test(name));
  return isLong && !plain.startsWith("/assets/") ? "/[hidden]" : path;
}

/** Tokens have 32 letters. */
const longName = /[\w-]{32}/;

/** Removes all escapes, also those of escapes. Each round shortens the path. */
function unescapedWhole(path: string): string {
  const plain = path.replaceAll(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)));
  return plain === path ? path : unescapedWhole(plain);
}
