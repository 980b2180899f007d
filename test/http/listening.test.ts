import { once } from "node:events";
import { createServer as createServerOfNet } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { StartError } from "../../src/lib/start-error.ts";
import { silentLog } from "../helpers/test-store.ts";
import { handlerOf } from "./handler-of.ts";

const running: HttpServer[] = [];
const crowds: Worker[] = [];

afterEach(async () => {
  await Promise.all(crowds.splice(0).map((crowd) => crowd.terminate()));
  await Promise.all(running.splice(0).map((server) => server.close()));
});

function makeServer(): HttpServer {
  const server = createServer({ log: silentLog, clock: systemClock, answerError, handler: handlerOf([]) });
  running.push(server);
  return server;
}

const address = { host: "127.0.0.1", port: 0, option: "--boot-address" };

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

  it("is refused while another davit checks whether the address is free", async () => {
    const server = makeServer();
    const { port } = await server.listen({ ...address, shared: "first" });
    await server.close();
    // A davit holds this lock from its check until it listens.
    const lock = createServerOfNet().listen({ path: `\0davit 127.0.0.1 ${port}` });
    await once(lock, "listening");
    await expect(makeServer().listen({ ...address, port, shared: "first" })).rejects.toThrow(StartError);
    lock.close();
    await once(lock, "close");
    expect(await makeServer().listen({ ...address, port, shared: "first" })).toMatchObject({ port });
  });

  it("closes all of its sockets", async () => {
    const server = makeServer();
    const { port } = await server.listen({ ...address, shared: "first" });
    await server.close();
    // This server does not share the address: the system refuses it while any socket listens.
    expect(await makeServer().listen({ ...address, port })).toMatchObject({ port });
  });
});
