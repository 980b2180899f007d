/** A server of one file that does what a test asks of it. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export interface FileServer {
  readonly url: string;
  /** Heads of the requests so far: the range that was asked for, or `whole`. */
  readonly ranges: readonly string[];
  close(): void;
}

/**
 * Answers the first request by the first answer and so on, and all that come later by the last one.
 * @param tls makes it an HTTPS server.
 */
export async function startFileServer(
  answers: readonly Answer[],
  tls?: { readonly cert: string; readonly key: string },
): Promise<FileServer> {
  const ranges: string[] = [];
  const next: Answer = (request, response) => {
    const answer = answers[Math.min(ranges.length, answers.length - 1)];
    ranges.push(request.headers.range ?? "whole");
    answer?.(request, response);
  };
  const server = tls === undefined ? createServer(next) : createTlsServer(tls, next);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The server has no port");
  const { port } = address;
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    ranges,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The whole file, or the part that is asked for if its version is still the same. */
export const file =
  (content: Buffer, etag = '"1"'): Answer =>
  (request, response) => {
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const isPart = start > 0 && request.headers["if-range"] === etag;
    const bytes = isPart ? content.subarray(start) : content;
    const range = isPart ? { "content-range": `bytes ${start}-${content.length - 1}/${content.length}` } : {};
    response.writeHead(isPart ? 206 : 200, { "content-length": bytes.length, etag, ...range }).end(bytes);
  };

/** Says that it has all, gives so many bytes, and breaks the connection once they have arrived. */
export const broken =
  (
    content: Buffer,
    bytes: number,
    { etag = '"1"', arrived }: { readonly etag?: string; readonly arrived: Promise<void> },
  ): Answer =>
  (_request, response) => {
    response.writeHead(200, { "content-length": content.length, etag }).write(content.subarray(0, bytes));
    void arrived.then(() => response.destroy());
  };

export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_request, response) => {
    response.writeHead(code, headers).end("no\n");
  };
