import { once } from "node:events";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterEach, expect, it } from "vitest";
import { type BootRoute, bootHandler } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/logging/create-log.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { accessLog } from "../helpers/access-log.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { ask, sendRaw } from "./wire.ts";

const running: HttpServer[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

async function start() {
  const lines: object[] = [];
  const metrics = createMetrics("test");
  const clock = new FakeClock();
  const log = createLog({
    level: "info",
    format: "json",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const machine = { rendered: { body: "text", contentType: "text/plain" }, group: "lab/node", profile: "lab/web" };
  const render = async () => {
    await clock.advance(12.34);
    return machine;
  };
  const routes = [
    streamRoute("/assets/*", [Buffer.from("a"), Buffer.from("b")]),
    streamRoute("/endless", { [Symbol.asyncIterator]: endless }),
  ];
  const handler = bootHandler({ configs: { render }, accessLog: accessLog({ log, clock, metrics }), routes });
  const server = createServer({ log, clock: systemClock, answerError, handler });
  running.push(server);
  const { port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" });
  return { port, lines, metrics };
}

function streamRoute(url: string, chunks: Iterable<Buffer> | AsyncIterable<Buffer>): BootRoute {
  return {
    url,
    answer: ({ response }) => {
      response.on("error", () => undefined);
      void pipeline(Readable.from(chunks), response).catch(() => undefined);
      return undefined;
    },
  };
}

async function* endless(): AsyncGenerator<Buffer> {
  for (;;) yield Buffer.alloc(65_536);
}

it("has one line for a request: who asked, what was found, how long it took, and no query", async () => {
  const { port, lines } = await start();
  await ask(port, `/ipxe?serial=secret&mac=52-54-00-00-00-01&uuid=${"u".repeat(2000)}`);
  await expect
    .poll(() => lines)
    .toEqual([
      {
        level: 30,
        time: expect.any(String),
        method: "GET",
        path: "/ipxe",
        status: 200,
        group: "lab/node",
        profile: "lab/web",
        mac: "52:54:00:00:00:01",
        durationMs: 12.3,
        msg: "request",
      },
    ]);
});

it.each<[name: string, target: string, expected: object, endpoint: string]>([
  ["an unknown path", "/nothing", { path: "/nothing", status: 404 }, "other"],
  ["a bad escape", "/%zz", { path: "/%zz", status: 400 }, "other"],
  ["a target that is too long", `/ipxe?${"x".repeat(9000)}`, { path: "/ipxe", status: 414 }, "ipxe"],
  ["a stream", "/assets/a/b?x=1", { path: "/assets/a/b", status: 200 }, "assets"],
  ["the root", "/", { path: "/", status: 200 }, "root"],
])("has a line and a count for %s", async (_name, target, expected, endpoint) => {
  const { port, lines, metrics } = await start();
  await ask(port, target);
  await expect.poll(() => lines).toEqual([expect.objectContaining(expected)]);
  expect(await metrics.text()).toMatch(
    new RegExp(`davit_boot_requests_total\\{endpoint="${endpoint}",code="\\d+"\\} 1`),
  );
});

it("leaves out a path of more than 1 KiB", async () => {
  const { port, lines } = await start();
  await ask(port, `/${"x/".repeat(1000)}`);
  await expect.poll(() => lines).toHaveLength(1);
  expect(lines[0]).not.toHaveProperty("path");
});

it("has a line for a client that went away, and says so", async () => {
  const { port, lines } = await start();
  const socket = connect(port, "127.0.0.1");
  socket.write("GET /endless HTTP/1.1\r\nHost: davit\r\n\r\n");
  await once(socket, "readable");
  socket.destroy();
  await expect.poll(() => lines).toEqual([expect.objectContaining({ path: "/endless", aborted: true })]);
});

it("has the status of an error that GRUB does not get, because davit cuts its connection", async () => {
  const { port, lines, metrics } = await start();
  await sendRaw(port, "GET /assets/x HTTP/1.1\r\nUser-Agent: GRUB 2.06\r\n\r\n");
  const status = 400;
  await expect.poll(() => lines).toEqual([expect.objectContaining({ path: "/assets/x", status, aborted: true })]);
  expect(await metrics.text()).toContain('davit_boot_requests_total{endpoint="assets",code="400"} 1');
});
