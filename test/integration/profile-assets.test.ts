/** `spec.assets` of Profiles: davit as its own process fetches them from a real server, and machines get them. */

import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type DavitBootProcess, startDavit, startDavitBoot, storeOf } from "../../tools/davit-process.ts";
import { type Answer, type FileServer, file, startFileServer, status } from "../assets/file-server.ts";
import { profileText } from "../sources/directory/manifests.ts";

const content = randomBytes(3_000_000);
const sha256 = createHash("sha256").update(content).digest("hex");
const patience = { timeout: 30_000, interval: 50 };

let folder: string;
let server: FileServer;
const running: DavitBootProcess[] = [];
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-profile-assets-"));
  await mkdir(at("objects"));
  await mkdir(at("assets"));
});

afterEach(async () => {
  for (const davit of running.splice(0)) await davit.stop();
  server?.close();
  await rm(folder, { recursive: true });
});

async function serveFiles(...answers: readonly Answer[]): Promise<void> {
  server = await startFileServer(answers);
}

async function write(profile: string, ...assets: readonly object[]): Promise<void> {
  const list = assets.map((asset) => ({ name: "os/vmlinuz", url: `${server.url}/vmlinuz`, sha256, ...asset }));
  const spec = `  boot: {kernel: /assets/os/vmlinuz}\n  assets: ${JSON.stringify(list)}`;
  await writeFile(at(`objects/${profile}.yaml`), `${profileText(profile, spec)}\n`);
}

/** The server of files, as the option names it. */
const fileHost = () => new URL(server.url).host;

async function start(args: readonly string[] = ["--fetch-assets-from", fileHost()]) {
  const places = ["--assets-dir", at("assets")];
  const davit = await startDavit({ manifests: at("objects"), dataDir: at("data"), args: [...places, ...args] });
  running.push(davit);
  return davit;
}

async function get(davit: DavitBootProcess, target: string) {
  const answer = await fetch(davit.bootUrl + target);
  return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) };
}

const statusAt = async (davit: DavitBootProcess, target: string) => (await get(davit, target)).status;
const attention = async (davit: DavitBootProcess) => (await fetch(`${davit.opsUrl}/readyz?verbose`)).text();

it("a Profile with another digest does not change the file, and machines get what was checked last", async () => {
  await serveFiles(file(content));
  await write("web", {});
  const davit = await start();
  await expect.poll(() => statusAt(davit, "/assets/os/vmlinuz"), patience).toBe(200);
  await write("web", { sha256: "0".repeat(64) });
  await expect.poll(() => attention(davit), patience).toContain('asset "os/vmlinuz": Conflict: it is not fetched');
  expect((await get(davit, "/assets/os/vmlinuz")).bytes.equals(content)).toBe(true);
  expect(server.ranges).toEqual(["whole"]);
});

it("a Profile that goes leaves its file", async () => {
  await serveFiles(file(content));
  await write("web", {});
  await write("other", { name: "os/initrd" });
  const davit = await start();
  await expect.poll(() => statusAt(davit, "/assets/os/initrd"), patience).toBe(200);
  await rm(at("objects/other.yaml"));
  await expect.poll(() => davit.log.some(({ msg }) => msg === "object removed"), patience).toBe(true);
  expect(await statusAt(davit, "/assets/os/initrd")).toBe(200);
});

it("two Profiles that want different files of one name get none of them, and both names are logged", async () => {
  await serveFiles(file(content));
  await write("web", {});
  await write("other", { sha256: "0".repeat(64) });
  const davit = await start();
  await expect.poll(() => attention(davit), patience).toContain('it has another SHA-256 in Profile "default/web"');
  expect(await attention(davit)).toContain('it has another SHA-256 in Profile "default/other"');
  expect(await statusAt(davit, "/assets/os/vmlinuz")).toBe(503);
  expect(server.ranges).toEqual([]);
});

it("a host that the operator does not allow is never asked, not even by a redirect", async () => {
  const { port } = new URL((await startElsewhere()).url);
  await serveFiles(status(302, { location: `http://localhost:${port}/vmlinuz` }));
  await write("web", {}, { name: "os/initrd", url: `http://localhost:${port}/initrd` });
  const davit = await start();
  await expect.poll(() => attention(davit), patience).toContain('"os/vmlinuz": FetchFailed');
  const told = await attention(davit);
  expect(told).toContain('it is redirected, and --fetch-assets-from does not name "localhost:');
  expect(told).toContain(
    '"os/initrd": HostNotAllowed: it is not fetched: --fetch-assets-from does not name "localhost:',
  );
  expect(elsewhere?.ranges).toEqual([]);
  elsewhere?.close();
});

let elsewhere: FileServer | undefined;
async function startElsewhere(): Promise<FileServer> {
  elsewhere = await startFileServer([file(content)]);
  return elsewhere;
}

it("under a name that Profiles list, machines get only the file that each of them lists, also after a restart", async () => {
  await serveFiles(file(content));
  await mkdir(at("assets/os"));
  await writeFile(at("assets/os/vmlinuz"), "another kernel");
  await write("web", {});
  const davit = await start();
  await expect.poll(() => attention(davit), patience).toContain('asset "os/vmlinuz": Conflict');
  for (const target of ["/assets/os/vmlinuz", "/assets//os/vmlinu%7A", "/assets/os/vmlinuz?x=1"])
    expect(await statusAt(davit, target)).toBe(503);
  await writeFile(at("assets/os/vmlinuz"), content);
  await expect.poll(() => statusAt(davit, "/assets/os/vmlinuz"), patience).toBe(200);
  expect((await get(davit, "/assets/os/vmlinuz")).bytes.equals(content)).toBe(true);

  await write("other", { sha256: "0".repeat(64) });
  await expect.poll(() => statusAt(davit, "/assets/os/vmlinuz"), patience).toBe(503);
  expect(await statusAt(davit, `/assets/os/vmlinuz?sha256=${sha256}`)).toBe(200);
  await rm(at("objects/other.yaml"));
  await expect.poll(() => statusAt(davit, "/assets/os/vmlinuz"), patience).toBe(200);

  await write("web", { sha256: "0".repeat(64) });
  await expect.poll(() => attention(davit), patience).toContain('asset "os/vmlinuz": Conflict');
  await davit.stop("SIGKILL");
  const again = await start();
  await expect.poll(() => attention(again), patience).toContain('asset "os/vmlinuz": Conflict');
  expect(await statusAt(again, "/assets/os/vmlinuz")).toBe(503);
  expect(server.ranges).toEqual([]);
});

it("machines of a Profile that installs never get the file that it listed before", async () => {
  await serveFiles(file(content));
  await write("web", {});
  const davit = await start();
  await expect.poll(() => statusAt(davit, "/assets/os/vmlinuz"), patience).toBe(200);
  await write("web", { sha256: "0".repeat(64) });
  await expect.poll(() => attention(davit), patience).toContain("Conflict");
  expect(await statusAt(davit, "/assets/os/vmlinuz")).toBe(200);
  const yaml = at("objects/web.yaml");
  await writeFile(yaml, `${await readFile(yaml, "utf8")}  effect: Install\n`);
  await expect.poll(() => statusAt(davit, "/assets/os/vmlinuz"), patience).toBe(503);
});

it("a follower that fetches nothing sends only the files that Profiles list", async () => {
  await serveFiles(file(content));
  await write("web", {});
  const writer = await start();
  await mkdir(at("followed/os"), { recursive: true });
  await writeFile(at("followed/os/vmlinuz"), "another kernel");
  const follower = await startDavitBoot([...storeOf(writer), "--assets-dir", at("followed")]);
  running.push(follower);
  await expect.poll(() => statusAt(follower, "/assets/os/vmlinuz"), patience).toBe(503);
  await writeFile(at("followed/os/vmlinuz"), content);
  await expect.poll(() => statusAt(follower, "/assets/os/vmlinuz"), patience).toBe(200);
});

it("without allowed hosts davit fetches nothing, and uses what is there", async () => {
  await serveFiles(file(content));
  await mkdir(at("assets/os"));
  await writeFile(at("assets/os/vmlinuz"), content);
  await write("web", {}, { name: "os/initrd" });
  const davit = await start([]);
  await expect.poll(() => attention(davit), patience).toContain('"os/initrd": HostNotAllowed');
  expect(await attention(davit)).not.toContain("os/vmlinuz");
  expect(server.ranges).toEqual([]);
});

it("--limit assets-max-bytes bounds the directory", async () => {
  await serveFiles(file(content));
  await write("web", {});
  const davit = await start(["--fetch-assets-from", fileHost(), "--limit", "assets-max-bytes=2999999"]);
  await expect.poll(() => attention(davit), patience).toContain("would become larger than --limit assets-max-bytes");
  expect(await readdir(at("assets/os"))).toEqual([]);
});

it("a follower fetches from its store, and never asks the server that a Profile names", async () => {
  await serveFiles(file(content));
  await write("web", {});
  const writer = await start();
  await mkdir(at("followed"));
  const follower = await startDavitBoot([...storeOf(writer), "--assets-dir", at("followed"), "--fetch-assets"]);
  running.push(follower);
  await expect.poll(() => statusAt(follower, `/assets/os/vmlinuz?sha256=${sha256}`), patience).toBe(200);
  expect((await readFile(at("followed/os/vmlinuz"))).equals(content)).toBe(true);
  expect(server.ranges).toEqual(["whole"]);
});

it("davits that share a directory do not fetch twice, and a follower that does not fetch answers 503", async () => {
  await serveFiles(status(503));
  await write("web", {});
  const writer = await start();
  await expect.poll(() => server.ranges.length, patience).toBeGreaterThan(0);
  const shared = await startDavitBoot([...storeOf(writer), "--assets-dir", at("assets"), "--fetch-assets"]);
  running.push(shared);
  await mkdir(at("empty"));
  const idle = await startDavitBoot([...storeOf(writer), "--assets-dir", at("empty")]);
  running.push(idle);
  for (const follower of [shared, idle]) {
    await expect.poll(() => statusAt(follower, "/assets/os/vmlinuz"), patience).toBe(503);
  }
  expect(await attention(idle)).toContain("--fetch-assets is not given");
  expect(await attention(shared)).not.toContain("os/vmlinuz");
});
