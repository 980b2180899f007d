/** Whoever floods a follower keeps no other machine from its permit. */

import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Writers } from "../../src/follow/writers.ts";
import { servedPort } from "../../tools/davit-process.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { silentLog } from "../helpers/test-store.ts";

const connections = 32;

let server: Server;
let writers: Writers;
/** The questions that the writer has not answered yet. */
let open: { readonly address: string; readonly response: ServerResponse }[];

beforeEach(async () => {
  open = [];
  server = createServer(async (request, response) => {
    open.push({ address: String(JSON.parse(await text(request)).address), response });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  writers = new Writers({
    urls: [new URL(`http://127.0.0.1:${servedPort(server.address())}`)],
    credentials: () => Promise.resolve({}),
    clock: new FakeClock(),
    log: silentLog,
  });
});
afterEach(() => {
  writers.stop();
  server.close();
  server.closeAllConnections();
});

const ask = (address: string) =>
  writers.ask("report", { kind: "report", token: "", report: { state: "failed" }, address });

it.each([
  { name: "one address", addresses: ["192.0.2.66"] },
  { name: "addresses of one network", addresses: ["2001:db8::1", "2001:db8::2"] },
])("questions of clients take turns: $name asks 2,000 times", async ({ addresses }) => {
  const flood = Array.from({ length: 2_000 }, (_, at) => ask(addresses[at % addresses.length] ?? ""));
  await expect.poll(() => open.length).toBe(connections);
  const asked = ask("192.0.2.1");
  let answered = 0;
  while (!open.some(({ address }) => address === "192.0.2.1")) {
    const [next] = open.splice(0, 1);
    next?.response.end("{}");
    answered += 1;
    expect(answered).toBeLessThan(5);
    await expect.poll(() => open.length).toBe(connections);
  }
  open.find(({ address }) => address === "192.0.2.1")?.response.end('{"outcome":"taken"}');
  expect(await asked).toBe("taken");
  writers.stop();
  await Promise.all(flood);
});

it("a question that waits ends when the writers stop", async () => {
  const asked = Array.from({ length: 100 }, () => ask("192.0.2.1"));
  await expect.poll(() => open.length).toBe(connections);
  writers.stop();
  expect(new Set(await Promise.all(asked))).toEqual(new Set([undefined]));
  expect(writers.asking).toBe(0);
});
