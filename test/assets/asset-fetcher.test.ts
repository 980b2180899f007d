import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AssetFetcher, type AssetFetcherOptions } from "../../src/assets/asset-fetcher.ts";
import { allowedServers } from "../../src/assets/asset-source.ts";
import { sha256Of } from "../../src/lib/files/file-digest.ts";
import { createMetrics } from "../../src/lib/metrics/metrics.ts";
import { encodeDocument, profilePath } from "../../src/model/objects/documents.ts";
import type { ProfileAsset } from "../../src/model/objects/profile.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { silentLog } from "../helpers/test-store.ts";
import { type Answer, type FileServer, file, startFileServer, status } from "./file-server.ts";
import { silentAfter } from "./lying-server.ts";

const content = Buffer.alloc(300_000, "kernel");
const sha256 = createHash("sha256").update(content).digest("hex");
const patience = { timeout: 10_000, interval: 10 };

let folder: string;
let server: FileServer;
let clock: FakeClock;
let fetcher: AssetFetcher;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-fetcher-"));
  clock = new FakeClock();
});

afterEach(async () => {
  await fetcher.stop();
  server.close();
  await rm(folder, { recursive: true });
});

const metrics = createMetrics("test");

/** How many assets the metrics show with this reason. */
async function counted(reasonOf: string): Promise<number | undefined> {
  const { values } = await metrics.profileAssets.get();
  return values.find(({ labels }) => labels.state === reasonOf)?.value;
}

async function start(
  answers: readonly Answer[],
  options: Partial<AssetFetcherOptions> = {},
  others: readonly FileServer[] = [],
): Promise<void> {
  server = await startFileServer(answers);
  const ports = [server, ...others].map(({ url }) => Number(new URL(url).port));
  fetcher = new AssetFetcher({
    directory: folder,
    source: allowedServers(ports.map((port) => ({ host: "127.0.0.1", port }))),
    maxBytes: 0,
    sha256: (opened) => sha256Of(opened.createReadStream({ start: 0, autoClose: false })),
    claim: { take: () => undefined, release: () => undefined },
    clock,
    log: silentLog,
    metrics,
    ...options,
  });
  fetcher.start();
}

const asset = (more: Partial<ProfileAsset> = {}) => ({ name: "os/a", url: `${server.url}/a`, sha256, ...more });

/** Tells the fetcher that the store has this Profile, or no longer. */
function want(profile: string, ...assets: readonly ProfileAsset[]): void {
  const content = { displayName: profile, templates: {}, assets };
  const document = { origin: "", uid: "", generation: 1, revision: "", content };
  const text = assets.length === 0 ? undefined : encodeDocument(document);
  fetcher.wanted.changed([{ path: profilePath("default", profile), text }]);
}

const reason = (more: Partial<ProfileAsset> = {}) => fetcher.stateOf(asset(more))?.reason;
const message = (more: Partial<ProfileAsset> = {}) => fetcher.stateOf(asset(more))?.message;

const stuck = silentAfter(content, 100_000);

describe("the assets of Profiles", () => {
  it("are fetched, and are wanted as long as a Profile asks for them", async () => {
    await start([file(content)]);
    want("web", asset(), asset({ name: "os/b" }));
    await expect.poll(() => [reason(), reason({ name: "os/b" })], patience).toEqual(["Fetched", "Fetched"]);
    expect((await readFile(join(folder, "os/a"))).equals(content)).toBe(true);
    expect(fetcher.isWanted("os/a")).toBe(true);
    want("web");
    expect(fetcher.isWanted("os/a")).toBe(false);
    expect(await readdir(join(folder, "os"))).toEqual(["a", "b"]);
  });

  it("are fetched two at a time from one server, which keeps places free for others", async () => {
    await start([stuck]);
    const names = ["a", "b", "c", "d"];
    want("web", ...names.map((name) => asset({ name })));
    await expect
      .poll(() => names.map((name) => reason({ name })), patience)
      .toEqual(["Fetching", "Fetching", "Waiting", "Waiting"]);
    await expect.poll(() => server.ranges.length, patience).toBe(2);
  });

  it("are fetched from one server while another one is slow", async () => {
    const quick = await startFileServer([file(content)]);
    await start([stuck], {}, [quick]);
    want("web", asset({ name: "slow1" }), asset({ name: "slow2" }), asset({ name: "b", url: `${quick.url}/b` }));
    await expect.poll(() => reason({ name: "b" }), patience).toBe("Fetched");
    expect(reason({ name: "slow1" })).toBe("Fetching");
    quick.close();
  });

  it("give their place to others of the same server when they are slow, and go on later", async () => {
    await start([stuck, stuck, file(content)]);
    want("web", asset({ name: "slow1" }), asset({ name: "slow2" }), asset({ name: "c" }));
    await expect.poll(() => server.ranges.length, patience).toBe(2);
    expect(reason({ name: "c" })).toBe("Waiting");
    await clock.advance(60_000);
    await expect.poll(() => reason({ name: "c" }), patience).toBe("Fetched");
    expect(message({ name: "slow1" })).toContain("the server sends too slowly");
  });

  it.each(["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]"])(
    "are not fetched from davit's own listener at %s, even if the option names it",
    async (host) => {
      const own = await startFileServer([file(content)]);
      const url = new URL(own.url);
      url.hostname = host;
      const port = Number(url.port);
      const source = allowedServers([{ host: host.replace(/^\[|\]$/g, ""), port }], [port]);
      await start([], { source });
      want("web", asset({ url: url.href }));
      const problem = "davit itself listens there: name another server";
      await expect.poll(() => message(), patience).toContain(problem);
      expect(own.ranges).toEqual([]);
      own.close();
    },
  );

  it("are fetched by another URL at once after a failure, and again later when all have failed", async () => {
    await start([status(503), status(404), file(content)]);
    want("web", asset({ url: `${server.url}/none` }));
    want("other", asset());
    const last = `cannot be fetched from "${server.url}/a": the server answers 404`;
    await expect.poll(() => message(), patience).toBe(last);
    expect(server.ranges).toHaveLength(2);
    expect([await counted("FetchFailed"), await counted("Fetched")]).toEqual([1, 0]);
    await clock.advance(60_000);
    await expect.poll(() => reason(), patience).toBe("Fetched");
    expect([await counted("FetchFailed"), await counted("Fetched")]).toEqual([0, 1]);
    want("web");
    want("other");
    expect(await counted("Fetched")).toBe(0);
  });

  it("never quote a query, which may be a secret", async () => {
    await start([status(403)]);
    want("web", asset({ url: `${server.url}/a?signature=hunter2` }));
    await expect.poll(() => reason(), patience).toBe("FetchFailed");
    expect(message()).not.toContain("hunter2");
    expect(fetcher.attention).toEqual([`asset "os/a": FetchFailed: it ${message()}`]);
  });

  it("are fetched again when somebody removed the file", async () => {
    await start([file(content)]);
    want("web", asset());
    await expect.poll(() => reason(), patience).toBe("Fetched");
    await rm(join(folder, "os/a"));
    await clock.advance(60_000);
    await expect.poll(() => server.ranges.length, patience).toBe(2);
    await expect.poll(() => reason(), patience).toBe("Fetched");
  });

  it("wait while davit cannot have the directory", async () => {
    let isTaken = true;
    const other = { reason: "Waiting", message: "is not there yet" } as const;
    const claim = { take: () => (isTaken ? other : undefined), release: () => undefined };
    await start([file(content)], { claim });
    want("web", asset());
    await expect.poll(() => message(), patience).toBe("is not there yet");
    isTaken = false;
    await clock.advance(60_000);
    await expect.poll(() => reason(), patience).toBe("Fetched");
    expect(server.ranges).toEqual(["whole"]);
  });

  it("leave nothing of a download that nobody wants any more", async () => {
    await start([stuck]);
    want("web", asset());
    await expect.poll(() => readdir(join(folder, "os")).catch(() => []), patience).toHaveLength(1);
    want("web");
    await expect.poll(() => readdir(join(folder, "os")), patience).toEqual([]);
  });

  it("keep what they have when davit stops", async () => {
    await start([stuck]);
    want("web", asset());
    await expect.poll(() => server.ranges, patience).toEqual(["whole"]);
    const name = `.a.${sha256.slice(0, 8)}`;
    const bytes = async () => (await stat(join(folder, "os", name)).catch(() => undefined))?.size;
    await expect.poll(bytes, patience).toBeGreaterThan(0);
    await fetcher.stop();
    expect(await readdir(join(folder, "os"))).toEqual([name]);
  });

  it("show how far they are at most every ten seconds, in steps of ten percent", async () => {
    let write: (bytes: number) => void = () => undefined;
    await start([
      (_request, response) => {
        response.writeHead(200, { "content-length": content.length, etag: '"1"' }).flushHeaders();
        write = (bytes) => response.write(content.subarray(0, bytes));
      },
    ]);
    want("web", asset());
    await expect.poll(() => server.ranges.length, patience).toBe(1);
    const part = join(folder, `os/.a.${sha256.slice(0, 8)}`);
    const written = async () => (await readFile(part)).length;
    write(75_000);
    await expect.poll(written, patience).toBe(75_000);
    expect(message()).toBe("is being fetched");
    await clock.advance(10_000);
    write(60_000);
    await expect.poll(() => message(), patience).toMatch(/^is being fetched: (20|40) %$/);
  });
});

describe("a file that is there", () => {
  it("is never replaced: an asset with another digest is a conflict, until somebody removes the file", async () => {
    await start([file(content)]);
    await mkdir(join(folder, "os"));
    await writeFile(join(folder, "os/a"), "another");
    want("web", asset());
    await expect.poll(() => reason(), patience).toBe("Conflict");
    await clock.advance(3_600_000);
    expect(await readFile(join(folder, "os/a"), "utf8")).toBe("another");
    expect(server.ranges).toEqual([]);
    await rm(join(folder, "os/a"));
    await clock.advance(60_000);
    await expect.poll(() => reason(), patience).toBe("Fetched");
  });

  it("stays the one that was fetched first when another Profile wants another file of its name", async () => {
    await start([file(content)]);
    want("web", asset());
    await expect.poll(() => reason(), patience).toBe("Fetched");
    const other = { sha256: "0".repeat(64) };
    want("other", asset(other));
    await expect.poll(() => reason(other), patience).toBe("Conflict");
    expect(reason()).toBe("Fetched");
    expect((await readFile(join(folder, "os/a"))).equals(content)).toBe(true);
  });

  it("is a directory: a conflict, too", async () => {
    await start([file(content)]);
    await mkdir(join(folder, "os/a"), { recursive: true });
    want("web", asset());
    await expect.poll(() => reason(), patience).toBe("Conflict");
  });
});

it("two Profiles that want different files of one name get none, and one of them gets its file when the other goes", async () => {
  await start([file(content)]);
  const other = { sha256: "0".repeat(64) };
  fetcher.wanted.replaced([]);
  want("web", asset(), asset({ ...other }));
  await expect.poll(() => [reason(), reason(other)], patience).toEqual(["Conflict", "Conflict"]);
  expect(server.ranges).toEqual([]);
  want("web", asset());
  await expect.poll(() => reason(), patience).toBe("Fetched");
});
