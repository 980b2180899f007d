/** Files that change while they are asked for: whatever is done to them, an answer that is whole is one version. */

import { once } from "node:events";
import {
  closeSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, expect, it } from "vitest";
import { type AssetServer, startAssets } from "./asset-server.ts";
import { ask, headerOf, parseAnswer, readToEnd, statusOf } from "./wire.ts";

const mebibyte = 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), "davit-asset-versions-"));
const names = ["a", "b"] as const;
type Name = (typeof names)[number];

/** Each keeps and forgets at other moments: nothing, a part of the files below, all of them. */
const cacheSizes = [0, 25 * mebibyte, 64 * mebibyte];
const servers: AssetServer[] = [];
const sockets = new Set<Socket>();

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});
afterAll(() => rmSync(folder, { recursive: true }));

// The last one is more than the sockets hold of it for a client that does not read: half of all files are such.
const sizeBytes = fc.oneof(
  fc.constantFrom(0, 1, 5000, mebibyte - 1, mebibyte, mebibyte + 1, 2 * mebibyte + 7),
  fc.constant(24 * mebibyte),
);
const name = fc.constantFrom(...names);
const ofOne = <Kind extends string>(kind: Kind) => fc.record({ kind: fc.constant(kind), name });
const step = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant("replace" as const), name, sizeBytes }), weight: 3 },
  { arbitrary: ofOne("overwrite"), weight: 3 },
  { arbitrary: ofOne("truncate"), weight: 1 },
  { arbitrary: ofOne("remove"), weight: 1 },
  { arbitrary: ofOne("read"), weight: 2 },
  { arbitrary: ofOne("begin"), weight: 4 },
  { arbitrary: fc.record({ kind: fc.constant("finish" as const) }), weight: 2 },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

/** A file as it was after a step. Each eight bytes tell the version. */
interface Version {
  readonly content: Buffer;
  /** Written, or cut, in place since: nobody can have the rest of it. */
  isSpoilt: boolean;
}

interface Begun {
  readonly version: Version;
  readonly whole: Promise<Buffer>;
  readonly socket: Socket;
}

let counter = 0;

/** Does the steps, and knows what the files hold. */
class Files {
  readonly #root: string;
  readonly #port: number;
  readonly #current = new Map<Name, Version>();
  readonly #begun: Begun[] = [];

  constructor(root: string, port: number) {
    this.#root = root;
    this.#port = port;
    for (const each of names) this.replace(each, 24 * mebibyte);
  }

  async do(task: Step): Promise<void> {
    switch (task.kind) {
      case "replace":
        return this.replace(task.name, task.sizeBytes);
      case "overwrite":
        return this.overwrite(task.name);
      case "truncate":
        return this.truncate(task.name);
      case "remove":
        this.#current.delete(task.name);
        return rmSync(join(this.#root, task.name), { force: true });
      case "read":
        return await this.read(task.name);
      case "begin":
        return await this.begin(task.name);
      case "finish":
        return await this.finish();
    }
  }

  /** Under another inode, as installers do. */
  replace(each: Name, length: number): void {
    const content = newContent(length);
    writeFileSync(join(this.#root, `${each}.new`), content);
    renameSync(join(this.#root, `${each}.new`), join(this.#root, each));
    this.#note(each, content);
  }

  /** In place, and of the same size. */
  overwrite(each: Name): void {
    const before = this.#current.get(each);
    if (before === undefined) return;
    before.isSpoilt = true;
    const content = newContent(before.content.length);
    const file = openSync(join(this.#root, each), "r+");
    for (let at = 0; at < content.length; ) at += writeSync(file, content, at, content.length - at, at);
    closeSync(file);
    this.#note(each, content);
  }

  truncate(each: Name): void {
    const before = this.#current.get(each);
    if (before === undefined) return;
    before.isSpoilt = true;
    const content = before.content.subarray(0, Math.floor(before.content.length / 2));
    truncateSync(join(this.#root, each), content.length);
    this.#note(each, content);
  }

  /** Nothing changes meanwhile: the answer is what the file has now. */
  async read(each: Name): Promise<void> {
    const answer = await ask(this.#port, `/assets/${each}`);
    const current = this.#current.get(each);
    expect(statusOf(answer)).toBe(current === undefined ? 404 : 200);
    if (current !== undefined) expect(answer.body.equals(current.content)).toBe(true);
  }

  /** A client that reads no further than the head for now. */
  async begin(each: Name): Promise<void> {
    const version = this.#current.get(each);
    if (version === undefined) return;
    const socket = connect(this.#port, "127.0.0.1");
    sockets.add(socket);
    socket.write(`GET /assets/${each} HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n`);
    await once(socket, "readable");
    this.#begun.push({ version, socket, whole: readLater(socket) });
  }

  async finish(): Promise<void> {
    const begun = this.#begun.shift();
    if (begun === undefined) return;
    begun.socket.emit("finish-reading");
    const { content, isSpoilt } = begun.version;
    const answer = parseAnswer(await begun.whole);
    expect(headerOf(answer, "Content-Length")).toBe(String(content.length));
    expect(answer.body.equals(content.subarray(0, answer.body.length))).toBe(true);
    if (!isSpoilt) expect(answer.body.length).toBe(content.length);
  }

  async finishAll(): Promise<void> {
    while (this.#begun.length > 0) await this.finish();
  }

  /** Clocks of file systems may be coarser than these steps are apart, so each version has a time of its own. */
  #note(each: Name, content: Buffer): void {
    counter++;
    utimesSync(join(this.#root, each), counter, counter);
    this.#current.set(each, { content, isSpoilt: false });
  }
}

function newContent(length: number): Buffer {
  const mark = Buffer.alloc(8);
  mark.writeBigUInt64BE(BigInt(counter + 1));
  return Buffer.alloc(length, mark);
}

async function readLater(socket: Socket): Promise<Buffer> {
  await once(socket, "finish-reading");
  return await readToEnd(socket);
}

it.each(cacheSizes)(
  "an answer is one version of its file, and the current one, with %i bytes to keep",
  { timeout: 120_000 },
  async (cacheBytes) => {
    const root = mkdtempSync(join(folder, "root-"));
    const server = await startAssets(root, { cacheBytes });
    servers.push(server);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 20 }), async (steps) => {
        const files = new Files(root, server.port);
        for (const task of steps) await files.do(task);
        await files.finishAll();
        for (const each of names) await files.read(each);
      }),
      { numRuns: 10 },
    );
    expect(await server.metric("davit_boot_asset_cache_bytes")).toBeLessThanOrEqual(cacheBytes);
    await expect.poll(() => server.metric("davit_boot_asset_streams")).toBe(0);
  },
);
