/** Large listings over a socket: what their clients see, and what they leave behind. */

import { once } from "node:events";
import type { Agent, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nextTurn } from "../../src/lib/slices.ts";
import type { SingleCommand } from "../../src/store/command/command.ts";
import { storePath } from "../../src/store/core/node.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type DavitKeys, startDavitKeys } from "../helpers/keys-servers.ts";
import { bodyOf } from "../helpers/listed.ts";
import { agentFor, sendRaw } from "../helpers/raw-request.ts";

let clock: FakeClock;
let keys: DavitKeys;
let agent: Agent;

beforeEach(async () => {
  clock = new FakeClock();
  keys = await startDavitKeys({ clock });
  agent = agentFor();
});
afterEach(async () => {
  agent.destroy();
  await keys.stop();
});

const mebibyte = 1024 * 1024;
const get = (target: string, method = "GET") =>
  sendRaw({ port: keys.port, agent, method, target: `/v2/keys${target}` });
const expected = (path: string, recursive = true) =>
  bodyOf(keys.store.list(storePath(path), { recursive, sorted: true }));

const set = (path: string, value: string): SingleCommand => ({ kind: "set", path: storePath(path), value });

/** More than the buffers between a server and a client that does not read can hold. */
async function fill(directory: string, mebibytes: number): Promise<void> {
  for (let number = 0; number < mebibytes; number++) {
    await keys.store.submit(set(`${directory}/k${100 + number}`, String(number % 10).repeat(mebibyte)));
  }
}

async function fillSmall(count: number): Promise<void> {
  const commands = Array.from({ length: count }, (_, number) =>
    set(`/small/d${number % 3}/k${number}`, "x".repeat(40)),
  );
  await keys.store.submit({ kind: "batch", commands });
}

/** Resolves once a condition holds; the test's own timeout ends a wait in vain. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await nextTurn();
}

/** Asks for a listing and takes nothing of it but its beginning. */
async function askedSlowly(target: string) {
  const socket = connect(keys.port, "127.0.0.1");
  socket.write(`GET /v2/keys${target} HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n`);
  await once(socket, "readable");
  // The expiry sleeps until something is due, and the listing until its client goes on.
  await until(() => clock.sleeping === 2);
  return socket;
}

/** The body of a chunked answer. */
function dechunked(answer: string): string {
  const parts: string[] = [];
  let at = answer.indexOf("\r\n\r\n") + 4;
  for (let size = 1; size > 0; ) {
    const end = answer.indexOf("\r\n", at);
    size = Number.parseInt(answer.slice(at, end), 16);
    parts.push(answer.slice(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
  return parts.join("");
}

it.each([0, 1, 500, 540, 560, 580, 600, 6_000])("the body of %i keys is the same, in pieces or not", async (count) => {
  await keys.store.submit({ kind: "set", path: storePath("/small"), value: "", dir: true });
  if (count > 0) await fillSmall(count);
  const answer = await (await get("/small?recursive=true&sorted=true")).whole();
  expect(answer.body === expected("/small")).toBe(true);
  const isWhole = answer.body.length < 64 * 1024;
  const length = isWhole ? String(Buffer.byteLength(answer.body)) : undefined;
  expect(answer.headers.get("content-length")).toBe(length);
  expect(answer.headers.get("transfer-encoding")).toBe(isWhole ? undefined : "chunked");
  expect(keys.store.walkCount).toBe(0);
});

it("a listing in pieces has the headers of any read, and its connection is used again", async () => {
  await fillSmall(4_000);
  const answer = await (await get("/small?recursive=true")).whole();
  const small = await (await get("/small/d0/k0")).whole();
  const own = new Set(["content-length", "transfer-encoding", "date"]);
  const headersOf = ({ headers }: typeof answer) => [...headers].filter(([name]) => !own.has(name));
  expect(headersOf(answer)).toEqual(headersOf(small));
  expect(answer.headers.get("x-etcd-index")).toBe("4000");
});

it("HEAD of a large listing has no body and tells no length, that of a small one does", async () => {
  await fillSmall(4_000);
  const large = await (await get("/small?recursive=true", "HEAD")).whole();
  expect([large.status, large.body, large.headers.get("content-length")]).toEqual([200, "", undefined]);
  expect(large.headers.get("transfer-encoding")).toBeUndefined();
  const small = await (await get("/small", "HEAD")).whole();
  expect([small.body, small.headers.get("content-length")]).toEqual(["", String(expected("/small", false).length)]);
  expect(keys.store.walkCount).toBe(0);
});

describe("a slow reader", () => {
  it("gets the listing as it was when it began, whatever was written and deleted meanwhile", async () => {
    await fill("/l/a", 12);
    await fill("/l/b", 12);
    const body = expected("/l");
    const socket = await askedSlowly("/l?recursive=true&sorted=true");
    await keys.store.submit(set("/l/b/k100", "new"));
    await keys.store.submit(set("/l/b/k999", "new"));
    await keys.store.submit({ kind: "delete", path: storePath("/l"), recursive: true });
    await keys.store.submit(set("/l/a/new", "new"));
    expect(keys.store.walkCount).toBe(1);
    expect(dechunked(await text(socket)) === body).toBe(true);
    expect(keys.store.walkCount).toBe(0);
  });

  it("does not keep others waiting, and no more is made for it than it takes", async () => {
    await fill("/l", 24);
    let waiting: ServerResponse | undefined;
    keys.http.node.once("request", (_request, response) => {
      waiting = response;
    });
    const socket = await askedSlowly("/l");
    expect((await (await get("/l/k100")).whole()).status).toBe(200);
    expect(clock.sleeping).toBe(2);
    // A piece is one of these keys, and 1 MiB.
    expect(waiting?.writableLength).toBeLessThan(1.1 * mebibyte);
    socket.destroy();
    await until(() => keys.store.walkCount === 0);
    expect(clock.sleeping).toBe(1);
  });

  it("that takes nothing for 30 s is cut", async () => {
    await fill("/l", 24);
    const socket = await askedSlowly("/l");
    await clock.advance(29_999);
    expect(keys.store.walkCount).toBe(1);
    await clock.advance(1);
    expect(keys.store.walkCount).toBe(0);
    expect(await text(socket)).not.toMatch(/\r\n0\r\n\r\n$/);
  });

  it("of a tree of which more than 64 MiB changed is cut", async () => {
    await fill("/l/a", 12);
    await fill("/l/b", 40);
    const socket = await askedSlowly("/l?recursive=true&sorted=true");
    for (let number = 0; number < 40; number++) await keys.store.submit(set(`/l/b/k${100 + number}`, ""));
    expect(keys.store.walkCount).toBe(0);
    expect(await text(socket)).not.toMatch(/\r\n0\r\n\r\n$/);
  }, 60_000);
});

describe("a listing that was asked for before", () => {
  it.each([1, 1_000, 6_000])("of %i keys has the same answer, whose headers are of its own moment", async (count) => {
    await fillSmall(count);
    const own = ["date", "x-store-index", "x-etcd-index", "x-raft-index"];
    const comparable = ({ body, headers, ...rest }: Awaited<ReturnType<typeof fetched>>) => {
      return { ...rest, body, headers: [...headers].filter(([name]) => !own.includes(name)) };
    };
    const fetched = async (method = "GET") => (await get("/small?recursive=true", method)).whole();
    const [head, first] = [await fetched("HEAD"), await fetched()];
    await keys.store.submit(set("/other", ""));
    const [again, headAgain] = [await fetched(), await fetched("HEAD")];
    expect(comparable(again)).toEqual(comparable(first));
    expect(comparable(headAgain)).toEqual(comparable(head));
    expect([first, again, headAgain].map(({ headers }) => Number(headers.get("x-etcd-index")))).toEqual([
      ...[count, count + 1, count + 1],
    ]);
  });

  it("goes in the same chunks to a slow reader, whatever changes meanwhile", async () => {
    await fill("/l", 7);
    const request = "GET /v2/keys/l HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n";
    const chunksOf = (answer: string) => answer.slice(answer.indexOf("\r\n\r\n"));
    const first = connect(keys.port, "127.0.0.1");
    first.write(request);
    const expectedChunks = chunksOf(await text(first));
    let served: Socket | undefined;
    keys.http.node.once("connection", (socket) => {
      // As if the client took nothing.
      socket.cork();
      served = socket;
    });
    const slow = connect(keys.port, "127.0.0.1");
    slow.write(request);
    await until(() => clock.sleeping === 2);
    await keys.store.submit({ kind: "delete", path: storePath("/l"), recursive: true });
    await keys.store.submit(set("/l/new", ""));
    expect((await (await get("/l")).whole()).body).toBe(expected("/l"));
    served?.uncork();
    expect(chunksOf(await text(slow)) === expectedChunks).toBe(true);
  });

  it("shows nothing that is hidden", async () => {
    await keys.store.submit(set("/davit/_secrets/ns/p/hash", "secret"));
    await keys.store.submit(set("/davit/groups/ns/g", "{}"));
    for (const target of ["/davit?recursive=true", "/?recursive=true"]) {
      const bodies = [await (await get(target)).whole(), await (await get(target)).whole()].map(({ body }) => body);
      expect(bodies[1]).toBe(bodies[0]);
      expect(bodies[1]).toContain("/davit/groups/ns/g");
      expect(bodies[1]).not.toContain("secret");
    }
    for (const target of ["/davit/_secrets?recursive=true", "/davit/_secrets/ns?recursive=true"]) {
      expect((await (await get(target)).whole()).status).toBe(404);
    }
  });
});

it("a client that goes away ends its listing", async () => {
  await fill("/l", 24);
  const socket = await askedSlowly("/l");
  expect(keys.store.walkCount).toBe(1);
  socket.destroy();
  await until(() => keys.store.walkCount === 0);
  expect((await (await get("/l/k100")).whole()).status).toBe(200);
});

it("listings beyond sixteen wait for their turn, and see what was written meanwhile", async () => {
  await fill("/l", 24);
  const slow = [];
  for (let number = 0; number < 16; number++) {
    const socket = connect(keys.port, "127.0.0.1");
    socket.write("GET /v2/keys/l HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n");
    slow.push(socket);
    await until(() => clock.sleeping === number + 2);
  }
  const late = [get("/l?sorted=true"), get("/l?sorted=true"), get("/l/none")];
  expect((await (await late[2])?.whole())?.status).toBe(404);
  expect(keys.store.walkCount).toBe(16);
  await keys.store.submit(set("/l/k999", "late"));
  const body = expected("/l");
  slow[0]?.destroy();
  for (const each of late.slice(0, 2)) expect((await (await each).whole()).body === body).toBe(true);
  for (const socket of slow) socket.destroy();
  await until(() => keys.store.walkCount === 0);
  expect(clock.sleeping).toBe(1);
});

it("one of sixteen that take nothing gives up its place to one that waits, after a second", async () => {
  await fill("/l", 24);
  const slow = [];
  for (let number = 0; number < 16; number++) {
    const socket = connect(keys.port, "127.0.0.1");
    socket.write("GET /v2/keys/l HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n");
    slow.push(socket);
    await until(() => clock.sleeping === number + 2);
  }
  const late = get("/l?sorted=true");
  // It is asked later than what is answered at once.
  expect((await (await get("/l/none")).whole()).status).toBe(404);
  await clock.advance(1_000);
  expect((await (await late).whole()).body === expected("/l")).toBe(true);
  expect(keys.store.walkCount).toBe(15);
  for (const socket of slow) socket.destroy();
  await until(() => keys.store.walkCount === 0);
});

it("a listing that waited is answered by what is there when its turn comes", async () => {
  await fill("/l", 24);
  const slow = [];
  for (let number = 0; number < 16; number++) {
    const socket = connect(keys.port, "127.0.0.1");
    socket.write("GET /v2/keys/l HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n");
    slow.push(socket);
    await until(() => clock.sleeping === number + 2);
  }
  const [gone, small] = [get("/l"), get("/l")];
  // Both wait once the next request on another connection is answered.
  for (let request = 0; request < 2; request++) await (await get("/none")).whole();
  await keys.store.submit({ kind: "delete", path: storePath("/l"), recursive: true });
  slow[0]?.destroy();
  expect((await (await gone).whole()).status).toBe(404);
  expect((await (await small).whole()).body).toContain('"errorCode":100');
  for (const socket of slow) socket.destroy();
  await until(() => keys.store.walkCount === 0);
});
