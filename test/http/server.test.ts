import { once } from "node:events";
import { connect } from "node:net";
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { afterEach, describe, expect, it } from "vitest";
import type { BootRoute, BootVisit } from "../../src/http/boot/routes.ts";
import { answerError, RequestError } from "../../src/http/errors.ts";
import { createOpsServer } from "../../src/http/ops/server.ts";
import { createServer, type HttpServer, type ServerOptions } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { StartError } from "../../src/lib/start-error.ts";
import { handlerOf } from "./handler-of.ts";
import { ask, headerOf, parseAnswer, readToEnd, sendRaw, statusOf } from "./wire.ts";

const silent = createLog({ level: "silent", format: "json" });
const running: HttpServer[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

const hello: BootRoute = {
  url: "/hello",
  answer: () => ({ status: 200, headers: ["Content-Type", "text/plain", "X-Any-Name", "1"], body: "hello\n" }),
};

/** Its routes are those of machines and a test's own. */
async function start(routes = [hello], options: Partial<ServerOptions<BootVisit>> = {}): Promise<number> {
  const server = createServer({ log: silent, clock: systemClock, answerError, handler: handlerOf(routes), ...options });
  running.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return port;
}

/** The same routes behind Fastify, as operators have them. */
async function startOps(_routes = [hello], options: Partial<ServerOptions<undefined>> = {}): Promise<number> {
  const server = createOpsServer({ log: silent, clock: systemClock, answerError, ...options });
  running.push(server);
  const headers = { "x-any-name": "1", "content-type": "text/plain" };
  const handler = (_request: FastifyRequest, reply: FastifyReply) => reply.headers(headers).send("hello\n");
  server.app.route({ method: ["GET", "HEAD"], url: "/hello", handler });
  server.app.get("/fail", fail);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--ops-address" });
  return port;
}

const fail = () => {
  throw new Error("the inside");
};

/** An answer whose handler sends it piece by piece. */
function streamRoute(url: string, headers: Readonly<Record<string, string>>, chunks: AsyncIterable<Buffer>): BootRoute {
  return {
    url,
    answer: ({ response }) => {
      response.writeHead(200, headers);
      Readable.from(chunks).pipe(response);
      return undefined;
    },
  };
}

describe.each([
  { listener: "the boot listener", begin: start },
  { listener: "the operations listener", begin: startOps },
])("every answer of $listener", ({ begin }) => {
  it("spells headers in Title-Case, Content-Type first, Content-Length after all others of ours", async () => {
    const answer = await ask(await begin(), "/hello");
    expect(answer.statusLine).toBe("HTTP/1.1 200 OK");
    expect(answer.headerLines.map((line) => line.split(":")[0])).toEqual([
      "Content-Type",
      "X-Any-Name",
      "Content-Length",
      "Date",
      "Connection",
    ]);
    expect(answer.body.toString()).toBe("hello\n");
  });

  it("has the same spelling and order when it is streamed", async () => {
    const headers = { "content-length": "3", "x-b": "1", "content-type": "text/plain" };
    const port = await start([streamRoute("/stream", headers, Readable.from([Buffer.from("abc")]))]);
    const answer = await ask(port, "/stream");
    expect(answer.headerLines.slice(0, 3)).toEqual(["Content-Type: text/plain", "X-B: 1", "Content-Length: 3"]);
    expect(answer.body.toString()).toBe("abc");
  });

  it("has the head of GET and no body for HEAD", async () => {
    const port = await begin();
    const [get, head] = [await ask(port, "/hello"), await ask(port, "/hello", { method: "HEAD" })];
    const undated = (lines: readonly string[]) => lines.filter((line) => !line.startsWith("Date"));
    expect(undated(head.headerLines)).toEqual(undated(get.headerLines));
    expect(headerOf(head, "Content-Length")).toBe("6");
    expect(head.body.length).toBe(0);
  });

  it("is HTTP/1.1 with a length for a client of HTTP/1.0, which needs no Host", async () => {
    const answer = parseAnswer(await sendRaw(await begin(), "GET /hello HTTP/1.0\r\n\r\n"));
    expect(answer.statusLine).toBe("HTTP/1.1 200 OK");
    expect(headerOf(answer, "Content-Length")).toBe("6");
  });

  it("keeps the connection, so that requests can follow each other or come together", async () => {
    const port = await begin();
    const get = "GET /hello HTTP/1.1\r\nHost: davit\r\n";
    const bytes = await sendRaw(port, `${get}\r\n${get}\r\n${get}Connection: close\r\n\r\n`);
    expect(bytes.toString().match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3);
  });

  it("ignores an expectation that it does not know", async () => {
    expect(statusOf(await ask(await begin(), "/hello", { headers: ["Expect: coffee"] }))).toBe(200);
  });
});

describe.each([
  { listener: "the boot listener", begin: start },
  { listener: "the operations listener", begin: startOps },
])("an error answer of $listener", ({ begin }) => {
  it.each<[name: string, method: string, target: string, status: number]>([
    ["an unknown path", "GET", "/nothing", 404],
    ["another letter case", "GET", "/Hello", 404],
    ["a trailing slash", "GET", "/hello/", 404],
    ["a path below a route", "GET", "/hello/x", 404],
    ["two slashes in front", "GET", "//hello", 404],
    ["a dot segment", "GET", "/./hello", 404],
    ["a bad escape in the path", "GET", "/%zz", 400],
    ["bytes that are not UTF-8 in the path", "GET", "/%ff", 400],
    ["a target of more than 8 KiB", "GET", `/hello?${"x".repeat(8192)}`, 414],
    ["a head of more than 16 KiB", "GET", `/hello?${"x".repeat(20_000)}`, 431],
    ["a raw space in the target", "GET", "/hello? x", 400],
    ["a raw byte beyond ASCII in the target", "GET", "/hello?\xe9", 400],
    ["a raw tab in the target", "GET", "/hello?\t", 400],
    ["a raw DEL in the target", "GET", "/hello?\x7f", 400],
    ["a raw NUL in the target", "GET", "/hello?\0", 400],
    ["another method on a known path", "POST", "/hello", 405],
    ["another method on an unknown path", "DELETE", "/nothing", 404],
    ["an unknown method", "BREW", "/hello", 400],
  ])("to %s is short plain text with a length", async (_name, method, target, status) => {
    const answer = await ask(await begin(), target, { method });
    expect(statusOf(answer)).toBe(status);
    expect(answer.headerLines[0]).toBe("Content-Type: text/plain; charset=utf-8");
    expect(headerOf(answer, "Content-Length")).toBe(String(answer.body.length));
    expect(headerOf(answer, "Transfer-Encoding")).toBeUndefined();
    expect(answer.body.toString()).toMatch(new RegExp(`^${status} [a-z ]+\n$`));
  });

  it("to a target of exactly 8 KiB is none", async () => {
    const target = `/hello?${"x".repeat(8192 - "/hello?".length)}`;
    expect(statusOf(await ask(await begin(), target))).toBe(200);
  });

  it("to another method names the ones allowed and does not read the body", async () => {
    const headers = ["Content-Type: strange/type", "Content-Length: 1000000000"];
    const answer = await ask(await begin(), "/hello", { method: "PUT", headers: headers });
    expect(statusOf(answer)).toBe(405);
    expect(headerOf(answer, "Allow")).toBe("GET, HEAD");
  });

  it("to HTTP/1.1 without Host is 400 with a length", async () => {
    const answer = parseAnswer(await sendRaw(await begin(), "GET /hello HTTP/1.1\r\nConnection: close\r\n\r\n"));
    expect(statusOf(answer)).toBe(400);
    expect(headerOf(answer, "Content-Length")).toBe(String(answer.body.length));
  });

  it("to HEAD has no body", async () => {
    const answer = await ask(await begin(), "/nothing", { method: "HEAD" });
    expect(statusOf(answer)).toBe(404);
    expect(headerOf(answer, "Content-Length")).toBe("14");
    expect(answer.body.length).toBe(0);
  });

  it("to a failing handler says nothing of it, and the log has it once", async () => {
    const lines: string[] = [];
    const log = createLog({ level: "info", format: "json", destination: { write: (line) => void lines.push(line) } });
    const port = await begin([{ url: "/fail", answer: fail }], { log });
    const answer = await ask(port, "/fail?query=1");
    expect(statusOf(answer)).toBe(500);
    expect(answer.body.toString()).toBe("500 internal error\n");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("the inside");
    expect(lines[0]).not.toContain("query=1");
  });

  it("is made by the listener's own function", async () => {
    const port = await begin([hello], {
      answerError: (thrown) => ({
        status: 404,
        headers: { "content-type": "application/json" },
        body: `{"own":${thrown instanceof RequestError}}`,
      }),
    });
    for (const target of ["/nothing", "/%zz"]) {
      const answer = await ask(port, target);
      expect(headerOf(answer, "Content-Type")).toBe("application/json");
      expect(answer.body.toString()).toBe('{"own":true}');
    }
  });

  it("is not written into an answer that has begun", async () => {
    const port = await start([streamRoute("/slow", { "content-length": "6" }, stalling(Buffer.from("abc")))]);
    const socket = connect(port, "127.0.0.1");
    const whole = readToEnd(socket);
    socket.write("GET /slow HTTP/1.1\r\nHost: davit\r\n\r\n");
    await once(socket, "data");
    socket.write("no request at all\r\n\r\n");
    expect((await whole).toString().match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

/** Yields one chunk and then waits for ever. */
async function* stalling(chunk: Buffer): AsyncGenerator<Buffer> {
  yield chunk;
  await new Promise(() => undefined);
}

describe("listen", () => {
  it("tells the option that changes a port in use", async () => {
    const port = await start([hello]);
    const second = createServer({ log: silent, clock: systemClock, answerError, handler: handlerOf([]) });
    running.push(second);
    await expect(second.listen({ host: "127.0.0.1", port, option: "--boot-address" })).rejects.toThrow(
      new StartError(
        `Cannot listen on "127.0.0.1:${port}": the port is in use, by another davit or another program; ` +
          "choose another with --boot-address",
      ),
    );
  });

  it("tells the option that changes an address which this machine lacks", async () => {
    const server = createServer({ log: silent, clock: systemClock, answerError, handler: handlerOf([]) });
    running.push(server);
    const listening = server.listen({ host: "192.0.2.1", port: 0, option: "--store-address" });
    await expect(listening).rejects.toThrow(/"192\.0\.2\.1:0": this computer has no such address; .*--store-address/);
  });
});

describe("close", () => {
  it("lets a request in flight finish and closes idle connections", async () => {
    const gate = Promise.withResolvers<string>();
    const begun = Promise.withResolvers<void>();
    const wait = async () => {
      begun.resolve();
      return { status: 200, headers: ["Content-Type", "text/plain"], body: await gate.promise };
    };
    const port = await start([hello, { url: "/wait", answer: wait }]);
    const idle = connect(port, "127.0.0.1");
    const idleBytes = readToEnd(idle);
    idle.write("GET /hello HTTP/1.1\r\nHost: davit\r\n\r\n");
    await once(idle, "data");
    const busy = connect(port, "127.0.0.1");
    const busyBytes = readToEnd(busy);
    busy.write("GET /wait HTTP/1.1\r\nHost: davit\r\n\r\n");
    await begun.promise;
    const closed = running[0]?.close();
    expect(statusOf(parseAnswer(await idleBytes))).toBe(200);
    gate.resolve("done");
    await closed;
    expect(parseAnswer(await busyBytes).body.toString()).toBe("done");
    await expect(sendRaw(port, "GET /hello HTTP/1.1\r\n\r\n")).resolves.toHaveLength(0);
  });

  it("can be called again, and before `listen`", async () => {
    const server = createServer({ log: silent, clock: systemClock, answerError, handler: handlerOf([]) });
    await server.close();
    await expect(server.close()).resolves.toBeUndefined();
  });
});
