/** Downloads that are kept in memory, large, many, slow, or of files that change under them. */

import { once } from "node:events";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { AssetsOptions } from "../../src/http/assets/assets.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type AssetServer, startAssets } from "./asset-server.ts";
import { ask, headerOf, parseAnswer, readToEnd, statusOf } from "./wire.ts";

const mebibyte = 1024 * 1024;
// More than the sockets between a server and a client that does not read can hold.
const largeBytes = 24 * mebibyte;
const largeChunks = largeBytes / mebibyte;

const root = mkdtempSync(join(tmpdir(), "davit-asset-downloads-"));
const servers: AssetServer[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});
afterAll(() => rmSync(root, { recursive: true }));

async function start(options: Partial<AssetsOptions> = {}): Promise<AssetServer> {
  const server = await startAssets(root, options);
  servers.push(server);
  return server;
}

/** Writes a file that is full of one letter. */
function write(name: string, letter: string, lengthBytes = largeBytes): string {
  const path = join(root, name);
  writeFileSync(path, Buffer.alloc(lengthBytes, letter));
  return path;
}

/** A client that has the head of its answer, and reads no more for now. */
async function begin(port: number, target: string): Promise<Socket> {
  const socket = openClient(port);
  socket.write(`GET ${target} HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n`);
  await once(socket, "readable");
  return socket;
}

function openClient(port: number): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  sockets.push(socket);
  return socket;
}

async function bodyOf(socket: Socket): Promise<Buffer> {
  return parseAnswer(await readToEnd(socket)).body;
}

const isAll = (body: Buffer, letter: string) => body.equals(Buffer.alloc(body.length, letter));

describe("an asset that was asked for before", () => {
  it("comes from memory, whole, by ranges, and to who comes while it is read", async () => {
    write("hot", "h");
    const { port, metric } = await start();
    const [one, two] = await Promise.all([ask(port, "/assets/hot"), ask(port, "/assets/hot")]);
    expect([one, two].every(({ body }) => body.length === largeBytes && isAll(body, "h"))).toBe(true);
    expect(await metric("davit_boot_asset_cache_misses_total")).toBe(largeChunks);
    expect(await metric("davit_boot_asset_cache_hits_total")).toBe(largeChunks);
    const range = `Range: bytes=${mebibyte - 2}-${2 * mebibyte + 1}`;
    expect((await ask(port, "/assets/hot", { headers: [range] })).body.length).toBe(mebibyte + 4);
    expect(await metric("davit_boot_asset_cache_misses_total")).toBe(largeChunks);
    expect(await metric("davit_boot_asset_cache_bytes")).toBe(largeBytes);
  });

  it("is read again each time when nothing may be kept", async () => {
    write("unkept", "u", 10);
    const { port, metric } = await start({ cacheBytes: 0 });
    for (const _ of [1, 2]) expect((await ask(port, "/assets/unkept")).body.toString()).toBe("u".repeat(10));
    expect(await metric("davit_boot_asset_cache_misses_total")).toBe(2);
    expect(await metric("davit_boot_asset_cache_hits_total")).toBe(0);
  });

  it("does not outlive its name, its directory or its permission to be served", async () => {
    mkdirSync(join(root, "version"));
    write("version/kernel", "v", 10);
    symlinkSync("version", join(root, "current"));
    const { port } = await start();
    expect(statusOf(await ask(port, "/assets/current/kernel"))).toBe(200);
    unlinkSync(join(root, "current"));
    symlinkSync(tmpdir(), join(root, "current"));
    expect(statusOf(await ask(port, "/assets/current/kernel"))).toBe(404);
    rmSync(join(root, "version"), { recursive: true });
    expect(statusOf(await ask(port, "/assets/version/kernel"))).toBe(404);
  });
});

describe("a file that changes after it was kept", () => {
  it.each<[name: string, change: (path: string) => void, expected: string]>([
    ["replaced by another one", (path) => [unlinkSync(path), writeFileSync(path, "new bytes!")], "new bytes!"],
    ["written in place", (path) => writeFileSync(path, "new bytes!"), "new bytes!"],
    ["cut", (path) => truncateSync(path, 3), "old"],
    ["longer", (path) => writeFileSync(path, " and more", { flag: "a" }), "old bytes! and more"],
    [
      "written in place, and its time set back",
      (path) => [writeFileSync(path, "new bytes!"), utimesSync(path, 1, 1)],
      "new bytes!",
    ],
  ])("is what it is now at once when it is %s", async (_name, change, expected) => {
    const path = join(root, "changed");
    writeFileSync(path, "old bytes!");
    utimesSync(path, 1, 1);
    const { port } = await start();
    for (const _ of [1, 2]) expect((await ask(port, "/assets/changed")).body.toString()).toBe("old bytes!");
    change(path);
    expect((await ask(port, "/assets/changed")).body.toString()).toBe(expected);
  });

  it("is what it was, to the end, for who began before: all of it was in memory", async () => {
    const path = write("kept", "a");
    const { port } = await start();
    await ask(port, "/assets/kept");
    const socket = await begin(port, "/assets/kept");
    writeFileSync(path, Buffer.alloc(largeBytes, "b"));
    const body = await bodyOf(socket);
    expect([body.length, isAll(body, "a")]).toEqual([largeBytes, true]);
    expect(isAll((await ask(port, "/assets/kept")).body, "b")).toBe(true);
  });
});

describe("a file that changes while it is read for the first time", () => {
  it.each<[name: string, change: (path: string) => Promise<void>]>([
    ["written at its end", (path) => overwrite(path, largeBytes - 1)],
    ["written at its beginning", (path) => overwrite(path, 0)],
    ["cut to nothing", async (path) => truncateSync(path, 0)],
    ["made longer", async (path) => writeFileSync(path, "more", { flag: "a" })],
  ])("ends the connection early when it is %s, and only old bytes were sent", async (_name, change) => {
    const path = write("fresh", "a");
    utimesSync(path, 1, 1);
    const { port, metric } = await start();
    const socket = await begin(port, "/assets/fresh");
    await change(path);
    const body = await bodyOf(socket);
    expect(body.length).toBeLessThan(largeBytes);
    expect(isAll(body, "a")).toBe(true);
    await expect.poll(() => metric("davit_boot_asset_streams")).toBe(0);
  });

  async function overwrite(path: string, position: number): Promise<void> {
    const handle = await open(path, "r+");
    writeSync(handle.fd, "b", position);
    await handle.close();
  }

  it("is not kept before it has been left alone for two seconds", async () => {
    write("young", "y", 10);
    const { port, metric } = await start({ clock: systemClock });
    expect((await ask(port, "/assets/young")).body.toString()).toBe("y".repeat(10));
    expect(await metric("davit_boot_asset_cache_bytes")).toBe(0);
  });
});

describe("large and many", () => {
  it("files of more than 4 GiB have their length, and any part of them", async () => {
    const sizeBytes = 5 * 1024 * mebibyte;
    const handle = await open(join(root, "sparse"), "w");
    await handle.write("first", 0);
    await handle.write("4 GiB", 4 * 1024 * mebibyte);
    await handle.write("last!", sizeBytes - 5);
    await handle.close();
    const { port } = await start();
    const head = await ask(port, "/assets/sparse", { method: "HEAD" });
    expect(headerOf(head, "Content-Length")).toBe(String(sizeBytes));
    const part = async (range: string) => ask(port, "/assets/sparse", { headers: [`Range: bytes=${range}`] });
    expect((await part("0-4")).body.toString()).toBe("first");
    expect((await part("-5")).body.toString()).toBe("last!");
    const around = await part("4294967290-4294967300");
    expect(headerOf(around, "Content-Range")).toBe(`bytes 4294967290-4294967300/${sizeBytes}`);
    expect(around.body.toString()).toBe("\0\0\0\0\0\x004 GiB");
  });

  it("a directory of 100,000 files serves each of them", { timeout: 120_000 }, async () => {
    const directory = join(root, "many");
    mkdirSync(directory);
    // Names of five files, which are made faster than files; ext4 lets a file have no more than 65,000.
    for (let at = 0; at < 5; at++) writeFileSync(join(directory, `file-${at}`), `number ${at}`);
    for (let at = 5; at < 100_000; at++) linkSync(join(directory, `file-${at % 5}`), join(directory, `file-${at}`));
    const { port } = await start();
    for (const at of [0, 31_416, 99_999]) {
      expect((await ask(port, `/assets/many/file-${at}`)).body.toString()).toBe(`number ${at % 5}`);
    }
    expect(statusOf(await ask(port, "/assets/many/file-100000"))).toBe(404);
    expect(statusOf(await ask(port, "/assets/many/"))).toBe(404);
  });
});

/** What a client of another address is answered. */
async function statusFrom(localAddress: string, port: number, path: string): Promise<number | undefined> {
  const asked = request({ host: "127.0.0.1", port, path, localAddress, agent: false }).end();
  const [answer] = await once(asked, "response");
  answer.resume();
  await once(answer, "end");
  return answer.statusCode;
}

describe("clients that do not read", () => {
  it("hold no more than the cache and a read buffer each, and those above the limit wait", async () => {
    write("slow", "s");
    const limit = 100;
    const cacheBytes = 4 * mebibyte;
    // Another file keeps the cache busy: this one is too large for it.
    write("busy", "b", cacheBytes);
    // One address gets half of them.
    const { port, metric } = await start({ cacheBytes, maxStreams: 2 * limit, maxWaitMs: 100 });
    const before = process.memoryUsage().arrayBuffers;
    const slow = await Promise.all(Array.from({ length: limit }, () => begin(port, "/assets/slow")));
    expect(await metric("davit_boot_asset_streams")).toBe(limit);
    const refused = await ask(port, "/assets/busy");
    expect([statusOf(refused), headerOf(refused, "Retry-After")]).toEqual([503, "5"]);
    expect(statusOf(await ask(port, "/assets/busy", { method: "HEAD" }))).toBe(200);
    expect(await statusFrom("127.0.0.2", port, "/assets/busy")).toBe(200);
    // 64 large buffers, small ones for the rest, and what these clients have received.
    const heldBytes = process.memoryUsage().arrayBuffers - before;
    const [small, received] = [(limit - 64) * 64 * 1024, (limit + 1) * 2 * 64 * 1024];
    expect(heldBytes).toBeLessThan(cacheBytes + 64 * mebibyte + small + received);
    for (const socket of slow) socket.destroy();
    await expect.poll(() => metric("davit_boot_asset_streams")).toBe(0);
    expect((await ask(port, "/assets/busy")).body.length).toBe(cacheBytes);
  });

  it("hold nothing for what they asked for after that, and for which they did not wait", async () => {
    write("first", "f");
    const { port, metric } = await start({ maxStreams: 2 });
    const socket = openClient(port);
    socket.write("GET /assets/first HTTP/1.1\r\nHost: davit\r\n\r\n".repeat(20));
    await once(socket, "readable");
    expect(await metric("davit_boot_asset_streams")).toBe(1);
    socket.destroy();
    await expect.poll(() => metric("davit_boot_asset_streams")).toBe(0);
    expect(statusOf(await ask(port, "/assets/first"))).toBe(200);
  });

  it("make others wait, which get their file when a place is free", async () => {
    write("held", "h");
    write("small", "s", 10);
    const { port, metric } = await start({ maxStreams: 1 });
    const slow = await begin(port, "/assets/held");
    let answered = 0;
    const answers = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(async (address) => {
      const status = await statusFrom(address, port, "/assets/small");
      answered++;
      return status;
    });
    expect(statusOf(await ask(port, "/other"))).toBe(404);
    expect(answered).toBe(0);
    slow.destroy();
    expect(await Promise.all(answers)).toEqual([200, 200, 200]);
    await expect.poll(() => metric("davit_boot_asset_streams")).toBe(0);
  });

  it("are answered in order when they ask for several at once", async () => {
    for (const letter of ["x", "y", "z"]) write(letter, letter, 3 * mebibyte + 1);
    const { port } = await start();
    const socket = openClient(port);
    const targets = ["x", "y", "none", "z"];
    const requests = targets.map((name) => `GET /assets/${name} HTTP/1.1\r\nHost: davit\r\n\r\n`);
    socket.write(`${requests.join("")}GET /assets/x HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n`);
    const whole = (await readToEnd(socket)).toString("latin1");
    expect(whole.match(/HTTP\/1\.1 \d+/g)).toEqual([200, 200, 404, 200, 200].map((status) => `HTTP/1.1 ${status}`));
    expect(whole.match(/([xyz])\1{1000,}/g)?.map((run) => [run[0], run.length])).toEqual(
      ["x", "y", "z", "x"].map((letter) => [letter, 3 * mebibyte + 1]),
    );
  });
});
