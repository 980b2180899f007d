/**
 * A large asset of a Profile: its server breaks off twice, and davit is killed in between. No byte is fetched twice, and
 * machines get the file when it is whole and checked. `make test-large-asset` does it with 1 GiB, and
 * DAVIT_TEST_ASSET_MIB sets another size.
 */

import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, open, readdir, rm, stat, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { type Answer, startFileServer } from "../assets/file-server.ts";
import { profileText } from "../sources/directory/manifests.ts";

const mebibyte = 1024 ** 2;
const sizeBytes = Number(process.env.DAVIT_TEST_ASSET_MIB ?? 8) * mebibyte;
const limitMs = 20 * 60_000;
const patience = { timeout: limitMs, interval: 20 };
/** Where the server sends nothing more: it breaks off at the first two, and davit is killed at the third. */
const stops = [1, 2, 3].map((quarter) => (quarter * sizeBytes) / 4);

let folder: string;
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-large-asset-"));
  await mkdir(at("objects"));
  await mkdir(at("assets"));
});

afterEach(() => rm(folder, { recursive: true }));

it("is fetched once, whatever breaks on the way", { timeout: limitMs }, async () => {
  const sha256 = await writeFileOfChance(at("image"));
  let sentBytes = 0;
  let answering: ServerResponse | undefined;
  const untilStop: Answer = (request, response) => {
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const end = stops.find((stop) => stop > start) ?? sizeBytes;
    const range = { "content-range": `bytes ${start}-${sizeBytes - 1}/${sizeBytes}` };
    const headers = { "content-length": sizeBytes - start, etag: '"1"', ...(start > 0 && range) };
    answering = response.writeHead(start > 0 ? 206 : 200, headers);
    const part = createReadStream(at("image"), { start, end: end - 1 });
    part.on("data", ({ length }) => {
      sentBytes += length;
    });
    part.pipe(response, { end: end === sizeBytes });
  };
  const server = await startFileServer([untilStop]);
  const asset = JSON.stringify({ name: "image", url: `${server.url}/image`, sha256 });
  const spec = `  boot: {kernel: /assets/image}\n  assets: [${asset}]`;
  await writeFile(at("objects/web.yaml"), `${profileText("web", spec)}\n`);
  const places = ["--assets-dir", at("assets"), "--fetch-assets-from", new URL(server.url).host];
  const start = () => startDavit({ manifests: at("objects"), dataDir: at("data"), args: places });
  const unfinished = `.image.${sha256.slice(0, 8)}`;
  const gotBytes = async () => (await stat(at(`assets/${unfinished}`)).catch(() => undefined))?.size;
  const head = async (davit: DavitProcess, name: string) =>
    (await fetch(`${davit.bootUrl}/assets/${name}`, { method: "HEAD" })).status;

  const beganMs = performance.now();
  const [first, second, third] = stops;
  const killed = await start();
  for (const stop of [first, second]) {
    await expect.poll(gotBytes, patience).toBe(stop);
    answering?.destroy();
  }
  await expect.poll(gotBytes, patience).toBe(third);
  const names = ["image", unfinished, "other"];
  expect(await Promise.all(names.map((name) => head(killed, name)))).toEqual([503, 404, 404]);
  await killed.stop("SIGKILL");
  const davit = await start();
  await expect.poll(() => head(davit, "image"), patience).toBe(200);
  const seconds = (performance.now() - beganMs) / 1_000;

  expect(server.ranges).toEqual(["whole", ...stops.map((stop) => `bytes=${stop}-`)]);
  expect(sentBytes).toBe(sizeBytes);
  const digest = createHash("sha256");
  const image = await fetch(`${davit.bootUrl}/assets/image?sha256=${sha256}`);
  for await (const piece of image.body ?? []) digest.update(piece);
  expect(digest.digest("hex")).toBe(sha256);
  expect(await readdir(at("assets"))).toEqual(expect.not.arrayContaining([unfinished]));
  console.log(`${sizeBytes / mebibyte} MiB in ${seconds.toFixed(1)} s, ${sentBytes} bytes fetched, SHA-256 ${sha256}`);
  await davit.stop();
  server.close();
});

/** @returns its SHA-256. */
async function writeFileOfChance(path: string): Promise<string> {
  const digest = createHash("sha256");
  const file = await open(path, "w");
  for (let written = 0; written < sizeBytes; written += mebibyte) {
    const piece = randomBytes(mebibyte);
    digest.update(piece);
    await file.write(piece);
  }
  await file.close();
  return digest.digest("hex");
}
