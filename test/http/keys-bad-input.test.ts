/** What no client should send to the store, and what the reference has no answer to; see also test/conformance. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keysErrors } from "../../src/http/keys/reply.ts";
import { keysHandler } from "../../src/http/keys/routes.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type DavitKeys, startDavitKeys } from "../helpers/keys-servers.ts";
import { silentLog } from "../helpers/test-store.ts";
import { type ReadAnswer, WireClient } from "../helpers/wire-client.ts";

let listener: DavitKeys;
let client: WireClient;

beforeEach(async () => {
  listener = await startDavitKeys();
  client = new WireClient(listener.port);
});
afterEach(async () => {
  client.destroy();
  await listener.stop();
});

const formType = "Content-Type: application/x-www-form-urlencoded";

function request(line: string, ...headers: readonly string[]): string {
  return [`${line} HTTP/1.1`, "Host: davit", ...headers, "", ""].join("\r\n");
}

function put(target: string, form = "value=x"): string {
  return request(`PUT ${target}`, formType, `Content-Length: ${form.length}`) + form;
}

/** Sends on the connection of the test and reads one answer. */
async function ask(text: string): Promise<ReadAnswer | undefined> {
  client.send(text);
  return (await client.answers(1))[0];
}

/** The process goes on, and so does the store. */
async function expectServing(): Promise<void> {
  const other = new WireClient(listener.port);
  other.send(put("/v2/keys/serving") + request("GET /v2/keys/serving"));
  expect((await other.answers(2)).map(({ status }) => status)).toEqual([expect.any(Number), 200]);
  other.destroy();
}

const refused = (cause: string) => `{"errorCode":210,"message":"Invalid POST form","cause":"${cause}","index":0}\n`;
const tooLongKey = refused("key is longer than 32768 bytes");
const tooDeepKey = refused("key is deeper than 2048 names");

describe("refused with a v2 error", () => {
  it.each([
    { name: "a key of 64 KiB", text: put(`/v2/keys/${"k".repeat(65_536)}`), status: 400, body: tooLongKey },
    { name: "a key of 32 KiB and a byte", text: put(`/v2/keys/${"k".repeat(32_768)}`), status: 400, body: tooLongKey },
    {
      name: "a read of a key of 64 KiB",
      text: request(`GET /v2/keys/${"k".repeat(65_536)}`),
      status: 400,
      body: tooLongKey,
    },
    { name: "a key 10,000 names deep", text: put(`/v2/keys${"/d".repeat(10_000)}`), status: 400, body: tooDeepKey },
    { name: "a key 2,049 names deep", text: put(`/v2/keys${"/d".repeat(2_049)}`), status: 400, body: tooDeepKey },
    {
      name: "a value of 2 MiB",
      text: put("/v2/keys/v", `value=${"v".repeat(2 * 1024 * 1024)}`),
      status: 400,
      body: refused("value is longer than 1048576 bytes"),
    },
    {
      name: "a target of 120,000 bytes",
      text: request(`GET /v2/keys/?${"x".repeat(120_000)}`),
      status: 414,
      body: refused("target too long"),
    },
    {
      name: "a header of 1 MB",
      text: request("GET /v2/keys/", `X: ${"x".repeat(1_000_000)}`),
      status: 431,
      body: refused("headers too large"),
    },
    {
      name: "3,000 headers",
      text: request("GET /v2/keys/", ...Array.from({ length: 3_000 }, () => "X: y")),
      status: 431,
      body: refused("headers too large"),
    },
  ])("$name", async ({ text, status, body }) => {
    const answer = await ask(text);
    expect([answer?.status, answer?.body]).toEqual([status, body]);
    expect(answer?.headers.get("content-type")).toBe("application/json");
    await expectServing();
  });
});

describe("refused in plain text, as what is no request", () => {
  it.each([
    { name: "a method that nobody knows", text: request("FOO /v2/keys/a"), status: 400 },
    { name: "a space in the target", text: request("GET /v2/keys/a b"), status: 400 },
    {
      name: "a length beside chunks",
      text: request("PUT /v2/keys/a", "Content-Length: 3", "Transfer-Encoding: chunked"),
      status: 400,
    },
    { name: "what a TLS client says", text: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", status: 400 },
    {
      name: "a coding of the body that nobody undoes",
      text: `${request("PUT /v2/keys/a", formType, "Transfer-Encoding: gzip, chunked")}7\r\nvalue=x\r\n0\r\n\r\n`,
      status: 501,
    },
  ])("$name", async ({ text, status }) => {
    const answer = await ask(text);
    expect([answer?.status, answer?.headers.get("content-type")]).toEqual([status, "text/plain; charset=utf-8"]);
    expect(listener.store.indexes.storeIndex).toBe(0);
    await expectServing();
  });

  it.each([0x80, 0xa0, 0xc3, 0xe9, 0xff])("a target with the raw byte %i", async (byte) => {
    expect((await ask(request(`GET /v2/keys/a${String.fromCharCode(byte)}`)))?.status).toBe(400);
    await expectServing();
  });
});

it("a key of 32 KiB is taken, read, listed and deleted", async () => {
  const key = `/${"k".repeat(32_767)}`;
  client.send(put(`/v2/keys${key}`) + request(`GET /v2/keys${key}`) + request("GET /v2/keys/"));
  client.send(request(`DELETE /v2/keys${key}`));
  expect((await client.answers(4)).map(({ status }) => status)).toEqual([201, 200, 200, 200]);
});

it("a key 2,048 names deep is taken, read, listed with all above it, and deleted with them", async () => {
  const key = "/d".repeat(2_048);
  client.send(put(`/v2/keys${key}`) + request(`GET /v2/keys${key}`) + request("GET /v2/keys/d?recursive=true"));
  client.send(request("DELETE /v2/keys/d?recursive=true") + request("GET /v2/keys/"));
  const answers = await client.answers(5);
  expect(answers.map(({ status }) => status)).toEqual([201, 200, 200, 200, 200]);
  expect(answers[2]?.body.match(/"key":/g)).toHaveLength(2_048);
  expect(answers[4]?.body).toBe('{"action":"get","node":{"dir":true}}\n');
});

describe("requests behind a watch", () => {
  it("wait, 100 of them", async () => {
    client.send(request("GET /v2/keys/w?wait=true") + request("GET /v2/keys/w").repeat(100));
    await client.head();
    await expectServing();
    expect(client.count).toBe(0);
    const writer = new WireClient(listener.port);
    writer.send(put("/v2/keys/w"));
    expect((await client.answers(101)).map(({ status }) => status)).toEqual(Array.from({ length: 101 }, () => 200));
    writer.destroy();
  });

  it("of which there are more cut the connection, and the watch is forgotten", async () => {
    client.send(request("GET /v2/keys/w?wait=true") + request("GET /v2/keys/w").repeat(101));
    await client.closed();
    await expect.poll(() => listener.store.watcherCount).toBe(0);
    await expectServing();
  });

  it("are nothing to a client that has gone: the watch is forgotten", async () => {
    client.send(request("GET /v2/keys/w?wait=true") + request("GET /v2/keys/w"));
    await client.head();
    client.destroy();
    await expect.poll(() => listener.store.watcherCount).toBe(0);
  });
});

it("what is no request behind a watch ends it", async () => {
  client.send(request("GET /v2/keys/w?wait=true"));
  await client.head();
  client.send("garbage\r\n\r\n");
  await client.closed();
  await expect.poll(() => listener.store.watcherCount).toBe(0);
  await expectServing();
});

describe("with short limits for a request", () => {
  const hasty = { headersTimeoutMs: 100, requestTimeoutMs: 200, connectionCheckMs: 20 };
  let server: HttpServer;
  let port: number;

  beforeEach(async () => {
    const { store } = listener;
    const handler = keysHandler({
      store,
      maxValueBytes: 1024 * 1024,
      clock: systemClock,
      advertiseUrl: () => "http://x:1",
    });
    const answerError = keysErrors(store);
    server = createServer({ log: silentLog, clock: systemClock, answerError, limits: hasty, handler });
    ({ port } = await server.listen({ host: "127.0.0.1", port: 0, option: "--store-address" }));
  });
  afterEach(async () => server.close());

  /** Sends a form of which the end never comes. */
  async function dribble(length: number): Promise<ReadAnswer | undefined> {
    const slow = new WireClient(port);
    slow.send(request("PUT /v2/keys/slow", formType, `Content-Length: ${length}`));
    const timer = setInterval(() => slow.send("x"), 10);
    const [answer] = await slow.answers(1);
    clearInterval(timer);
    await slow.closed();
    return answer;
  }

  it.each([100, 100_000])("a form of %i bytes that never ends is 408", async (length) => {
    const answer = await dribble(length);
    expect([answer?.status, answer?.body]).toEqual([408, refused("request timeout")]);
    expect(listener.store.indexes.storeIndex).toBe(0);
  });

  it("a watch goes on for as long as it takes", async () => {
    const watcher = new WireClient(port);
    watcher.send(request("GET /v2/keys/w?wait=true"));
    await watcher.head();
    // As long as a request may take, at least.
    await dribble(100);
    expect(listener.store.watcherCount).toBe(1);
    const writer = new WireClient(port);
    writer.send(put("/v2/keys/w"));
    expect((await watcher.answers(1))[0]?.status).toBe(200);
    for (const each of [watcher, writer]) each.destroy();
  });
});
