import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Clients } from "../../src/http/client-shares.ts";
import { filesWithin, withTls } from "../../src/http/connection-limit.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { readTlsMaterial, ServerTls } from "../../src/http/server-tls.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { type Authority, makeAuthority } from "../helpers/certificates.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";
import { handlerOf } from "./handler-of.ts";

const running: HttpServer[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(running.splice(0).map((server) => server.close()));
});

async function start(maxConnections: number, makesRoom = false) {
  const lines: object[] = [];
  const clock = new FakeClock();
  const log = createLog({
    level: "info",
    format: "json",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  let refused = 0;
  const connections = { maxConnections, makesRoom, clients: new Clients(), onRefused: () => void refused++ };
  // A server ends by a clock that goes.
  const handler = handlerOf([]);
  const shared = { log, answerError, connections, handler };
  const server = createServer({ ...shared, clock: { ...systemClock, monotonicMs: () => clock.monotonicMs() } });
  running.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  const connectionCount = () => promisify(server.node.getConnections.bind(server.node))();
  return { port, lines, clock, refused: () => refused, connectionCount };
}

async function open(port: number, localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  sockets.push(socket.on("error", () => undefined));
  await once(socket, "connect");
  return socket;
}

/** One that is turned away. */
async function openInVain(port: number): Promise<void> {
  const socket = await open(port);
  if (!socket.closed) await once(socket.resume(), "close");
}

/** One that is answered. */
async function openAndAsk(port: number, localAddress?: string): Promise<Socket> {
  const socket = await open(port, localAddress);
  socket.write("GET / HTTP/1.1\r\nHost: davit\r\n\r\n");
  const [answer] = await once(socket, "data");
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
  return socket;
}

describe("a listener with a limit", () => {
  it("turns away connections beyond it, counts them, and says so at most every 10 s", async () => {
    const { port, lines, clock, refused } = await start(1);
    await openAndAsk(port);
    for (let at = 0; at < 3; at++) await openInVain(port);
    expect(lines).toMatchObject([{ level: 50, count: 1, maxConnections: 1, msg: expect.stringContaining("refused") }]);
    await clock.advance(10_000);
    await openInVain(port);
    expect(lines).toMatchObject([{ count: 1 }, { count: 3 }]);
    expect(refused()).toBe(4);
  });

  it("takes the next one when another has ended", async () => {
    const { port, lines, connectionCount } = await start(1);
    (await openAndAsk(port)).end();
    await expect.poll(connectionCount).toBe(0);
    await openAndAsk(port);
    expect(lines).toEqual([]);
  });
});

/** What a connection of this address is answered: a status, or nothing at all. */
async function statusFor(port: number, localAddress: string): Promise<string> {
  const socket = await open(port, localAddress);
  socket.write("GET / HTTP/1.1\r\nHost: davit\r\n\r\n");
  const [answer] = await Promise.race([once(socket, "data"), once(socket, "close").then(() => ["closed"])]);
  return String(answer).slice(0, 12);
}

describe("one address among others", () => {
  it("gets half of the connections, is told to wait from then on, and others are answered", async () => {
    const { port } = await start(64);
    for (let at = 0; at < 32; at++) await open(port, "127.0.0.2");
    expect(await statusFor(port, "127.0.0.2")).toBe("HTTP/1.1 503");
    for (const other of ["127.0.0.1", "127.0.0.3", "127.0.0.4"])
      expect(await statusFor(port, other)).toBe("HTTP/1.1 200");
  });

  it("leaves room however many addresses do as it does", async () => {
    const { port, refused } = await start(64);
    for (const address of ["127.0.0.2", "127.0.0.3", "127.0.0.4"]) {
      for (let at = 0; at < 40; at++) await open(port, address);
    }
    await expect.poll(refused).toBe(120 - 32 - 16 - 8);
    expect(await statusFor(port, "127.0.0.9")).toBe("HTTP/1.1 200");
  });

  it("gets its place back when it has ended some", async () => {
    const { port } = await start(8);
    const held: Socket[] = [];
    for (let at = 0; at < 4; at++) held.push(await open(port, "127.0.0.2"));
    expect(await statusFor(port, "127.0.0.2")).toBe("HTTP/1.1 503");
    held.pop()?.destroy();
    await expect.poll(() => statusFor(port, "127.0.0.2")).toBe("HTTP/1.1 200");
  });
});

describe("a listener that makes room", () => {
  it("closes the longest idle connection of the client with most, and logs whose it is", async () => {
    const { port, lines, refused } = await start(4, true);
    const askedLast = await open(port, "127.0.0.2");
    const idle = await openAndAsk(port, "127.0.0.2");
    askedLast.write("GET / HTTP/1.1\r\nHost: davit\r\n\r\n");
    await once(askedLast, "data");
    const others = [await openAndAsk(port, "127.0.0.3"), await openAndAsk(port, "127.0.0.4")];
    const closed = once(idle, "close");
    expect(await statusFor(port, "127.0.0.5")).toBe("HTTP/1.1 200");
    await closed;
    expect([askedLast, ...others].map((socket) => socket.closed)).toEqual([false, false, false]);
    expect(lines).toMatchObject([
      { client: "127.0.0.2", connections: 2, maxConnections: 4, msg: expect.stringContaining("closed for others") },
    ]);
    expect(refused()).toBe(1);
  });

  it("makes none for a client that has as many as any other", async () => {
    const { port } = await start(4, true);
    const held = [await open(port, "127.0.0.2"), await open(port, "127.0.0.2")];
    expect(await statusFor(port, "127.0.0.2")).toBe("HTTP/1.1 503");
    expect(held.map((socket) => socket.closed)).toEqual([false, false]);
  });
});

it.each([
  { openFiles: 1_024, connections: { boot: 429, store: 256, ops: 64, assets: 143 } },
  { openFiles: 4_096, connections: { boot: 1_716, store: 1_024, ops: 256, assets: 572 } },
  { openFiles: 20_000, connections: { boot: 12_104, store: 5_000, ops: 256, assets: 2_112 } },
  { openFiles: 1_048_576, connections: { boot: 783_536, store: 262_144, ops: 256, assets: 2_112 } },
])("$openFiles open files are shared by the listeners, and some are left", ({ openFiles, connections }) => {
  expect(filesWithin(openFiles)).toEqual(connections);
  const left = openFiles - Object.values(connections).reduce((sum, each) => sum + each);
  expect(left).toBeGreaterThanOrEqual(Math.min(openFiles / 8, 512));
});

describe.skipIf(missing("openssl"))("a connection by TLS", () => {
  let folder: string;
  let authority: Authority;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-connections-"));
    authority = makeAuthority(folder);
  });
  afterAll(() => rm(folder, { recursive: true }));

  it("is answered 503 when it is turned away, as any other", async () => {
    const { cert, key } = authority.issue("server");
    const tls = new ServerTls(readTlsMaterial([cert, key]));
    const connections = { maxConnections: 8, clients: new Clients() };
    const server = createServer({
      log: silentLog,
      clock: systemClock,
      answerError,
      handler: handlerOf([]),
      connections,
      tls,
    });
    running.push(server);
    const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" });
    for (let at = 0; at < 4; at++) await open(port, "127.0.0.2");
    const socket = connectTls({ socket: await open(port, "127.0.0.2"), host: "127.0.0.1", ca: authority.cert });
    sockets.push(socket.on("error", () => undefined));
    await once(socket, "secureConnect");
    socket.write("GET / HTTP/1.1\r\nHost: davit\r\n\r\n");
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 503 /);
  });
});

it("a listener with TLS has at most 4,096 connections, however many files davit may open", () => {
  const limitWithin = (openFiles: number) => withTls({ maxConnections: filesWithin(openFiles).boot }).maxConnections;
  expect(limitWithin(1_048_576)).toBe(4_096);
  expect(limitWithin(1_024)).toBe(filesWithin(1_024).boot);
});
