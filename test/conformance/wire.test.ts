/** What needs bytes of its own: requests that follow each other closely, end early, or are hardly any. Both servers alike. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDavitKeys, startEtcd, type TestServer } from "../helpers/keys-servers.ts";
import { missing } from "../helpers/requirements.ts";
import { type ReadAnswer, WireClient } from "../helpers/wire-client.ts";

const servers = [
  { server: "davit", start: () => startDavitKeys(), isMissing: false },
  { server: "etcd", start: () => startEtcd(), isMissing: missing("etcd") },
];

const formType = "Content-Type: application/x-www-form-urlencoded\r\n";

function request(line: string, ...headers: readonly string[]): string {
  return [`${line} HTTP/1.1`, "Host: localhost", ...headers, "", ""].join("\r\n");
}

function put(target: string, form: string, ...headers: readonly string[]): string {
  const length = `Content-Length: ${Buffer.byteLength(form, "latin1")}`;
  return request(`PUT ${target}`, formType.trim(), length, ...headers) + form;
}

const closing = "Connection: close";
const goodBye = request("GET /version", closing);
const version = '200 {"etcdserver":"3.4.23","etcdcluster":"3.4.0"}';

/** One answer as a line; indexes are told by how they compare, since each server counts from where it stands. */
function lineOf({ status, body }: ReadAnswer): string {
  const text = body.trimEnd().replaceAll(/"(modifiedIndex|createdIndex|index)":(?!0\b)\d+/g, '"$1":@');
  return `${status} ${text}`.trimEnd();
}

const refusedForm = (cause: string) =>
  `400 {"errorCode":210,"message":"Invalid POST form","cause":"${cause}","index":0}`;
const missingKey = (key: string) => `404 {"errorCode":100,"message":"Key not found","cause":"${key}","index":@}`;
const nodeOf = (key: string, value: string) => `{"key":"${key}","value":"${value}","modifiedIndex":@,"createdIndex":@}`;
const setNode = (key: string, value: string) => `201 {"action":"set","node":${nodeOf(key, value)}}`;

interface WireCase {
  readonly name: string;
  readonly sent: string;
  /** Nothing more will be sent: the client says so. */
  readonly isCut?: true;
  /** Of the plain text of other answers only the status is compared. */
  readonly answered: readonly string[];
}

const cases: readonly WireCase[] = [
  {
    name: "requests of one connection are answered in order, and none overtakes a write",
    sent:
      put("/v2/keys/p", "value=1") +
      request("GET /v2/keys/p") +
      request("PUT /v2/keys/p?value=2&prevValue=1&noValueOnSuccess=true") +
      request("GET /v2/keys/p?wait=x") +
      request("GET /v2/keys/p?recursive=true") +
      request("DELETE /v2/keys/p?prevValue=1") +
      request("PATCH /v2/keys/p") +
      request("GET /nowhere", closing),
    answered: [
      setNode("/p", "1"),
      `200 {"action":"get","node":${nodeOf("/p", "1")}}`,
      '200 {"action":"compareAndSwap"}',
      '400 {"errorCode":209,"message":"Invalid field","cause":"invalid value for \\"wait\\"","index":0}',
      `200 {"action":"get","node":${nodeOf("/p", "2")}}`,
      '412 {"errorCode":101,"message":"Compare failed","cause":"[1 != 2]","index":@}',
      "405 Method Not Allowed",
      "404 404 page not found",
    ],
  },
  {
    name: "a watch whose event is there stands in the middle of others",
    sent: put("/v2/keys/r", "value=1") + request("GET /v2/keys/r?wait=true&waitIndex=1") + goodBye,
    answered: [setNode("/r", "1"), setNode("/r", "1").replace("201", "200"), version],
  },
  {
    name: "a form that ends before its length is refused, and nothing is stored",
    sent: `${request("PUT /v2/keys/cut", formType.trim(), "Content-Length: 20")}value=x`,
    isCut: true,
    answered: [refusedForm("unexpected EOF")],
  },
  {
    name: "a form whose chunks end in the middle is refused",
    sent: `${request("PUT /v2/keys/cut", formType.trim(), "Transfer-Encoding: chunked")}7\r\nvalue=x\r\n5\r\nab`,
    isCut: true,
    answered: [refusedForm("unexpected EOF")],
  },
  {
    name: "a form with a chunk that has no length is refused",
    sent: `${request("PUT /v2/keys/cut", formType.trim(), "Transfer-Encoding: chunked")}zz\r\nvalue=x\r\n0\r\n\r\n`,
    answered: [refusedForm("invalid byte in chunk length")],
  },
  { name: "so that key was never there", sent: request("GET /v2/keys/cut", closing), answered: [missingKey("/cut")] },
  {
    name: "a chunked form may have extensions and trailers",
    sent: `${request("PUT /v2/keys/ch", closing, formType.trim(), "Transfer-Encoding: chunked")}3;a=b\r\nval\r\n4\r\nue=x\r\n0\r\nX-T: 1\r\n\r\n`,
    answered: [setNode("/ch", "x")],
  },
  {
    name: "a write is answered although what follows it is no request",
    sent: `${put("/v2/keys/g", "value=x")}garbage\r\n\r\n`,
    answered: [setNode("/g", "x"), "400"],
  },
  {
    name: "a length that swallows the next request leaves the rest of it, which is none",
    sent: `${request("PUT /v2/keys/s", formType.trim(), "Content-Length: 20")}value=x${request("GET /v2/keys/s")}`,
    answered: [setNode("/s", "xGET /v2/keys/"), "400"],
  },
  {
    name: "what follows the last request of a connection is not looked at",
    sent: request("GET /v2/keys/last", closing) + put("/v2/keys/last", "value=x"),
    answered: [missingKey("/last")],
  },
  { name: "nor done", sent: request("GET /v2/keys/last", closing), answered: [missingKey("/last")] },
  { name: "HTTP/1.1 needs a Host", sent: "GET /version HTTP/1.1\r\nConnection: close\r\n\r\n", answered: ["400"] },
  { name: "HTTP/1.0 needs none", sent: "GET /version HTTP/1.0\r\n\r\n", answered: [version] },
  {
    name: "HTTP/1.0 writes, and may keep its connection",
    sent:
      `PUT /v2/keys/ten HTTP/1.0\r\nConnection: keep-alive\r\n${formType}Content-Length: 7\r\n\r\nvalue=x` +
      "GET /v2/keys/ten HTTP/1.0\r\n\r\n",
    answered: [setNode("/ten", "x"), `200 {"action":"get","node":${nodeOf("/ten", "x")}}`],
  },
  {
    name: "HTTP/1.0 watches",
    sent: "GET /v2/keys/ten?wait=true&waitIndex=1 HTTP/1.0\r\n\r\n",
    answered: [setNode("/ten", "x").replace("201", "200")],
  },
  {
    name: "two lengths are none",
    sent: `${request("PUT /v2/keys/l", formType.trim(), "Content-Length: 7", "Content-Length: 8")}value=x`,
    answered: ["400"],
  },
  {
    name: "a length below 0 is none",
    sent: `${request("PUT /v2/keys/l", formType.trim(), "Content-Length: -1")}value=x`,
    answered: ["400"],
  },
  { name: "half a head is refused", sent: "GET /v2/keys/a HTTP/1.1\r\nHos", isCut: true, answered: ["400"] },
  { name: "a NUL in a header is refused", sent: request("GET /version", "X: a\0b"), answered: ["400"] },
  {
    name: "a form of 50,000 pairs is read",
    sent: put("/v2/keys/many", `${"a=1&".repeat(50_000)}value=x`, closing),
    answered: [setNode("/many", "x")],
  },
  {
    name: "a form without any is empty",
    sent: put("/v2/keys/none", "&&&&=&", closing),
    answered: [setNode("/none", "")],
  },
  {
    name: "raw bytes in a form are taken as they are",
    sent: put("/v2/keys/raw", "value=\xc3\xa9\x00\x01\x7fa b\r\n", closing),
    answered: [setNode("/raw", "é\\u0000\\u0001\x7fa b\\r\\n")],
  },
  {
    name: "the body of a GET is not looked at, however bad",
    sent: put("/v2/keys/none", "%zz;", closing).replace("PUT", "GET"),
    answered: [`200 {"action":"get","node":${nodeOf("/none", "")}}`],
  },
  {
    name: "a fragment is a part of the key",
    sent: request("GET /v2/keys/f#x", closing),
    answered: [missingKey("/f#x")],
  },
  {
    name: "headers that ask for more than the API has are passed over",
    sent: request(
      "GET /v2/keys/u",
      "Connection: close, Upgrade",
      "Upgrade: h2c",
      "Range: bytes=0-1",
      "If-None-Match: *",
    ),
    answered: [missingKey("/u")],
  },
  { name: "OPTIONS may ask for everything", sent: request("OPTIONS *", closing), answered: ["200"] },
];

describe.each(servers)("$server", ({ start, isMissing }) => {
  let running: TestServer;

  beforeAll(async () => {
    if (!isMissing) running = await start();
  });
  afterAll(async () => running?.stop());

  async function exchange({ sent, isCut }: Pick<WireCase, "sent" | "isCut">, count: number): Promise<string[]> {
    const client = new WireClient(running.port);
    client.send(sent);
    if (isCut) client.end();
    const answers = await client.answers(count);
    client.destroy();
    return answers.map(lineOf);
  }

  it.skipIf(isMissing).each(cases)("$name", async ({ answered, ...sent }) => {
    const lines = await exchange(sent, answered.length);
    expect(lines.map((line, at) => (answered[at] === "400" ? line.slice(0, 3) : line))).toEqual(answered);
    expect(await exchange({ sent: goodBye }, 1)).toEqual([version]);
  });

  it.skipIf(isMissing)("a watch that waits holds up what was asked behind it", async () => {
    const [watcher, writer] = [new WireClient(running.port), new WireClient(running.port)];
    watcher.send(request("GET /v2/keys/w?wait=true") + request("GET /v2/keys/w", closing));
    await watcher.head();
    writer.send(put("/v2/keys/w", "value=1", closing));
    await writer.closed();
    expect((await watcher.answers(2)).map(lineOf)).toEqual([
      setNode("/w", "1").replace("201", "200"),
      `200 {"action":"get","node":${nodeOf("/w", "1")}}`,
    ]);
  });

  it.skipIf(isMissing)("a stream tells every change in order, deletes too, and nothing that is hidden", async () => {
    const [stream, writer] = [new WireClient(running.port), new WireClient(running.port)];
    stream.send(request("GET /v2/keys/st?wait=true&stream=true&recursive=true"));
    await stream.head();
    const burst = Array.from({ length: 80 }, (_, number) => put("/v2/keys/st/a", `value=${number}`)).join("");
    writer.send(burst + request("DELETE /v2/keys/st/a") + put("/v2/keys/st/_h/x", "value=x"));
    writer.send(request("DELETE /v2/keys/st/_h?recursive=true") + put("/v2/keys/st/b", "value=last"));
    expect((await writer.answers(84)).map(({ status }) => status).filter((status) => status >= 300)).toEqual([]);
    const nodes = (await stream.lines(82)).map((line) => JSON.parse(line).node);
    const values = Array.from({ length: 80 }, (_, number) => String(number));
    expect(nodes.map(({ value }) => value)).toEqual([...values, undefined, "last"]);
    for (const client of [stream, writer]) client.destroy();
  });

  it.skipIf(isMissing)("all who watch a key get its event", async () => {
    const watchers = Array.from({ length: 50 }, () => new WireClient(running.port));
    for (const watcher of watchers) watcher.send(request("GET /v2/keys/many-watch?wait=true", closing));
    await Promise.all(watchers.map((watcher) => watcher.head()));
    await exchange({ sent: put("/v2/keys/many-watch", "value=x", closing) }, 1);
    const answers = await Promise.all(watchers.map((watcher) => watcher.answers(1)));
    const told = setNode("/many-watch", "x").replace("201", "200");
    expect(answers.flat().map(lineOf)).toEqual(Array.from({ length: 50 }, () => told));
  });

  const everyByte = Array.from({ length: 256 }, (_, byte) => byte);

  it.skipIf(isMissing)(
    "a key may have every byte by its escape; those that are not UTF-8 are read as U+FFFD",
    async () => {
      const client = new WireClient(running.port);
      const hex = (byte: number) => byte.toString(16).padStart(2, "0");
      for (const byte of everyByte) client.send(put(`/v2/keys/every-${byte}-%${hex(byte)}x`, `value=%${hex(byte)}`));
      client.send(goodBye);
      const answers = await client.answers(257);
      const nodes = answers.slice(0, 256).map(({ status, body }) => [status, JSON.parse(body).node]);
      expect(nodes.map(([status, { key, value }]) => [status, key, value])).toEqual(
        everyByte.map((byte) => {
          const text = byte < 0x80 ? String.fromCharCode(byte) : "\ufffd";
          return [201, `/every-${byte}-${text}x`, text];
        }),
      );
    },
  );

  const printable = everyByte.filter((byte) => byte > 0x20 && byte < 0x7f).map((byte) => String.fromCharCode(byte));

  it.skipIf(isMissing)("a key may have every printable byte as it is, except those that have a meaning", async () => {
    const text = printable.filter((byte) => !"?%/".includes(byte)).join("");
    const key = JSON.stringify(`/${text}`).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026");
    const client = new WireClient(running.port);
    client.send(put(`/v2/keys/${text}`, "value=x") + request(`GET /v2/keys/${text}`) + goodBye);
    expect((await client.answers(3)).map(lineOf)).toEqual([
      setNode(key.slice(1, -1), "x"),
      `200 {"action":"get","node":${nodeOf(key.slice(1, -1), "x")}}`,
      version,
    ]);
  });

  const controls = everyByte.filter((byte) => byte < 0x20 || byte === 0x7f).map((byte) => [byte]);

  it.skipIf(isMissing).each(controls)("a target with the control byte %i is no request", async (byte) => {
    const client = new WireClient(running.port);
    client.send(`GET /v2/keys/a${String.fromCharCode(byte)}b HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await client.closed();
    expect((await client.answers(1)).map(({ status }) => status).filter((status) => status !== 400)).toEqual([]);
    expect(await exchange({ sent: goodBye }, 1)).toEqual([version]);
  });
});
