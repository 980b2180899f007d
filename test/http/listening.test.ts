import dns from "node:dns";
import { once } from "node:events";
import { connect, createServer as createServerOfNet, type Server } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it, vi } from "vitest";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../helpers/test-store.ts";
import { handlerOf } from "./handler-of.ts";

const running: HttpServer[] = [];
const crowds: Worker[] = [];
const locks: Server[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  for (const lock of locks.splice(0)) lock.close();
  await Promise.all(crowds.splice(0).map((crowd) => crowd.terminate()));
  await Promise.all(running.splice(0).map((server) => server.close()));
});

function makeServer(clock: Clock = systemClock): HttpServer {
  const server = createServer({ log: silentLog, clock, answerError, handler: handlerOf([]) });
  running.push(server);
  return server;
}

/** @returns a port that nobody uses. */
async function freePort(): Promise<number> {
  const server = makeServer();
  const { port } = await server.listen(address);
  await server.close();
  return port;
}

/** Takes the lock that a davit holds from its check of a port until it listens. */
async function lockOf(port: number): Promise<Server> {
  const lock = createServerOfNet().listen({ path: `\0davit ${port}` });
  locks.push(lock);
  await once(lock, "listening");
  return lock;
}

const address = { host: "127.0.0.1", port: 0, option: "--boot-address" };

/** Answers the look-ups of names. */
function namesMean(addressesOf: (host: string) => readonly string[] | Promise<readonly string[]>) {
  const lookup = async (host: string, _: object, found: (error: null, all: object) => void) => {
    const all = await addressesOf(host);
    found(
      null,
      all.map((each) => ({ address: each, family: 4 })),
    );
  };
  return vi.spyOn(dns, "lookup").mockImplementation(Object.assign(lookup, dns.lookup));
}

/** Opens connections in another thread. Blocks this one until the system has taken all of them. */
function crowd(port: number, count: number): void {
  const connected = new Int32Array(new SharedArrayBuffer(4));
  const program = `
    const { workerData: { port, count, connected } } = require("node:worker_threads");
    const { connect } = require("node:net");
    for (let at = 0; at < count; at++) {
      const socket = connect(port, "127.0.0.1", () => {
        Atomics.add(connected, 0, 1);
        Atomics.notify(connected, 0);
      });
      socket.on("error", () => undefined);
    }`;
  crowds.push(new Worker(program, { eval: true, workerData: { port, count, connected } }));
  for (let known = 0; known < count; known = Atomics.load(connected, 0)) {
    if (Atomics.wait(connected, 0, known, 20_000) === "timed-out") throw new Error(`${known} of ${count} connected`);
  }
}

/** @returns the number of turns of the event loop in which the server accepts this many waiting connections. */
async function turnsToAccept(count: number, shared?: "first"): Promise<number> {
  const server = makeServer();
  let accepted = 0;
  server.node.on("connection", () => void accepted++);
  const { port } = await server.listen({ ...address, shared });
  crowd(port, count);
  let turns = 0;
  for (; accepted < count; turns++) await nextTurn();
  return turns;
}

describe("a listener that expects a crowd", () => {
  it("accepts several connections in each turn of its event loop", async () => {
    expect(await turnsToAccept(400, "first")).toBeLessThan(400 / 4);
    // With one socket. If this fails, davit no longer needs several.
    expect(await turnsToAccept(400)).toBeGreaterThanOrEqual(400);
  });

  it("is the only one on its address", async () => {
    const { port } = await makeServer().listen({ ...address, shared: "first" });
    const refused = `Cannot listen on "127.0.0.1:${port}": the port is in use`;
    await expect(makeServer().listen({ ...address, port, shared: "first" })).rejects.toThrow(refused);
  });

  it("waits while another davit checks whether the address is free, and is refused if that one listens", async () => {
    const port = await freePort();
    const lock = await lockOf(port);
    const refused = makeServer().listen({ ...address, port, shared: "first" });
    const outcome = Promise.allSettled([refused]);
    for (let turns = 0; turns < 20; turns++) await nextTurn();
    // Fails if the other server listens already.
    await makeServer().listen({ ...address, port });
    lock.close();
    expect(await outcome).toMatchObject([{ reason: { message: expect.stringContaining("the port is in use") } }]);
  });

  it("is one of two that begin on overlapping addresses", async () => {
    for (let ticks = 0; ticks < 12; ticks++) {
      const port = await freePort();
      const first = makeServer().listen({ ...address, port, shared: "first" });
      for (let tick = 0; tick < ticks; tick++) await new Promise<void>((resolve) => process.nextTick(resolve));
      const second = makeServer().listen({ ...address, host: "0.0.0.0", port, shared: "first" });
      const outcomes = await Promise.allSettled([first, second]);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      await Promise.all(running.splice(0).map((server) => server.close()));
    }
  });

  it("begins although a stranger keeps the lock, and nobody can connect to its own", async () => {
    const port = await freePort();
    const lock = await lockOf(port);
    const server = makeServer({ ...systemClock, sleep: async () => void (await nextTurn()) });
    expect(await server.listen({ ...address, port, shared: "first" })).toMatchObject({ port });
    await server.close();
    lock.close();
    await once(lock, "close");
    const left = Promise.withResolvers<void>();
    namesMean(async () => left.promise.then(() => ["127.0.0.1"]));
    const listening = makeServer().listen({ ...address, host: "davit.test", port, shared: "first" });
    const stranger = connect({ path: `\0davit ${port}` });
    await once(stranger.resume(), "close");
    left.resolve();
    expect(await listening).toMatchObject({ port });
  });

  it("listens on one address although its name has several", async () => {
    const addresses = ["127.0.0.1", "127.0.0.2"];
    const port = await freePort();
    const lookup = namesMean((host) => (host === "davit.test" ? addresses.reverse() : [host]));
    const bound = await makeServer().listen({ ...address, host: "davit.test", port, shared: "first" });
    expect(lookup).toHaveBeenCalled();
    vi.restoreAllMocks();
    const other = addresses.find((each) => each !== bound.address) ?? "";
    expect(await makeServer().listen({ ...address, host: other, port })).toMatchObject({ address: other });
  });

  it("closes all of its sockets", async () => {
    const server = makeServer();
    const { port } = await server.listen({ ...address, shared: "first" });
    await server.close();
    // This server does not share the address: the system refuses it while any socket listens.
    expect(await makeServer().listen({ ...address, port })).toMatchObject({ port });
  });
});
