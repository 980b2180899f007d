import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DownloadOptions, download } from "../../src/assets/download.ts";
import { sha256Of } from "../../src/lib/files/file-digest.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type Answer, broken, type FileServer, file, startFileServer, status } from "./file-server.ts";
import {
  announcesLess,
  announcesMore,
  hasNoMore,
  ignoresRanges,
  listing,
  sendsOtherPart,
  sendsPartOfOther,
  silent,
  silentAfter,
} from "./lying-server.ts";

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
  decides = {};
  arrival = Promise.withResolvers();
});

afterEach(async () => {
  server?.close();
  await rm(folder, { recursive: true });
});

/** What the download's caller decides. */
let decides: Partial<DownloadOptions>;

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
      sha256: (opened) => sha256Of(opened.createReadStream({ start: 0, autoClose: false })),
      progress: (bytes) => {
        if (bytes > 0) arrival.resolve();
      },
      retrying: (why, inMs) => {
        waits.push({ why, inMs });
        // The wait begins right after this call.
        setImmediate(() => void clock.advance(inMs));
      },
      ...decides,
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
    await expect(fetched(file(Buffer.from("other")))).rejects.toThrow(`its SHA-256 is not ${sha256}`);
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
    await expect(fetched(circle)).rejects.toThrow("it is redirected more than 20 times");
    expect(waits).toEqual([]);
  });

  it("is given up at once when the file is not there", async () => {
    await expect(fetched(status(404))).rejects.toThrow("the server answers 404");
    expect(server?.ranges).toHaveLength(1);
  });
});

const unfinished = () => join(folder, "os", `.kernel.${sha256.slice(0, 8)}`);

/** What an earlier run has left. */
async function leave(bytes: Buffer): Promise<void> {
  await mkdir(join(folder, "os"), { recursive: true });
  await writeFile(unfinished(), bytes);
}

describe("a download that an earlier run began", () => {
  it("goes on where that run ended", async () => {
    await leave(content.subarray(0, 100_000));
    expect(await fetched(sendsPartOfOther(content, '"1"'))).toBe(true);
    expect(server?.ranges).toEqual(["bytes=100000-"]);
    expect((await kernel()).equals(content)).toBe(true);
    expect(await names()).toEqual(["os", "os/kernel"]);
  });

  it("begins anew when what is there belongs to another file", async () => {
    await leave(Buffer.alloc(100_000, 1));
    expect(await fetched(sendsPartOfOther(content, '"1"'))).toBe(true);
    expect(server?.ranges).toEqual(["bytes=100000-", "whole"]);
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("begins anew when the server ignores ranges", async () => {
    await leave(content.subarray(0, 100_000));
    expect(await fetched(ignoresRanges(content))).toBe(true);
    expect(server?.ranges).toEqual(["bytes=100000-"]);
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("is over when everything is there", async () => {
    await leave(content);
    expect(await fetched(hasNoMore)).toBe(true);
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("begins anew when there is more than the file has", async () => {
    await leave(Buffer.concat([content, content]));
    expect(await fetched(hasNoMore, file(content))).toBe(true);
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("is kept while the server cannot be reached, and removed when the file is another one", async () => {
    await leave(content.subarray(0, 100_000));
    await expect(fetched(status(503))).rejects.toThrow("the server answers 503");
    expect(await names()).toEqual(["os", `os/.kernel.${sha256.slice(0, 8)}`]);
    await expect(fetched(status(404))).rejects.toThrow("the server answers 404");
    expect(await names()).toEqual(["os"]);
  });
});

describe("a server that", () => {
  it("announces more than it has is asked for the rest, and then the digest decides", async () => {
    expect(await fetched(announcesMore(content), hasNoMore, file(content))).toBe(true);
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("announces less than the file has is not believed", async () => {
    await expect(fetched(announcesLess(content, 100_000))).rejects.toThrow(/^its SHA-256 is not [0-9a-f]{64}/);
    expect(await names()).toEqual(["os"]);
  });

  it("sends another part than davit asked for is asked again from the beginning", async () => {
    expect(
      await fetched(broken(content, 100_000, { arrived: arrival.promise }), sendsOtherPart(content), file(content)),
    ).toBe(true);
    expect(waits.map(({ why }) => why)).toContain("the server sends another part than davit asked for");
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("sends the part of a newer file is asked again from the beginning", async () => {
    const other = Buffer.alloc(300_000, 2);
    const answers = [broken(content, 100_000, { arrived: arrival.promise }), sendsPartOfOther(other, '"2"')];
    expect(await fetched(...answers, file(content))).toBe(true);
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("sends another file with the same ETag is asked once more, and then given up", async () => {
    const other = Buffer.alloc(300_000, 2);
    await leave(content.subarray(0, 100_000));
    await expect(fetched(sendsPartOfOther(other, '"1"'))).rejects.toThrow(/^its SHA-256 is/);
    expect(server?.ranges).toEqual(["bytes=100000-", "whole"]);
    expect(await names()).toEqual(["os"]);
  });

  it("shows a directory is named as such", async () => {
    await expect(fetched(listing)).rejects.toThrow("the server sent a web page");
    await expect(fetched(status(301, { location: "/kernel/" }))).rejects.toThrow("its URL is a directory");
  });

  it("redirects elsewhere is followed only if the caller allows it", async () => {
    decides = { refusalOf: ({ hostname }) => (hostname === "127.0.0.1" ? undefined : "no other host") };
    await expect(fetched(status(302, { location: "http://localhost/kernel" }))).rejects.toThrow(
      "it is redirected, and no other host",
    );
    expect(await fetched(status(302, { location: "/other" }), file(content))).toBe(true);
  });

  it("falls silent is asked for the rest", async () => {
    decides = { silenceMs: 200 };
    expect(await fetched(silentAfter(content, 100_000), silent, file(content))).toBe(true);
    expect(server?.ranges).toEqual(["whole", "bytes=100000-", "bytes=100000-"]);
    expect(waits.map(({ why }) => why)).toEqual([
      expect.stringContaining("the connection broke after 100000 bytes"),
      "the server cannot be reached (ETIMEDOUT)",
    ]);
    expect((await kernel()).equals(content)).toBe(true);
  });

  it("redirects to another kind of URL is not followed", async () => {
    await expect(fetched(status(302, { location: "file:///etc/passwd" }))).rejects.toThrow(
      "a URL that is not http or https",
    );
  });

  it("breaks off again and again gives the file in the end", async () => {
    // Seven breaks: more than the attempts without progress. Each comes when davit has the bytes before it.
    let open: ServerResponse | undefined;
    let goal = 0;
    decides = {
      progress: (bytes) => {
        if (bytes >= goal && goal < content.length) open?.destroy();
      },
    };
    const breaks: Answer = (request, response) => {
      const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
      goal = Math.min(start + 40_000, content.length);
      open = response;
      const range = { "content-range": `bytes ${start}-${content.length - 1}/${content.length}` };
      const length = { "content-length": content.length - start, etag: '"1"' };
      response.writeHead(start === 0 ? 200 : 206, { ...length, ...(start > 0 && range) });
      response.write(content.subarray(start, goal));
      if (goal === content.length) response.end();
    };
    expect(await fetched(breaks)).toBe(true);
    expect(server?.ranges).toHaveLength(8);
    expect((await kernel()).equals(content)).toBe(true);
  });
});

describe("the room of a download", () => {
  it("is checked by what the server announces, before a byte is written", async () => {
    decides = { roomBytes: () => content.length - 1 };
    await expect(fetched(file(content))).rejects.toThrow("larger than --limit assets-max-bytes");
    expect(await names()).toEqual(["os"]);
  });

  it("is checked by what comes, too", async () => {
    let room = 100_000;
    let known = 0;
    decides = {
      roomBytes: () => room,
      progress: (bytes) => {
        room -= bytes - known;
        known = bytes;
      },
    };
    const unannounced: Answer = (_request, response) => response.writeHead(200).end(content);
    await expect(fetched(unannounced)).rejects.toThrow("larger than --limit assets-max-bytes");
    expect(await names()).toEqual(["os"]);
  });
});

it("a file that must stay is not replaced", async () => {
  decides = { keepsOthers: true };
  await mkdir(join(folder, "os"));
  await writeFile(join(folder, "os/kernel"), "old");
  await expect(fetched(file(content))).rejects.toThrow("another file got its name meanwhile");
  expect(String(await kernel())).toBe("old");
});

it("no directory is made where a link leads out", async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), "davit-elsewhere-"));
  await symlink(elsewhere, join(folder, "os"));
  server = await startFileServer([file(content)]);
  const asset = { url: new URL("/kernel", server.url), sha256, path: "os/sub/kernel" };
  const options = { directory: folder, clock: new FakeClock(), signal: new AbortController().signal };
  const nothing = { sha256: async () => "", progress: () => undefined, retrying: () => undefined };
  await expect(download(asset, { ...options, ...nothing })).rejects.toThrow("leads out of the assets directory");
  expect(await readdir(elsewhere)).toEqual([]);
  await rm(elsewhere, { recursive: true });
});
