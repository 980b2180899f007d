/** HTTP by raw socket: what every client library hides (spelling and order of headers, chunks, pipelining). */

import { connect, type Socket } from "node:net";

export interface WireAnswer {
  readonly statusLine: string;
  /** Lines as sent, without the empty one. */
  readonly headerLines: readonly string[];
  readonly body: Buffer;
}

/** Sends these bytes on a connection of its own and reads until the server ends it. */
export async function sendRaw(port: number, request: string): Promise<Buffer> {
  const socket = connect(port, "127.0.0.1");
  socket.write(request, "latin1");
  return await readToEnd(socket);
}

/** Sends one request, without keep-alive, and reads its answer. */
export async function ask(port: number, target: string, options: AskOptions = {}): Promise<WireAnswer> {
  const { method = "GET", headers = [] } = options;
  const lines = [`${method} ${target} HTTP/1.1`, "Host: davit", "Connection: close", ...headers, "", ""];
  return parseAnswer(await sendRaw(port, lines.join("\r\n")));
}

interface AskOptions {
  readonly method?: string;
  /** Lines such as `Range: bytes=0-1`. */
  readonly headers?: readonly string[];
}

/** Splits one answer into its parts; whatever follows the head is body. */
export function parseAnswer(bytes: Buffer): WireAnswer {
  const end = bytes.indexOf("\r\n\r\n");
  const [statusLine = "", ...headerLines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  return { statusLine, headerLines, body: bytes.subarray(end + 4) };
}

/** The status code of an answer. */
export function statusOf({ statusLine }: WireAnswer): number {
  return Number(statusLine.split(" ")[1]);
}

/** A header's value as sent, found by its exact spelling; undefined when no line has it. */
export function headerOf({ headerLines }: WireAnswer, name: string): string | undefined {
  return headerLines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
}

/** Reads until the other side ends or cuts the connection. */
export function readToEnd(socket: Socket): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    // A cut connection ends what can be read, as a plain end does; the bytes tell whether that was right.
    socket.on("error", () => undefined);
    socket.once("close", () => resolve(Buffer.concat(chunks)));
  });
}
