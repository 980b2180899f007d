/**
 * Clients of large files. They read a MiB at a time into memory that all of them share, since a client that reads in
 * small pieces takes more processor time than the servers that are measured. Slow ones read the head of their answer,
 * and no more.
 */

import { connect, type Socket } from "node:net";
import { answerQuestions } from "./child.ts";

const readBytes = 1024 * 1024;
const shared = Buffer.allocUnsafeSlow(readBytes);
const slowBatch = 2_000;
const slowSockets: Socket[] = [];

answerQuestions(async ({ kind, port, target, connections, durationMs }) => {
  const request = `GET ${target} HTTP/1.1\r\nHost: davit\r\nConnection: keep-alive\r\n\r\n`;
  const at: Place = { port: Number(port), request };
  if (kind === "slow") return await openSlow(at, Number(connections));
  if (kind === "close") return closeSlow();
  const startedAtMs = performance.now();
  const endsAtMs = startedAtMs + Number(durationMs);
  const counts = await Promise.all(Array.from({ length: Number(connections) }, () => download(at, endsAtMs)));
  return {
    bytes: counts.reduce((sum, count) => sum + count, 0),
    seconds: (performance.now() - startedAtMs) / 1_000,
  };
});

interface Place {
  readonly port: number;
  readonly request: string;
}

/** Asks again whenever an answer is whole. @returns how many bytes came in time; anything but a 200 is an error. */
function download({ port, request }: Place, endsAtMs: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let received = 0;
    let left = 0;
    const read = (count: number): boolean => {
      if (performance.now() >= endsAtMs) {
        socket.destroy();
        return false;
      }
      received += count;
      if (left === 0) left = wholeLength(shared.toString("latin1", 0, Math.min(count, 4096)));
      left -= count;
      if (left === 0) socket.write(request);
      return true;
    };
    const socket: Socket = connect({ port, host: "127.0.0.1", onread: { buffer: shared, callback: read } });
    socket.once("connect", () => socket.write(request));
    socket.once("error", reject);
    socket.once("close", () => resolve(received));
  });
}

/** Length of an answer, its head included. */
function wholeLength(text: string): number {
  const end = text.indexOf("\r\n\r\n");
  const [, length] = /^Content-Length: (\d+)\r$/im.exec(text.slice(0, end + 2)) ?? [];
  if (!text.startsWith("HTTP/1.1 200 ") || length === undefined)
    throw new Error(`unexpected answer: ${text.slice(0, 40)}`);
  return end + 4 + Number(length);
}

/** Many at a time, because each waits 20 s for a place. @returns how many answers have which status. */
async function openSlow(at: Place, count: number): Promise<object> {
  const statuses: string[] = [];
  while (statuses.length < count) {
    const batch = Math.min(slowBatch, count - statuses.length);
    statuses.push(...(await Promise.all(Array.from({ length: batch }, () => openOne(at)))));
  }
  const of = (status: string) => statuses.filter((each) => each === status).length;
  return { accepted: of("200"), refused: of("503"), failed: count - of("200") - of("503") };
}

function openOne({ port, request }: Place): Promise<string> {
  return new Promise((resolve) => {
    const buffer = Buffer.alloc(512);
    const read = (count: number) => {
      resolve(buffer.toString("latin1", "HTTP/1.1 ".length, Math.min(count, "HTTP/1.1 200".length)));
      return false;
    };
    const socket = connect({ port, host: "127.0.0.1", onread: { buffer, callback: read } });
    slowSockets.push(socket);
    socket.once("connect", () => socket.write(request));
    socket.once("error", () => resolve("error"));
  });
}

function closeSlow(): object {
  for (const socket of slowSockets.splice(0)) socket.destroy();
  return {};
}
