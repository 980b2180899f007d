import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inOrder } from "../../src/http/request-order.ts";
import { WireClient } from "../helpers/wire-client.ts";

let server: Server;
let client: WireClient;
/** The server's end of the connection. */
let socket: Socket;
let handled: string[];
let release: () => void;

beforeEach(async () => {
  handled = [];
  const released = Promise.withResolvers<void>();
  release = released.resolve;
  server = createServer(
    inOrder((request, response) => {
      handled.push(request.url ?? "");
      // Told by the target: an answer that comes later, one that has only begun, and others.
      if (request.url === "/late") void released.promise.then(() => response.end("late"));
      else if (request.url === "/open") response.writeHead(200).flushHeaders();
      else response.end(request.url);
    }),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const connected = once(server, "connection");
  client = new WireClient(typeof address === "object" ? (address?.port ?? 0) : 0);
  [socket] = await connected;
});
afterEach(async () => {
  client.destroy();
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

const get = (target: string) => `GET ${target} HTTP/1.1\r\nHost: davit\r\n\r\n`;
const many = (count: number) => Array.from({ length: count }, (_, number) => `/${number}`);

describe("requests that are sent at once", () => {
  it("are handled when the ones before them are answered, in order", async () => {
    client.send(["/late", ...many(50)].map(get).join(""));
    await expect.poll(() => handled).toEqual(["/late"]);
    release();
    const answers = await client.answers(51);
    expect(answers.map(({ body }) => body)).toEqual(["late", ...many(50)]);
    expect(handled).toEqual(["/late", ...many(50)]);
  });

  it("are read no further while more than 100 wait, and are all answered in the end", async () => {
    const targets = ["/late", ...many(20_000)];
    client.send(targets.map(get).join(""));
    await expect.poll(() => socket.isPaused()).toBe(true);
    expect(socket.bytesRead).toBeLessThan(200_000);
    expect(handled).toEqual(["/late"]);
    release();
    await client.answers(targets.length);
    expect(handled).toEqual(targets);
  });

  it("are cut when more than 100 wait behind an answer that has only begun", async () => {
    client.send(["/0", "/open", ...many(101)].map(get).join(""));
    await client.closed();
    expect(handled).toEqual(["/0", "/open"]);
  });
});
