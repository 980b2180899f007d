/** Clients that are slow on purpose, and requests that most clients cannot send. Limits are shortened; no time is asserted. */

import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { answerError } from "../../src/http/errors.ts";
import type { Exchange } from "../../src/http/exchange.ts";
import { createServer, type HttpServer, type ServerLimits } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { ask, headerOf, parseAnswer, readToEnd, sendRaw, statusOf } from "./wire.ts";

const log = createLog({ level: "silent", format: "json" });
const hasty: Partial<ServerLimits> = { headersTimeoutMs: 100, requestTimeoutMs: 200, connectionCheckMs: 20 };
const running: HttpServer[] = [];
const dribbles: NodeJS.Timeout[] = [];

afterEach(async () => {
  for (const timer of dribbles.splice(0)) clearInterval(timer);
  await Promise.all(running.splice(0).map((server) => server.close()));
});

/** Answers at any path, once the whole body has come, what `more` leaves: the path. */
async function start(limits: Partial<ServerLimits>, more: (exchange: Exchange) => boolean = () => false) {
  const handle = async (exchange: Exchange) => {
    if (more(exchange)) return undefined;
    await buffer(exchange.request);
    return { status: 200, headers: ["Content-Type", "text/plain"], body: exchange.path };
  };
  const server = createServer({
    log,
    clock: systemClock,
    answerError,
    limits,
    handler: { begin: () => undefined, handle },
  });
  running.push(server);
  return (await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" })).port;
}

/** Writes a letter every 10 ms for as long as the other side takes them. */
function dribble(socket: Socket, letter: string): void {
  dribbles.push(setInterval(() => socket.writable && socket.write(letter), 10));
}

describe("a client that is slow on purpose", () => {
  it.each([
    ["dribbles the request line", "GET /", "x"],
    ["dribbles a header", "GET /hello HTTP/1.1\r\nHost: davit\r\nX-Slow: ", "x"],
    ["dribbles short headers", "GET /hello HTTP/1.1\r\nHost: davit\r\n", "X: 1\r\n"],
  ])("is answered 408 and cut when it %s, and others are answered meanwhile", async (_name, head, letter) => {
    const port = await start(hasty);
    const slow = connect(port, "127.0.0.1");
    const whole = readToEnd(slow);
    slow.write(head);
    dribble(slow, letter);
    expect(statusOf(await ask(port, "/hello"))).toBe(200);
    const answer = parseAnswer(await whole);
    expect(answer.statusLine).toBe("HTTP/1.1 408 Request Timeout");
    expect(answer.headerLines).toEqual([
      "Content-Type: text/plain; charset=utf-8",
      "Content-Length: 20",
      "Connection: close",
    ]);
    expect(answer.body.toString()).toBe("408 request timeout\n");
  });

  it("is cut when it says nothing at all", async () => {
    const silent = connect(await start(hasty), "127.0.0.1");
    expect(statusOf(parseAnswer(await readToEnd(silent)))).toBe(408);
  });

  it("is answered 408 and cut when it dribbles a body", async () => {
    const slow = connect(await start(hasty), "127.0.0.1");
    const whole = readToEnd(slow);
    slow.write("POST /hello HTTP/1.1\r\nHost: davit\r\nContent-Type: text/plain\r\nContent-Length: 9999\r\n\r\n");
    dribble(slow, "x");
    expect(statusOf(parseAnswer(await whole))).toBe(408);
  });

  it("is cut when it does not read its answer", async () => {
    const closed = Promise.withResolvers<void>();
    const port = await start({ stallTimeoutMs: 100 }, ({ response }) => {
      Readable.from(endless()).pipe(response.once("close", closed.resolve));
      return true;
    });
    const deaf = connect(port, "127.0.0.1").pause();
    deaf.write("GET /endless HTTP/1.1\r\nHost: davit\r\n\r\n");
    await expect(closed.promise).resolves.toBeUndefined();
    deaf.destroy();
  });
});

async function* endless(): AsyncGenerator<Buffer> {
  for (;;) yield Buffer.alloc(65_536);
}

describe("a target", () => {
  it("in the form that clients of proxies send is read as its path", async () => {
    const answer = await ask(await start({}), "http://davit.test:8080/hello?x=http://other/");
    expect([statusOf(answer), answer.body.toString()]).toEqual([200, "/hello"]);
    expect((await ask(await start({}), "http://davit.test:8080?x=1")).body.toString()).toBe("/");
  });

  it.each(["davit.test:80", "/hello"])("of CONNECT, %s, is 404 with a length", async (target) => {
    const answer = parseAnswer(await sendRaw(await start({}), `CONNECT ${target} HTTP/1.1\r\nHost: davit\r\n\r\n`));
    expect(statusOf(answer)).toBe(404);
    expect(headerOf(answer, "Content-Length")).toBe(String(answer.body.length));
  });
});
