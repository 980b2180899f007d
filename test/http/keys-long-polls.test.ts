import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { storePath } from "../../src/store/core/node.ts";
import { type DavitKeys, startDavitKeys } from "../helpers/keys-servers.ts";

let keys: DavitKeys;

beforeEach(async () => {
  keys = await startDavitKeys();
});
afterEach(() => keys.stop());

const set = (value: string) => keys.store.submit({ kind: "set", path: storePath("/a"), value });
const poll = "GET /v2/keys/a?wait=true HTTP/1.1\r\nHost: x\r\n\r\n";
const lastRead = "GET /v2/keys/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

/** Opens connections that each send these requests, and waits until all of them watch. */
async function watching(count: number, requests: string): Promise<readonly Promise<string>[]> {
  const answers = Array.from({ length: count }, () => {
    const socket = connect(keys.port, "127.0.0.1");
    socket.write(requests);
    return text(socket);
  });
  await expect.poll(() => keys.store.watcherCount).toBe(count);
  return answers;
}

/** Bodies of what a connection answered, chunks as they were sent. */
function bodiesOf(answers: string): readonly string[] {
  return answers.split(/HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)+\r\n/).slice(1);
}

it("every one of 300 connections gets the event whole, and then the answers to its further requests, in order", async () => {
  const answers = await watching(300, `${poll}${lastRead.replace("Connection: close\r\n", "")}${lastRead}`);
  await set("é");
  const event = '{"action":"set","node":{"key":"/a","value":"é","modifiedIndex":1,"createdIndex":1}}\n';
  const read = '{"action":"get","node":{"key":"/a","value":"é","modifiedIndex":1,"createdIndex":1}}\n';
  const chunked = `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n0\r\n\r\n`;
  const found = new Set((await Promise.all(answers)).map((each) => bodiesOf(each).join("|")));
  expect([...found]).toEqual([`${chunked}|${read}|${read}`]);
});

it("a client that polls again on its connection sees every event once, while 300 others watch", async () => {
  const others = await watching(300, poll.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
  const socket = connect(keys.port, "127.0.0.1").setEncoding("utf8");
  const seen: string[] = [];
  const ask = (index: number) => socket.write(poll.replace("wait=true", `wait=true&waitIndex=${index}`));
  socket.on("data", (data: string) => {
    for (const [, value = ""] of data.matchAll(/"node":\{"key":"\/a","value":"(\d+)"/g)) {
      seen.push(value);
      ask(seen.length + 1);
    }
  });
  ask(1);
  await expect.poll(() => keys.store.watcherCount).toBe(301);
  for (let number = 0; number < 100; number++) await set(String(number));
  await expect.poll(() => seen.length).toBe(100);
  expect(seen).toEqual(Array.from({ length: 100 }, (_, number) => String(number)));
  socket.destroy();
  expect((await Promise.all(others)).filter((each) => each.includes('"value":"0"')).length).toBe(300);
});

it("a client of HTTP/1.0 gets no chunks", async () => {
  const [answer] = await watching(1, "GET /v2/keys/a?wait=true HTTP/1.0\r\n\r\n");
  await set("x");
  expect(await answer).toMatch(/\r\n\r\n\{"action":"set",.*\}\n$/);
});

it("more requests than may wait follow a long poll at once, and none is lost", async () => {
  const further = 300;
  const socket = connect(keys.port, "127.0.0.1").setEncoding("utf8");
  let received = "";
  socket.on("data", (data: string) => {
    if (!received.includes('"action":"set"') && (received + data).includes('"action":"set"')) {
      socket.write(lastRead.replace("Connection: close\r\n", "").repeat(further - 1) + lastRead);
    }
    received += data;
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const others = await watching(300, poll.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
  socket.write(poll);
  await expect.poll(() => keys.store.watcherCount).toBe(301);
  await set("x");
  await closed;
  expect(received.match(/"action":"get"/g)).toHaveLength(further);
  await Promise.all(others);
});

it("the server's end waits for no answer that is written, and cuts none", async () => {
  const answers = await watching(200, poll);
  await set("x");
  await keys.http.close();
  const found = await Promise.all(answers);
  expect(found.filter((each) => each.endsWith("\r\n0\r\n\r\n"))).toHaveLength(200);
});
