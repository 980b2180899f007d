/** Clients that leave while their answer is still being made, or before they have fetched it. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { bootHandler } from "../../src/http/boot/routes.ts";
import { answerError } from "../../src/http/errors.ts";
import { keysHandler } from "../../src/http/keys/routes.ts";
import { LargeBodies } from "../../src/http/large-bodies.ts";
import { createServer, type Handler, type HttpServer } from "../../src/http/server.ts";
import { followAnswer } from "../../src/http/store/follow-routes.ts";
import { FollowStreams } from "../../src/http/store/follow-streams.ts";
import { storeHandler } from "../../src/http/store/routes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openStore, silentLog } from "../helpers/test-store.ts";
import { handlerOf } from "./handler-of.ts";
import { parseAnswer, readToEnd } from "./wire.ts";

const mebibyte = 1024 * 1024;
const running: HttpServer[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
});

async function start<Visit>(handler: Handler<Visit>): Promise<number> {
  const server = createServer({ log: silentLog, clock: systemClock, answerError, handler });
  running.push(server);
  return (await server.listen({ host: "127.0.0.1", port: 0, option: "--boot-address" })).port;
}

/** Asks and leaves once the request has `begun`; resolves when the server knows that it has. */
async function leave(port: number, target: string, begun: Promise<unknown>): Promise<void> {
  const gone = once(running[0]?.node ?? expect.fail("no server"), "connection").then(([socket]: Socket[]) =>
    once(socket ?? expect.fail("no socket"), "close"),
  );
  const socket = connect(port, "127.0.0.1");
  socket.write(`GET ${target} HTTP/1.1\r\nHost: davit\r\n\r\n`);
  await begun;
  socket.destroy();
  await gone;
}

/** A promise that a test ends, and one for its beginning. */
function gateOf<Value>() {
  const [gate, begun] = [Promise.withResolvers<Value>(), Promise.withResolvers<void>()];
  const wait = () => {
    begun.resolve();
    return gate.promise;
  };
  return { wait, open: gate.resolve, begun: begun.promise };
}

it("a large config that was slow holds no memory for a client that has left", async () => {
  const large = new LargeBodies();
  const { wait, open, begun } = gateOf<void>();
  const render = async () => {
    await wait();
    return { rendered: { body: "x".repeat(4 * mebibyte), contentType: "text/plain" }, group: "a/b", profile: "a/c" };
  };
  const port = await start(bootHandler({ configs: { render }, large }));
  await leave(port, "/ipxe", begun);
  open();
  await systemClock.sleep(20);
  expect(large.bytes).toBe(0);
});

it.each([
  { name: "a follower", target: "/davit/v1/follow" },
  { name: "a watcher", target: "/v2/keys/a?wait=true" },
])("$name that left while its token was checked takes no place", async ({ target }) => {
  const store = await openStore();
  const streams = new FollowStreams({ store, clock: systemClock, provenAtMs: () => undefined });
  const { wait, open, begun } = gateOf<undefined>();
  const port = await start(
    storeHandler({
      store,
      guard: { refusalOf: wait, follow: () => undefined },
      keys: keysHandler({ store, maxValueBytes: 1, clock: systemClock, advertiseUrl: () => "" }),
      follow: followAnswer({ store, streams, log: silentLog, guard: () => undefined, isReady: () => true }),
      backup: () => undefined,
    }),
  );
  await leave(port, target, begun);
  open(undefined);
  await systemClock.sleep(20);
  expect([streams.count, store.watcherCount]).toEqual([0, 0]);
  streams.stop();
  await store.stop();
});

it("a client gets the whole of its answer when the server closes before it has fetched it", async () => {
  const body = Buffer.alloc(16 * mebibyte, "x");
  const answer = () => ({ status: 200, headers: ["Content-Type", "text/plain"], body });
  const port = await start(handlerOf([{ url: "/large", answer }]));
  const socket = connect(port, "127.0.0.1");
  socket.write("GET /large HTTP/1.1\r\nHost: davit\r\n\r\n");
  await once(socket, "readable");
  const closed = running[0]?.close();
  await systemClock.sleep(200);
  expect(parseAnswer(await readToEnd(socket)).body).toHaveLength(body.length);
  await closed;
});

it("CONNECT is not answered in place of the request before it", async () => {
  const { wait, open, begun } = gateOf<void>();
  const slow = async () => {
    await wait();
    return { status: 200, headers: ["Content-Type", "text/plain"], body: "done" };
  };
  const port = await start(handlerOf([{ url: "/slow", answer: slow }]));
  const socket = connect(port, "127.0.0.1");
  const whole = readToEnd(socket);
  socket.write("GET /slow HTTP/1.1\r\nHost: davit\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: davit\r\n\r\n");
  await begun;
  open();
  expect((await whole).toString()).not.toMatch(/^HTTP\/1\.1 404/);
});
