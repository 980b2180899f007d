/** Bodies that clients of the store begin and do not end: how much memory they may take, and who is refused then. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type DavitKeys, startDavitKeys } from "../helpers/keys-servers.ts";

const mebibyte = 1024 * 1024;
const sockets: Socket[] = [];
let listener: DavitKeys;

beforeEach(async () => {
  listener = await startDavitKeys();
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await listener.stop();
});

/** Sends the head of a PUT and so much of its form. */
async function begin(localAddress: string, lengthBytes: number, sentBytes: number): Promise<Socket> {
  const socket = connect({ port: listener.port, host: "127.0.0.1", localAddress });
  sockets.push(socket.on("error", () => undefined));
  await once(socket, "connect");
  const type = "Content-Type: application/x-www-form-urlencoded";
  socket.write(`PUT /v2/keys/a HTTP/1.1\r\nHost: davit\r\n${type}\r\nContent-Length: ${lengthBytes}\r\n\r\n`);
  await new Promise<void>((resolve) => socket.write(`value=${"x".repeat(sentBytes - 6)}`, () => resolve()));
  return socket;
}

async function headOf(socket: Socket): Promise<string> {
  const [answer] = await once(socket, "data");
  return String(answer).split("\r\n\r\n", 1)[0] ?? "";
}

it("forms that are not ended take half of 64 MiB for one address, which is told to wait, and others may write", async () => {
  for (let count = 0; count < 6; count++) await begin("127.0.0.2", 10 * mebibyte, 9 * mebibyte);
  // What is sent later is held beside them.
  const late = await begin("127.0.0.2", 9 * mebibyte, 9 * mebibyte);
  const head = await headOf(late);
  expect(head).toMatch(/^HTTP\/1\.1 503 /);
  expect(head).toContain("\r\nRetry-After: 5");
  expect(await headOf(await begin("127.0.0.1", 20_000, 20_000))).toMatch(/^HTTP\/1\.1 201 /);
});

it("what unfinished forms took is there again when their clients are gone", async () => {
  for (let count = 0; count < 6; count++) await begin("127.0.0.2", 10 * mebibyte, 9 * mebibyte);
  for (const socket of sockets.splice(0)) socket.destroy();
  const statusOf = async () => (await headOf(await begin("127.0.0.2", 500_000, 500_000))).slice(0, 12);
  await expect.poll(statusOf).toMatch(/^HTTP\/1\.1 20[01]$/);
});
