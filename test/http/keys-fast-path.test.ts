import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type DavitKeys, startDavitKeys } from "../helpers/keys-servers.ts";
import { readToEnd } from "./wire.ts";

/** With the fast path and without it; each has a store of its own. */
let fast: DavitKeys;
let routes: DavitKeys;

beforeEach(async () => {
  const options = { maxValueBytes: 1_000, clock: new FakeClock() };
  fast = await startDavitKeys(options);
  routes = await startDavitKeys({ ...options, hasFastPath: false });
  for (const { store } of [fast, routes]) {
    await store.submit({ kind: "set", path: storePath("/a"), value: "é" });
    await store.submit({ kind: "set", path: storePath("/d/b"), value: "x" });
    await store.submit({ kind: "set", path: storePath("/davit/_secrets/s"), value: "x" });
  }
});
afterEach(async () => {
  await fast.stop();
  await routes.stop();
});

/** Sends bytes on a connection of its own; what differs from server to server is taken from the answer. */
async function ask({ port }: DavitKeys, request: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(request, "latin1");
  const answer = (await readToEnd(socket)).toString("latin1");
  return answer.replaceAll(/^(Date|X-(?:Store|Etcd)-Cluster-Id): .*\r\n/gm, "$1\r\n");
}

const get = (target: string, ...headers: readonly string[]) =>
  ["GET", target, "HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n"].join(" ") + lines(headers);
const put = (target: string, form: string, ...headers: readonly string[]) =>
  `PUT ${target} HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n` +
  `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n${lines(headers)}${form}`;
const lines = (headers: readonly string[]) => `${headers.map((line) => `${line}\r\n`).join("")}\r\n`;

describe("answers with the same bytes as the routes", () => {
  it.each([
    { request: get("/v2/keys/a") },
    { request: get("/v2/keys/a?quorum=false&recursive=false&sorted=false") },
    { request: get("/v2/keys/a?wait=true&quorum=true") },
    { request: "GET /v2/keys/a HTTP/1.0\r\n\r\n" },
    { request: put("/v2/keys/a", "value=y") },
    { request: put("/v2/keys/new", "value=y") },
    { request: put("/v2/keys/new/deep", "value=y&ttl=100") },
    { request: put("/v2/keys/new?prevExist=false", "value=%C3%A9+%ff") },
    { request: put("/v2/keys/a", "value=y&prevValue=%C3%A9") },
    { request: put("/v2/keys/a", "value=y&prevValue=z") },
    { request: put("/v2/keys/a", "value=y&prevIndex=1") },
    { request: put("/v2/keys/a", "dir=true&prevExist=true&value=") },
    { request: put("/v2/keys/a", "value=y&noValueOnSuccess=true") },
    { request: put("/v2/keys/a", "") },
    { request: put("/v2/keys/a", "value=%z") },
    { request: put("/v2/keys/a", "value=1&ttl=x") },
    { request: put("/v2/keys/a?value=query", "value=form") },
    { request: put("/v2/keys/a?wait=true", "value=y") },
    { request: put("/v2/keys/a/below", "value=y") },
    { request: put("/v2/keys/d", "value=y") },
    { request: put("/v2/keys/davit/x", "value=y") },
    { request: put("/v2/keys/a", `value=${"x".repeat(1_001)}`) },
    { request: put("/v2/keys/a", "value=y", "Expect: 100-continue") },
    { request: put("/v2/keys/d", "value=y&ttl=100").replace("PUT", "POST") },
    { request: put("/v2/keys/a", "value=y").replace("PUT", "POST") },
    { request: put("/v2/keys/new", "dir=true").replace("PUT", "POST") },
  ])("$request", async ({ request }) => {
    expect(await ask(fast, request)).toBe(await ask(routes, request));
    expect(fast.fastAnswers).toHaveLength(1);
    expect([...fast.store.dump()]).toEqual([...routes.store.dump()]);
    expect(Object.fromEntries(fast.store.counts)).toEqual(Object.fromEntries(routes.store.counts));
  });
});

describe("leaves to the routes", () => {
  it.each([
    { what: "a directory", request: get("/v2/keys/d") },
    { what: "the root", request: get("/v2/keys/") },
    { what: "a key that is missing", request: get("/v2/keys/none") },
    { what: "a secret", request: get("/v2/keys/davit/_secrets/s") },
    { what: "a mistake in the query", request: get("/v2/keys/a?recursive=maybe") },
    { what: "a bad escape in the query", request: get("/v2/keys/a?%") },
    { what: "an escape in the path", request: get("/v2/keys/%61") },
    { what: "a doubled slash", request: get("/v2/keys//a") },
    { what: "a dot", request: get("/v2/keys/./a") },
    { what: "two dots", request: get("/v2/keys/d/../a") },
    { what: "two dots at the end", request: get("/v2/keys/a/..") },
    { what: "a trailing slash", request: get("/v2/keys/a/") },
    { what: "an absolute target", request: get("http://davit/v2/keys/a") },
    { what: "a neighbour of the prefix", request: get("/v2/keysa") },
    { what: "a long target", request: get(`/v2/keys/${"a".repeat(3_000)}`) },
    { what: "no host", request: "GET /v2/keys/a HTTP/1.1\r\nConnection: close\r\n\r\n" },
    { what: "HEAD", request: "HEAD /v2/keys/a HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n" },
    { what: "DELETE", request: put("/v2/keys/a", "").replace("PUT", "DELETE") },
    { what: "a large form", request: put("/v2/keys/a", `value=${"x".repeat(20_000)}`) },
    { what: "a form of another type", request: put("/v2/keys/a", "value=y").replace("x-www-form-urlencoded", "json") },
    { what: "a charset", request: put("/v2/keys/a", "value=y").replace("urlencoded", "urlencoded; charset=utf-8") },
    {
      what: "a form in chunks",
      request: put("/v2/keys/a", "7\r\nvalue=y\r\n0\r\n\r\n").replace(
        /Content-Length: \d+/,
        "Transfer-Encoding: chunked",
      ),
    },
  ])("$what", async ({ request }) => {
    expect(await ask(fast, request)).toBe(await ask(routes, request));
    expect(fast.fastAnswers).toEqual([]);
    expect([...fast.store.dump()]).toEqual([...routes.store.dump()]);
    expect(Object.fromEntries(fast.store.counts)).toEqual(Object.fromEntries(routes.store.counts));
  });
});

it("a form may come in pieces, and what follows it on the connection is answered behind it", async () => {
  const socket = connect(fast.port, "127.0.0.1");
  const answers = readToEnd(socket);
  const [head = "", form = ""] = put("/v2/keys/a", "value=one").replace("Connection: close\r\n", "").split("\r\n\r\n");
  socket.write(`${head}\r\n\r\n${form.slice(0, 3)}`);
  socket.write(`${form.slice(3)}${get("/v2/keys/a")}`);
  const bodies = (await answers).toString().match(/^\{"action.*$/gm) ?? [];
  expect(bodies.map((body) => JSON.parse(body).action)).toEqual(["set", "get"]);
  expect(await ask(fast, get("/v2/keys/a"))).toContain('"value":"one"');
});

it("a client that goes away before the end of its form has written nothing", async () => {
  const socket = connect(fast.port, "127.0.0.1");
  const request = put("/v2/keys/gone", "value=y");
  await new Promise<void>((resolve) => socket.write(request.slice(0, -1), () => resolve()));
  socket.destroy();
  expect(await ask(fast, get("/v2/keys/gone"))).toMatch(/^HTTP\/1\.1 404 /);
});

it("a refused disk is told as the routes tell it", async () => {
  await fast.store.stop();
  await routes.store.stop();
  const request = put("/v2/keys/a", "value=y");
  expect(await ask(fast, request)).toBe(await ask(routes, request));
  expect(await ask(fast, request)).toContain('"errorCode":300');
});
