/** Clients that do not read, over real sockets: what is kept for them, and who else is answered. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { Clients } from "../../src/http/client-shares.ts";
import { answerError } from "../../src/http/errors.ts";
import { LargeBodies } from "../../src/http/large-bodies.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { UnsentAnswers, unsentLimitOf } from "../../src/http/unsent-answers.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { silentLog } from "../helpers/test-store.ts";
import { handlerOf } from "./handler-of.ts";

const mebibyte = 1024 * 1024;
/** More than the buffers between a server and a client that does not read can hold. */
const large = Buffer.alloc(12 * mebibyte, "x");
const limitBytes = 48 * mebibyte;

const running: HttpServer[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(running.splice(0).map((server) => server.close()));
});

async function start(options: { readonly stallMs?: number } = {}) {
  const unsent = new UnsentAnswers({ clients: new Clients(), limitBytes, ...options });
  let answered = 0;
  const route = (url: string, body: string | Buffer) => ({
    url,
    answer: () => {
      answered += 1;
      return { status: 200, headers: ["Content-Type", "text/plain"], body };
    },
  });
  const handler = handlerOf([route("/large", large), route("/small", "small")]);
  const server = createServer({ log: silentLog, clock: systemClock, answerError, unsent, handler });
  running.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  const connectionCount = () => promisify(server.node.getConnections.bind(server.node))();
  return { port, unsent, answered: () => answered, connectionCount };
}

const get = (target: string) => `GET ${target} HTTP/1.1\r\nHost: davit\r\n\r\n`;

/** Asks and reads nothing. */
async function askOnly(port: number, localAddress: string, requests = get("/large")): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress }).pause();
  sockets.push(socket.on("error", () => undefined));
  await once(socket, "connect");
  socket.write(requests);
  return socket;
}

async function statusFor(port: number, localAddress: string, target = "/small"): Promise<string> {
  const socket = await askOnly(port, localAddress, get(target));
  const [answer = ""] = await Promise.race([once(socket.resume(), "data"), once(socket, "close").then(() => [])]);
  return String(answer).slice(9, 12);
}

describe("a client that does not read", () => {
  it("has half of what is kept, is refused from then on, and others are answered", async () => {
    const { port, unsent } = await start();
    for (let at = 0; at < 12; at++) await askOnly(port, "127.0.0.2");
    await expect.poll(() => statusFor(port, "127.0.0.2")).toBe("503");
    expect(unsent.bytes).toBeLessThan(limitBytes);
    for (const other of ["127.0.0.1", "127.0.0.3"]) expect(await statusFor(port, other)).toBe("200");
  });

  it("is cut when all that do not read keep too much together", async () => {
    const { port, unsent, connectionCount } = await start();
    for (let client = 2; client < 10; client++) {
      for (let at = 0; at < 4; at++) await askOnly(port, `127.0.0.${client}`);
      expect(unsent.bytes).toBeLessThanOrEqual(limitBytes);
    }
    await expect.poll(connectionCount).toBeLessThan(32);
    expect(await statusFor(port, "127.0.0.1")).toBe("200");
  });

  it("is counted no longer when it has read, or has gone", async () => {
    const { port, unsent } = await start();
    const [reader, leaver] = [await askOnly(port, "127.0.0.2"), await askOnly(port, "127.0.0.3")];
    await expect.poll(() => unsent.bytes).toBeGreaterThan(mebibyte);
    reader.resume();
    leaver.destroy();
    await expect.poll(() => unsent.bytes).toBe(0);
  });

  it("is cut when it takes nothing for too long", async () => {
    const { port, unsent } = await start({ stallMs: 200 });
    const socket = await askOnly(port, "127.0.0.2");
    await expect.poll(() => unsent.bytes).toBeGreaterThan(0);
    await expect.poll(() => unsent.bytes).toBe(0);
    if (!socket.closed) await once(socket.resume(), "close");
  });

  it("has one answer made, however many requests it sends at once", async () => {
    const { port, answered } = await start();
    await askOnly(port, "127.0.0.2", get("/large") + get("/small").repeat(90));
    await expect.poll(answered).toBe(1);
    expect(await statusFor(port, "127.0.0.1")).toBe("200");
    expect(answered()).toBe(2);
  });

  it("is cut when more of its requests wait than others leave free", async () => {
    const { port } = await start();
    const asked: Socket[] = [];
    for (let at = 0; at < 8; at++) {
      asked.push(await askOnly(port, "127.0.0.2", get("/large") + get("/small").repeat(1_300)));
    }
    const closed = asked.map((socket) => once(socket.resume(), "close"));
    await Promise.race(closed);
    expect(await statusFor(port, "127.0.0.1")).toBe("200");
  });
});

it("an answer that is read at once is not counted", async () => {
  const { port, unsent } = await start();
  for (let at = 0; at < 20; at++) expect(await statusFor(port, "127.0.0.2")).toBe("200");
  expect(unsent.bytes).toBe(0);
});

it("leaves each of many threads room for a config of the largest size", () => {
  for (const threads of [1, 2, 16, 64]) {
    const { shares } = new UnsentAnswers({ clients: new Clients(), limitBytes: unsentLimitOf(threads) });
    expect(new LargeBodies(shares).hold({}, "x".repeat(8 * mebibyte), () => "192.0.2.1")).toBeDefined();
  }
  expect([1, 2, 8].map((threads) => threads * unsentLimitOf(threads))).toEqual(Array(3).fill(128 * mebibyte));
});

it("is measured beside what other threads have added to the gauge", async () => {
  const { unsentBytes } = createMetrics("0");
  const unsent = new UnsentAnswers({ clients: new Clients() });
  unsentBytes.inc({ listener: "boot" }, 1_000);
  const sums: (number | undefined)[] = [];
  for (const bytes of [20, 0, -20]) {
    unsent.shares.add("192.0.2.1", bytes);
    unsent.measure(unsentBytes, "boot");
    sums.push((await unsentBytes.get()).values[0]?.value);
  }
  expect(sums).toEqual([1_020, 1_020, 1_000]);
});
