import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { download } from "../../src/download/download.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type Answer, broken, type FileServer, file, startFileServer, status } from "./file-server.ts";

const content = randomBytes(300_000);
const sha256 = createHash("sha256").update(content).digest("hex");

let folder: string;
let server: FileServer | undefined;
/** Resolves with the first bytes that came. */
let arrival: PromiseWithResolvers<void>;
let waits: { readonly why: string; readonly inMs: number }[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-download-"));
  waits = [];
  arrival = Promise.withResolvers();
});

afterEach(async () => {
  server?.close();
  await rm(folder, { recursive: true });
});

/** Fetches os/kernel from a server that answers so. */
async function fetched(...answers: readonly Answer[]): Promise<boolean> {
  server = await startFileServer(answers);
  const clock = new FakeClock();
  return await download(
    { url: new URL("/kernel?token=x", server.url), sha256, path: "os/kernel" },
    {
      directory: folder,
      clock,
      signal: new AbortController().signal,
      progress: () => arrival.resolve(),
      retrying: (why, inMs) => {
        waits.push({ why, inMs });
        // The wait begins right after this call.
        setImmediate(() => void clock.advance(inMs));
      },
    },
  );
}

const names = async () => (await readdir(folder, { recursive: true })).toSorted();
const kernel = () => readFile(join(folder, "os/kernel"));

describe("a download", () => {
  it("puts the file in its place, and nothing beside it", async () => {
    expect(await fetched(file(content))).toBe(true);
    expect((await kernel()).equals(content)).toBe(true);
    expect(await names()).toEqual(["os", "os/kernel"]);
  });

  it("is none when the file is there and has the digest", async () => {
    await fetched(file(content));
    server?.close();
    expect(await fetched(status(500))).toBe(false);
    expect(server?.ranges).toEqual([]);
  });

  it("replaces a file that has another digest", async () => {
    await mkdir(join(folder, "os"));
    await writeFile(join(folder, "os/kernel"), "old");
    expect(await fetched(file(content))).toBe(true);
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("of other bytes is refused, and the old file stays", async () => {
    await mkdir(join(folder, "os"));
    await writeFile(join(folder, "os/kernel"), "old");
    const other = createHash("sha256").update("other").digest("hex");
    await expect(fetched(file(Buffer.from("other")))).rejects.toThrow(`its SHA-256 is ${other}, not ${sha256}`);
    expect(String(await kernel())).toBe("old");
    expect(await names()).toEqual(["os", "os/kernel"]);
  });

  it("goes on where it was interrupted", async () => {
    expect(await fetched(broken(content, 100_000, { arrived: arrival.promise }), file(content))).toBe(true);
    expect((await kernel()).equals(content)).toBe(true);
    const [first, second] = server?.ranges ?? [];
    expect(first).toBe("whole");
    expect(second).toMatch(/^bytes=[1-9]\d*-$/);
    expect(waits).toHaveLength(1);
  });

  it("begins anew when the file has become another one", async () => {
    const old = Buffer.alloc(300_000, 1);
    expect(await fetched(broken(old, 100_000, { etag: '"0"', arrived: arrival.promise }), file(content, '"1"'))).toBe(
      true,
    );
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("begins anew when the server gives versions no names", async () => {
    expect(await fetched(broken(content, 100_000, { etag: 'W/"1"', arrived: arrival.promise }), file(content))).toBe(
      true,
    );
    expect(server?.ranges).toEqual(["whole", "whole"]);
  });

  it("waits as long as a busy server asks, and a minute at most", async () => {
    const busy = [status(503, { "retry-after": "7" }), status(429, { "retry-after": "3600" })];
    expect(await fetched(...busy, status(500), file(content))).toBe(true);
    expect(waits).toEqual([
      { why: "the server answers 503", inMs: 7_000 },
      { why: "the server answers 429", inMs: 60_000 },
      { why: "the server answers 500", inMs: 4_000 },
    ]);
  });

  it("is given up after five tries", async () => {
    await expect(fetched(status(502))).rejects.toThrow("the server answers 502");
    expect(server?.ranges).toHaveLength(5);
    expect(await names()).toEqual(["os"]);
  });

  it("never goes by a link out of its directory", async () => {
    const elsewhere = await mkdtemp(join(tmpdir(), "davit-elsewhere-"));
    await symlink(elsewhere, join(folder, "os"));
    await expect(fetched(file(content))).rejects.toThrow("a link in its path leads out of the assets directory");
    expect(await readdir(elsewhere)).toEqual([]);
    await rm(elsewhere, { recursive: true });
  });

  it("of a server that redirects in a circle is given up at once", async () => {
    const circle = status(302, { location: "/kernel" });
    await expect(fetched(circle)).rejects.toThrow("it is redirected in a circle");
    expect(waits).toEqual([]);
  });

  it("is given up at once when the file is not there", async () => {
    await expect(fetched(status(404))).rejects.toThrow("the server answers 404");
    expect(server?.ranges).toHaveLength(1);
  });
});
