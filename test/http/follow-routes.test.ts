import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answerError } from "../../src/http/errors.ts";
import { type SecretsGuard, secretsGuard } from "../../src/http/guard/store-guard.ts";
import { keysHandler } from "../../src/http/keys/routes.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { followAnswer } from "../../src/http/store/follow-routes.ts";
import { FollowStreams, type FollowStreamsOptions } from "../../src/http/store/follow-streams.ts";
import { storeHandler } from "../../src/http/store/routes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { encodeFollowLine, type FollowLine } from "../../src/model/follow-line.ts";
import { storePath } from "../../src/store/core/node.ts";
import type { Store } from "../../src/store/store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openStore, silentLog } from "../helpers/test-store.ts";

let clock: FakeClock;
let store: Store;
let streams: FollowStreams;
let server: HttpServer | undefined;
let port = 0;
const ends: (() => void)[] = [];

beforeEach(async () => {
  provenAtMs = undefined;
  clock = new FakeClock();
  store = await openStore();
  await write("/davit/groups/ns/a", "group a");
  await write("/davit/_secrets/ns/p/h", "secret text");
  await write("/users/note", "not davit's");
});

/** As it is off loopback, without credentials. */
const closed = secretsGuard({ asksForCredentials: false, isLoopback: false, localToken: "unused-0123456789" });

afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await server?.close();
  server = undefined;
  await store.stop();
});

let isReady = true;
let provenAtMs: number | undefined;

async function start(
  options: Partial<FollowStreamsOptions> = {},
  guard: SecretsGuard = () => undefined,
): Promise<void> {
  streams = new FollowStreams({ store, clock, provenAtMs: () => provenAtMs, ...options });
  const follow = followAnswer({ store, streams, log: silentLog, guard, isReady: () => isReady });
  const admitting = { refusalOf: () => undefined, follow: () => undefined };
  const keys = keysHandler({
    store,
    maxValueBytes: 1024 * 1024,
    clock,
    advertiseUrl: () => "http://x:1",
  });
  const answers = storeHandler({ store, guard: admitting, keys, follow, backup: () => undefined });
  const handler = { ...answers, end: () => streams.stop() };
  server = createServer({ log: silentLog, clock: systemClock, answerError, handler });
  port = (await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" })).port;
}

async function write(path: string, value: string): Promise<void> {
  await store.submit({ kind: "set", path: storePath(path), value });
}

const url = (query = "") => `http://127.0.0.1:${port}/davit/v1/follow${query}`;
const here = () => store.identity.clusterId;
const place = (index: number) => ({ index, run: store.run });
/** The query of who has everything up to an index. */
const having = (index: number, run = store.run) => `?cluster=${here()}&after=${index}&run=${run}`;

/** Follows; gives a function that reads the next lines. */
async function follow(query = ""): Promise<(count: number) => Promise<string>> {
  const stop = new AbortController();
  ends.push(() => stop.abort());
  const answer = await fetch(url(query), { signal: stop.signal });
  expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
  if (answer.body === null) throw new Error("The answer has no body");
  const body = Readable.fromWeb(answer.body);
  body.on("error", () => {});
  const lines = createInterface({ input: body })[Symbol.asyncIterator]();
  return async (count) => {
    let text = "";
    for (let read = 0; read < count; read++) {
      const { value, done } = await lines.next();
      text += done === true ? "(end)" : `${value}\n`;
    }
    return text;
  };
}

function text(...lines: readonly FollowLine[]): string {
  return lines.map(encodeFollowLine).join("");
}

const group = { kind: "put", path: "/davit/groups/ns/a", text: "group a" } as const;
const secret = { kind: "put", path: "/davit/_secrets/ns/p/h", text: "secret text" } as const;

describe("`GET /davit/v1/follow`", () => {
  it.each([
    { name: "who has nothing", query: () => "" },
    { name: "who has another cluster", query: () => having(3).replace(here(), "beef") },
    { name: "who is ahead of the store", query: () => having(4) },
    { name: "who was there before this start", query: () => having(2) },
    { name: "who saw another start write it", query: () => having(3, "beef") },
    { name: "who names no start", query: () => `?cluster=${here()}&after=3` },
    { name: "whose index is no number", query: () => having(3).replace("after=3", "after=3x") },
    { name: "whose index is missing", query: () => `?cluster=${here()}` },
    { name: "whose query makes no sense", query: () => "?%zz&&=" },
  ])("gives everything to $name: davit's documents, secrets among them", async ({ query }) => {
    await start();
    const read = await follow(query());
    expect(await read(1)).toBe(text({ kind: "dump", cluster: here(), nowMs: 0 }));
    // In an order that means nothing.
    expect((await read(2)).trim().split("\n").toSorted()).toEqual([text(secret).trim(), text(group).trim()]);
    expect(await read(2)).toBe(text({ kind: "commit", ...place(3) }, { kind: "heartbeat", ...place(3), nowMs: 0 }));
  });

  it("knows who follows, by a name that is only a name, and what each has not been sent", async () => {
    await start();
    await (await follow(`${having(3)}&name=davit-boot-0`))(2);
    await (await follow("?name=%3Cimg%20src%3Dx%3E"))(1);
    const known = { address: "127.0.0.1", sinceMs: clock.monotonicMs(), behind: 0, isReading: true };
    expect(streams.followers).toEqual([
      { ...known, name: "davit-boot-0" },
      { ...known, name: undefined },
    ]);
    for (const end of ends.splice(0)) end();
    await expect.poll(() => streams.followers).toEqual([]);
  });

  it("gives what it lacks to who has the rest", async () => {
    await start();
    await write("/davit/groups/ns/b", "group b");
    await write("/users/note", "again");
    const read = await follow(having(3));
    expect(await read(4)).toBe(
      text(
        { kind: "resume", cluster: here(), nowMs: 0 },
        { kind: "put", path: "/davit/groups/ns/b", text: "group b" },
        { kind: "commit", ...place(4) },
        { kind: "heartbeat", ...place(5), nowMs: 0 },
      ),
    );
  });

  it("gives every later change, a batch as one step, in the order of the store", async () => {
    await start();
    const read = await follow(having(3));
    await read(2);
    await store.submit({
      kind: "batch",
      commands: [
        { kind: "set", path: storePath("/davit/groups/ns/b"), value: "é\u{1F600}\n" },
        { kind: "delete", path: storePath("/davit/groups/ns/a") },
      ],
    });
    await write("/users/note", "nobody's business");
    await store.submit({ kind: "delete", path: storePath("/davit/_secrets"), recursive: true });
    expect(await read(5)).toBe(
      text(
        { kind: "put", path: "/davit/groups/ns/b", text: "é\u{1F600}\n" },
        { kind: "delete", path: "/davit/groups/ns/a" },
        { kind: "commit", ...place(5) },
        { kind: "delete", path: "/davit/_secrets/ns/p/h" },
        { kind: "commit", ...place(7) },
      ),
    );
  });

  it("says every 10 s how far the store is, and since when that is what the source said", async () => {
    await start();
    const read = await follow(having(3));
    await read(2);
    await write("/users/note", "again");
    await clock.advance(10_000);
    provenAtMs = 9_999.9;
    await clock.advance(10_000);
    expect(await read(2)).toBe(
      text(
        { kind: "heartbeat", ...place(4), nowMs: 10_000 },
        { kind: "heartbeat", ...place(4), nowMs: 20_000, provenMs: 9_999 },
      ),
    );
  });

  it("says so more often to those who may not wait so long, and cuts them no sooner", async () => {
    await start({ beatMs: 400 });
    const read = await follow(having(3));
    await read(2);
    await clock.advance(800);
    const beat = (nowMs: number) => ({ kind: "heartbeat", ...place(3), nowMs }) as const;
    expect(await read(2)).toBe(text(beat(400), beat(800)));
  });

  it("gives the same lines to each of many followers", async () => {
    await start();
    const readers = await Promise.all(Array.from({ length: 20 }, () => follow()));
    await write("/davit/synced", "{}");
    const told = await Promise.all(readers.map((read) => read(7)));
    expect(new Set(told).size).toBe(1);
    expect(told[0]).toContain('"path":"/davit/synced"');
    expect(streams.count).toBe(20);
  });

  it("ends when the listener closes, and forgets who has gone", async () => {
    await start();
    const read = await follow();
    await read(5);
    await server?.close();
    expect(await read(1)).toBe("(end)");
    expect(streams.count).toBe(0);
  });

  it("answers 503 until its own davit would answer machines from the store", async () => {
    await start();
    isReady = false;
    const refused = await fetch(url());
    isReady = true;
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    expect((await fetch(url(), { method: "HEAD" })).status).toBe(404);
  });

  it("answers 503 when its store has lost its log, which may be older than what the follower has", async () => {
    await start();
    vi.spyOn(store, "status", "get").mockReturnValue("lost");
    expect((await fetch(url())).status).toBe(503);
  });

  it("answers 503 beyond its number of followers", async () => {
    await start({ maxFollowers: 1 });
    await (await follow())(5);
    const refused = await fetch(url());
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "30"]);
  });

  it("is closed where anyone could ask and secrets would leave the machine", async () => {
    await start({}, closed);
    const refused = await fetch(url());
    expect(refused.status).toBe(403);
    expect(await refused.text()).toBe(
      '{"errorCode":110,"message":"The request requires user authentication",' +
        '"cause":"this store asks for no credentials, and shows no Secrets: start it with --store-token-file or --store-client-ca-file","index":0}\n',
    );
  });
});

describe("a slow follower", () => {
  /** Asks, and reads nothing of the answer. */
  async function followWithoutReading(): Promise<Socket> {
    const socket = connect({ port, host: "127.0.0.1" });
    ends.push(() => socket.destroy());
    socket.on("error", () => {});
    await once(socket, "connect");
    socket.pause();
    socket.write("GET /davit/v1/follow HTTP/1.1\r\nHost: x\r\n\r\n");
    await expect.poll(() => streams.count).toBe(1);
    return socket;
  }

  const megabyte = "x".repeat(1024 * 1024);

  it("is cut when the history has moved on without it", async () => {
    await start({ history: { maxSteps: 3 } });
    await followWithoutReading();
    // As much as the kernel may hold for a socket, several times over.
    for (let at = 0; streams.count > 0 && at < 64; at++) await write("/davit/groups/ns/big", `${at}${megabyte}`);
    await expect.poll(() => streams.count).toBe(0);
  });

  it("is cut when it takes nothing for three heartbeats", async () => {
    await start();
    for (let at = 0; at < 32; at++) await write(`/davit/groups/ns/big-${at}`, megabyte);
    await followWithoutReading();
    await clock.advance(20_000);
    expect(streams.count).toBe(1);
    await clock.advance(10_000);
    await expect.poll(() => streams.count).toBe(0);
  });

  it("gets everything, once, when it reads again in time", async () => {
    await start();
    for (let at = 0; at < 32; at++) await write(`/davit/groups/ns/big-${at}`, megabyte);
    const socket = await followWithoutReading();
    await write("/davit/synced", "{}");
    let received = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      received += chunk;
    });
    socket.resume();
    await expect.poll(() => received.includes('"kind":"commit","index":36'), { timeout: 10_000 }).toBe(true);
    expect(received.match(/"kind":"put"/g)).toHaveLength(35);
    expect(received.match(/"kind":"dump"/g)).toHaveLength(1);
  });
});
