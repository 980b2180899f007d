import { once } from "node:events";
import type { Agent } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import { type DavitKeys, startDavitKeys } from "../helpers/keys-servers.ts";
import { agentFor, sendRaw } from "../helpers/raw-request.ts";

// What conformance stories cannot tell: limits, secrets, streams, and how things end.

let keys: DavitKeys;
let agent: Agent;

beforeEach(async () => {
  keys = await startDavitKeys({ maxValueBytes: 100 });
  agent = agentFor();
});
afterEach(async () => {
  agent.destroy();
  await keys.stop();
});

const send = (method: string, target: string, body?: string, type = "application/x-www-form-urlencoded") =>
  sendRaw({
    port: keys.port,
    agent,
    method,
    target,
    body,
    headers: body === undefined ? {} : { "content-type": type },
  });
const answer = async (...args: Parameters<typeof send>) => (await send(...args)).whole();
const set = (path: string, value: string) => keys.store.submit({ kind: "set", path: storePath(path), value });

/** Sends bytes as they are and reads until the server closes. */
async function exchange(request: string): Promise<string> {
  const socket = connect(keys.port, "127.0.0.1");
  socket.write(Buffer.from(request, "latin1"));
  return text(socket);
}

it("a success carries both names of its index headers, and the ids", async () => {
  const { headers } = await answer("PUT", "/v2/keys/a", "value=x");
  const { clusterId } = keys.store.identity;
  expect(Object.fromEntries(headers)).toMatchObject({
    "x-store-index": "1",
    "x-etcd-index": "1",
    "x-raft-index": "2",
    "x-raft-term": "2",
    "x-store-cluster-id": clusterId,
    "x-etcd-cluster-id": clusterId,
    "content-type": "application/json",
  });
});

it("reads leave X-Raft-Index where it is, quorum reads and those of keys with a ttl too", async () => {
  await answer("PUT", "/v2/keys/a", "value=x&ttl=100");
  const raftIndexes: (string | undefined)[] = [];
  for (const target of ["/v2/keys/a", "/v2/keys/a?quorum=true", "/v2/keys/?recursive=true"]) {
    raftIndexes.push((await answer("GET", target)).headers.get("x-raft-index"));
  }
  expect(raftIndexes).toEqual(["2", "2", "2"]);
});

describe("limits", () => {
  const tooLong = { status: 400, body: expect.stringContaining('"errorCode":210') };

  it("a value of the longest length is taken, a longer one is 210", async () => {
    expect(await answer("PUT", "/v2/keys/a", `value=${"x".repeat(100)}`)).toMatchObject({ status: 201 });
    const refused = await answer("PUT", "/v2/keys/a", `value=${"%C3%A9".repeat(51)}`);
    expect(refused.body).toBe(
      '{"errorCode":210,"message":"Invalid POST form","cause":"value is longer than 100 bytes","index":0}\n',
    );
  });

  it("a form of 10 MiB is read, a longer one is 210", async () => {
    const fill = 10 * 1024 * 1024 - "value=x&a=".length;
    expect(await answer("PUT", "/v2/keys/a", `value=x&a=${"x".repeat(fill)}`)).toMatchObject({ status: 201 });
    const refused = await answer("PUT", "/v2/keys/a", `value=x&a=${"x".repeat(fill + 1)}`);
    expect(refused.body).toContain('"cause":"http: POST too large","index":0}');
  });

  it("a longer body that is no form is skipped", async () => {
    const body = "x".repeat(11 * 1024 * 1024);
    expect(await answer("PUT", "/v2/keys/a?value=q", body, "application/json")).toMatchObject({ status: 201 });
  });

  it("a key of more than 32 KiB is 210", async () => {
    expect(await answer("GET", `/v2/keys/${"%61".repeat(32 * 1024 + 1)}`)).toMatchObject(tooLong);
  });
});

describe("too much", () => {
  it("writing is 500 with code 300 beyond the quota, and deleting makes room", async () => {
    const full = await startDavitKeys({ quotaBytes: 20 });
    const ask = async (method: "PUT" | "DELETE", target: string) =>
      (await sendRaw({ port: full.port, agent, method, target })).whole();
    expect((await ask("PUT", "/v2/keys/a?value=0123456789")).status).toBe(201);
    const refused = await ask("PUT", "/v2/keys/b?value=0123456789");
    expect([refused.status, refused.body]).toEqual([
      500,
      '{"errorCode":300,"message":"Raft Internal Error",' +
        '"cause":"the quota of 20 bytes would be exceeded; delete keys or raise it","index":0}\n',
    ]);
    expect((await ask("DELETE", "/v2/keys/a")).status).toBe(200);
    expect((await ask("PUT", "/v2/keys/b?value=0123456789")).status).toBe(201);
    await full.stop();
  });

  it("watching is 503 with code 300 beyond the limit, until another watch ends", async () => {
    const busy = await startDavitKeys({ maxWatchers: 50 });
    const watch = () => sendRaw({ port: busy.port, agent, method: "GET", target: "/v2/keys/a?wait=true" });
    const waiting = await Promise.all(Array.from({ length: 50 }, watch));
    const refused = await (await watch()).whole();
    expect([refused.status, refused.body]).toEqual([
      503,
      '{"errorCode":300,"message":"Raft Internal Error","cause":"50 watch already; try again later","index":0}\n',
    ]);
    expect(refused.headers.get("retry-after")).toBe("5");
    await sendRaw({ port: busy.port, agent, method: "PUT", target: "/v2/keys/a" });
    await Promise.all(waiting.map((answered) => answered.whole()));
    expect((await watch()).response.statusCode).toBe(200);
    await busy.stop();
  });
});

it("bytes that are not UTF-8 become U+FFFD in keys and values", async () => {
  const { body } = await answer("PUT", "/v2/keys/%FF", "value=%FE");
  expect(body).toContain('"key":"/\ufffd","value":"\ufffd"');
});

it("a raw byte above ASCII in the target is 400", async () => {
  const raw = await exchange("GET /v2/keys/\u00e9 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  expect(raw).toMatch(/^HTTP\/1\.1 400 /);
});

it("a form that waits for 100 Continue is asked for and read", async () => {
  const head =
    "PUT /v2/keys/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 7\r\n";
  const answered = await exchange(`${head}Content-Type: application/x-www-form-urlencoded\r\n\r\nvalue=x`);
  expect(answered).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  expect(answered).toContain('"value":"x"');
});

it("HEAD tells the length of the body that GET has", async () => {
  await set("/a", "x");
  const { headers } = await answer("HEAD", "/v2/keys/a");
  const { body } = await answer("GET", "/v2/keys/a");
  expect(headers.get("content-length")).toBe(String(Buffer.byteLength(body)));
});

it("a chunked form is read, and HTTP/1.0 is answered", async () => {
  const head = "PUT /v2/keys/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n";
  const form = "Content-Type: application/x-www-form-urlencoded\r\n\r\n6\r\nvalue=\r\n1\r\nx\r\n0\r\n\r\n";
  expect(await exchange(head + form)).toContain('"value":"x"');
  expect(await exchange("GET /v2/keys/a HTTP/1.0\r\n\r\n")).toContain('"value":"x"');
});

describe("what only davit writes", () => {
  it.each(["PUT /v2/keys/davit", "POST /v2/keys/davit/groups", "DELETE /v2/keys/machines?recursive=true"])(
    "%s is 403 with code 107 and the path",
    async (line) => {
      const [method = "", target = ""] = line.split(" ");
      const { status, body, headers } = await answer(method, target);
      const path = target.replace("/v2/keys", "").replace(/\?.*/, "");
      expect([status, body]).toEqual([
        403,
        `{"errorCode":107,"message":"Root is read only","cause":"${path}","index":0}\n`,
      ]);
      expect(headers.get("x-store-index")).toBe("0");
    },
  );

  it("documents can be read, and templates of Secrets are as if they were not there", async () => {
    await set("/davit/groups/default/web", "{}");
    await set("/davit/_secrets/default/p/abc", "hush");
    expect((await answer("GET", "/v2/keys/davit?recursive=true")).body).toMatch(/web.*"value":"{}"/);
    for (const target of ["/v2/keys?recursive=true", "/v2/keys/davit?recursive=true&quorum=true"]) {
      expect((await answer("GET", target)).body).not.toMatch(/_secrets|hush/);
    }
    for (const target of [
      "/davit/_secrets",
      "/davit/%5Fsecrets/default/p/abc",
      "/davit/_secrets/default?recursive=1",
    ]) {
      const { status, body } = await answer("GET", `/v2/keys${target}`);
      expect([status, body]).toEqual([
        404,
        '{"errorCode":100,"message":"Key not found","cause":"/davit/_secrets","index":2}\n',
      ]);
    }
  });

  it("no watch gets an event of a Secret, live or from the history", async () => {
    await set("/davit/_secrets/a", "hush");
    const targets = [
      "/davit/_secrets/a?wait=true&waitIndex=1&stream=true",
      "/davit/_secrets?wait=true&recursive=true&stream=true",
      "/?wait=true&recursive=true&waitIndex=1&stream=true",
    ];
    const watches = await Promise.all(targets.map((target) => send("GET", `/v2/keys${target}`)));
    await set("/davit/_secrets/a", "hush again");
    await keys.store.submit({ kind: "delete", path: storePath("/davit/_secrets"), recursive: true });
    await set("/seen", "x");
    await keys.http.close();
    const bodies = await Promise.all(watches.map(async (watch) => (await watch.whole()).body));
    expect(bodies.slice(0, 2)).toEqual(["", ""]);
    expect(bodies[2]).toMatch(/^{"action":"set","node":{"key":"\/seen".*}\n$/);
  });
});

describe("a stream", () => {
  it("gets every event in order, each on its line, from waitIndex on", async () => {
    await set("/s", "0");
    const { response } = await send("GET", "/v2/keys/s?wait=true&stream=true&waitIndex=1");
    expect(response.headers["x-store-index"]).toBe("1");
    await Promise.all(Array.from({ length: 300 }, (_, number) => set("/s", String(number + 1))));
    const values: string[] = [];
    let rest = "";
    for await (const chunk of response) {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop() ?? "";
      values.push(...lines.map((line) => JSON.parse(line).node.value));
      if (values.length === 301) break;
    }
    expect(values).toEqual(Array.from({ length: 301 }, (_, number) => String(number)));
  });

  it("that nobody reads is cut off when the history has moved on", async () => {
    const stream = await send("GET", "/v2/keys/s?wait=true&stream=true");
    const value = "x".repeat(1024 * 1024);
    while (keys.store.watcherCount > 0) await set("/s", value);
    await expect(stream.whole()).rejects.toMatchObject({ code: "ECONNRESET" });
  });
});

describe("a watch", () => {
  it("that asks for what is no longer kept is 401 at once", async () => {
    for (let count = 0; count < 1_001; count++) await set("/a", "x");
    const { status, body, headers } = await answer("GET", "/v2/keys/a?wait=true&waitIndex=1&stream=true");
    expect([status, body]).toEqual([
      400,
      '{"errorCode":401,"message":"The event in requested index is outdated and cleared",' +
        '"cause":"the requested history has been cleared [2/1]","index":1001}\n',
    ]);
    expect(headers.get("x-etcd-index")).toBe("1001");
  });

  it("is forgotten when its client goes", async () => {
    const connected = once(keys.http.node, "connection");
    const { response } = await send("GET", "/v2/keys/a?wait=true");
    expect(keys.store.watcherCount).toBe(1);
    const [socket] = await connected;
    const closed = once(socket, "close");
    response.destroy();
    await closed;
    expect(keys.store.watcherCount).toBe(0);
  });

  it("ends with 200 and an empty body when the server closes", async () => {
    const long = await send("GET", "/v2/keys/a?wait=true");
    const stream = await send("GET", "/v2/keys/a?wait=true&stream=true");
    await keys.http.close();
    expect(await long.whole()).toMatchObject({ status: 200, body: "" });
    expect(await stream.whole()).toMatchObject({ status: 200, body: "" });
    expect(keys.store.watcherCount).toBe(0);
  });

  it("ends in the same way when the store stops", async () => {
    const long = await send("GET", "/v2/keys/a?wait=true");
    await keys.store.stop();
    expect(await long.whole()).toMatchObject({ status: 200, body: "" });
  });
});

it("`GET /health` is 503 and writes are 300 when nothing can be written", async () => {
  await keys.store.stop();
  const health = await answer("GET", "/health");
  expect([health.status, health.body]).toEqual([503, '{"health":"false"}\n']);
  const { status, body } = await answer("PUT", "/v2/keys/a", "value=x");
  expect([status, body]).toEqual([
    500,
    '{"errorCode":300,"message":"Raft Internal Error","cause":"Writing the log: it is closed","index":0}\n',
  ]);
  expect(await answer("GET", "/v2/keys/")).toMatchObject({ status: 200 });
});
