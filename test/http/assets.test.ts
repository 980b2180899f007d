import { execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AssetsOptions } from "../../src/http/assets/assets.ts";
import { type AssetServer, startAssets } from "./asset-server.ts";
import { ask, headerOf, parseAnswer, readToEnd, statusOf, type WireAnswer } from "./wire.ts";

const modified = "Thu, 01 Jan 2026 00:00:00 GMT";
const kernel = "0123456789";
// Larger than what the sockets between a server and a client that does not read can hold.
const largeBytes = 32 * 1024 * 1024;

const folder = mkdtempSync(join(tmpdir(), "davit-assets-"));
const root = join(folder, "root");
const servers: AssetServer[] = [];

async function start(assetsRoot: string | undefined, options: Partial<AssetsOptions> = {}): Promise<number> {
  const server = await startAssets(assetsRoot, options);
  servers.push(server);
  return server.port;
}

let port = 0;

beforeAll(async () => {
  mkdirSync(join(root, "os", "1.0"), { recursive: true });
  for (const directory of [".hidden", "os/.disk", "os/.git"]) mkdirSync(join(root, directory));
  const files = [
    "os/1.0/vmlinuz",
    "index.html",
    ".dot",
    ".hidden/file",
    "os/.treeinfo",
    "os/.Netrc",
    "os/.env.local",
    "os/.my.cnf",
    "os/.s3cfg",
    "os/.git-credentials",
    "os/.disk/info",
    "os/.git/config",
    "os/.vmlinuz.0f60303a",
    "os/..data",
    ".treeinfo",
    "with space",
    "config.JSON",
    "ipxe.EFI",
    "os.iso",
    "disk.img",
    "web.ign",
    "a.txt",
    "a.cfg",
  ];
  for (const file of files) {
    writeFileSync(join(root, file), kernel);
    utimesSync(join(root, file), new Date(modified), new Date(modified));
  }
  writeFileSync(join(root, "empty"), "");
  writeFileSync(join(root, "large"), Buffer.alloc(largeBytes, "x"));
  writeFileSync(join(folder, "outside"), "secret");
  mkdirSync(join(folder, "root-beside"));
  writeFileSync(join(folder, "root-beside", "file"), "secret");
  symlinkSync("os/1.0/vmlinuz", join(root, "inside-link"));
  symlinkSync("os/1.0", join(root, "inside-folder"));
  symlinkSync("../outside", join(root, "relative-out"));
  symlinkSync("/etc/passwd", join(root, "absolute-out"));
  symlinkSync("..", join(root, "folder-out"));
  symlinkSync("../root-beside", join(root, "beside"));
  symlinkSync("nowhere", join(root, "dangling"));
  symlinkSync("circle", join(root, "circle"));
  execFileSync("mkfifo", [join(root, "fifo")]);
  symlinkSync("/dev/null", join(root, "device"));
  symlinkSync(root, join(folder, "root-link"));
  port = await start(root);
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  rmSync(folder, { recursive: true });
});

describe("names that begin with a dot", () => {
  it("are 404 without `serveDotfiles`", async () => {
    expect(statusOf(await ask(port, "/assets/os/.treeinfo"))).toBe(404);
  });

  it.each([
    ["of a file in a directory", 200, "os/.treeinfo"],
    ["of a file in the assets directory itself", 404, ".treeinfo"],
    ["of a directory", 404, "os/.disk/info"],
    ["of a repository", 404, "os/.git/config"],
    ["of a file with credentials", 404, "os/.git-credentials"],
    ["of such a file in another letter case", 404, "os/.Netrc"],
    ["of such a file with an ending", 404, "os/.env.local"],
    ["of a client's configuration with a password", 404, "os/.my.cnf"],
    ["of a client's configuration with a key", 404, "os/.s3cfg"],
    ["of such a file, with the dot escaped", 404, "os/%2Eenv.local"],
    ["of an unfinished download", 404, "os/.vmlinuz.0f60303a"],
    ["with two dots", 404, "os/..data"],
    ["of no file", 404, "os/.absent"],
    ["that leads up", 404, "os/1.0/%2e%2e/.treeinfo"],
  ])("%s give %i with `serveDotfiles`: %s", async (_name, status, path) => {
    expect(statusOf(await ask(await start(root, { serveDotfiles: true }), `/assets/${path}`))).toBe(status);
  });
});

describe("`GET /assets/...` serves", () => {
  it.each([
    ["a file", "os/1.0/vmlinuz"],
    ["an ordinary file named index.html", "index.html"],
    ["a name with an escape", "with%20space"],
    ["a link inside the tree", "inside-link"],
    ["a file behind a linked folder inside the tree", "inside-folder/vmlinuz"],
    ["a file whatever the query", "os/1.0/vmlinuz?x=1&y=../.."],
  ])("%s", async (_name, path) => {
    const answer = await ask(port, `/assets/${path}`);
    expect(statusOf(answer)).toBe(200);
    expect(answer.body.toString()).toBe(kernel);
  });

  it("with type, validators and length, in the order that GRUB reads", async () => {
    const answer = await ask(port, "/assets/os/1.0/vmlinuz");
    expect(answer.headerLines.filter((line) => !/^(Date|Connection)/.test(line))).toEqual([
      "Content-Type: application/octet-stream",
      "Cache-Control: no-cache",
      expect.stringMatching(/^Etag: "[0-9a-f]+-[0-9a-f]+-a-[0-9a-f]+"$/),
      `Last-Modified: ${modified}`,
      "Accept-Ranges: bytes",
      "Content-Length: 10",
    ]);
  });

  it("an empty file", async () => {
    const answer = await ask(port, "/assets/empty");
    expect([statusOf(answer), headerOf(answer, "Content-Length"), answer.body.length]).toEqual([200, "0", 0]);
  });

  it("a large file whole", async () => {
    const answer = await ask(port, "/assets/large");
    expect(headerOf(answer, "Content-Length")).toBe(String(largeBytes));
    expect(answer.body.length).toBe(largeBytes);
  });

  it("a root that is a link itself", async () => {
    const answer = await ask(await start(join(folder, "root-link")), "/assets/os/1.0/vmlinuz");
    expect(statusOf(answer)).toBe(200);
  });

  it.each([
    ["config.JSON", "application/json"],
    ["web.ign", "application/json"],
    ["a.txt", "text/plain; charset=utf-8"],
    ["a.cfg", "text/plain; charset=utf-8"],
    ["ipxe.EFI", "application/efi"],
    ["os.iso", "application/vnd.efi-iso"],
    ["disk.img", "application/vnd.efi-img"],
    ["index.html", "application/octet-stream"],
  ])("%s as %s", async (path, type) => {
    expect(headerOf(await ask(port, `/assets/${path}`), "Content-Type")).toBe(type);
  });
});

describe("`GET /assets/...` answers", () => {
  it.each<[name: string, path: string, status: number]>([
    ["the root", "/assets/", 404],
    ["the root without slash", "/assets", 404],
    ["a directory", "/assets/os", 404],
    ["a directory with slash", "/assets/os/", 404],
    ["a file with slash", "/assets/index.html/", 404],
    ["two slashes, as shim asks by HTTP Boot", "/assets//index.html", 200],
    ["two slashes deeper down", "/assets/os//1.0/vmlinuz", 200],
    ["two slashes alone", "/assets//", 404],
    ["two slashes at the end", "/assets/index.html//", 404],
    ["two slashes and dots", "/assets//../outside", 404],
    ["a dot file", "/assets/.dot", 404],
    ["a dot file by escape", "/assets/%2edot", 404],
    ["a file below a dot directory", "/assets/.hidden/file", 404],
    ["a relative link out", "/assets/relative-out", 404],
    ["an absolute link out", "/assets/absolute-out", 404],
    ["a file behind a folder linked out", "/assets/folder-out/outside", 404],
    ["a file in a folder whose name begins like the root's", "/assets/beside/file", 404],
    ["a dangling link", "/assets/dangling", 404],
    ["a circle of links", "/assets/circle", 404],
    ["a FIFO", "/assets/fifo", 404],
    ["a device", "/assets/device", 404],
    ["a missing file", "/assets/none", 404],
    ["a path through a file", "/assets/index.html/x", 404],
    ["a NUL", "/assets/index.html%00", 404],
    ["a name of 300 letters", `/assets/${"x".repeat(300)}`, 404],
    ["a bad escape", "/assets/%zz", 400],
    ["a name that is not UTF-8", "/assets/%ff", 400],
    ["dots", "/assets/../outside", 404],
    ["dots by escape", "/assets/%2e%2e/outside", 404],
    ["half escaped dots", "/assets/.%2e/outside", 404],
    ["dots with an escaped slash", "/assets/..%2foutside", 404],
    ["dots deeper down", "/assets/os/../../outside", 404],
    ["dots with a backslash", "/assets/..%5coutside", 404],
    ["doubly escaped dots", "/assets/%252e%252e/outside", 404],
    ["an escaped slash inside a name", "/assets/os%2f1.0%2fvmlinuz", 404],
    ["dots in the middle of the URL", "/x/../assets/index.html", 404],
  ])("%s with %s", async (_name, path, status) => {
    const answer = await ask(port, path);
    expect(statusOf(answer)).toBe(status);
    expect(answer.body.toString()).not.toContain("secret");
    expect(headerOf(answer, "Content-Length")).toBe(String(answer.body.length));
  });

  it("everything with 404 when there is no assets directory, or it is gone", async () => {
    expect(statusOf(await ask(await start(undefined), "/assets/index.html"))).toBe(404);
    expect(statusOf(await ask(await start(join(folder, "gone")), "/assets/index.html"))).toBe(404);
  });

  it("a prefix with escapes with 404, not with a file of another name", async () => {
    mkdirSync(join(root, "s"));
    writeFileSync(join(root, "s", "linux"), kernel);
    expect(statusOf(await ask(port, "/assets/s/linux"))).toBe(200);
    expect(statusOf(await ask(port, "/%61ssets/linux"))).toBe(404);
  });

  it("other methods with 405", async () => {
    expect(statusOf(await ask(port, "/assets/index.html", { method: "PUT" }))).toBe(405);
  });

  it("HEAD with the head of GET", async () => {
    const undated = ({ headerLines }: WireAnswer) => headerLines.filter((line) => !line.startsWith("Date"));
    const [get, head] = [await ask(port, "/assets/a.txt"), await ask(port, "/assets/a.txt", { method: "HEAD" })];
    expect(undated(head)).toEqual(undated(get));
    expect(head.body.length).toBe(0);
  });
});

describe("ranges", () => {
  it.each<[name: string, range: string, outcome: string, body: string]>([
    ["a part", "bytes=2-4", "206 bytes 2-4/10", "234"],
    ["one byte", "bytes=0-0", "206 bytes 0-0/10", "0"],
    ["an open end", "bytes=7-", "206 bytes 7-9/10", "789"],
    ["a suffix", "bytes=-3", "206 bytes 7-9/10", "789"],
    ["a suffix longer than the file", "bytes=-99", "206 bytes 0-9/10", kernel],
    ["an end beyond the file", "bytes=8-99", "206 bytes 8-9/10", "89"],
    ["a beginning at the end", "bytes=10-", "416 bytes */10", "416 range not satisfiable\n"],
    ["a beginning beyond 2^53", "bytes=99999999999999999999-", "416 bytes */10", "416 range not satisfiable\n"],
    ["an empty suffix", "bytes=-0", "416 bytes */10", "416 range not satisfiable\n"],
    ["no numbers", "bytes=-", "200 undefined", kernel],
    ["letters", "bytes=a-b", "200 undefined", kernel],
    ["an end before the beginning", "bytes=4-2", "200 undefined", kernel],
    ["an unknown unit", "lines=0-1", "200 undefined", kernel],
    ["several ranges", "bytes=0-1,4-5", "200 undefined", kernel],
  ])("with %s", async (_name, range, outcome, body) => {
    const answer = await ask(port, "/assets/a.txt", { headers: [`Range: ${range}`] });
    expect(`${statusOf(answer)} ${headerOf(answer, "Content-Range")}`).toBe(outcome);
    expect(headerOf(answer, "Content-Length")).toBe(String(body.length));
    expect(answer.body.toString()).toBe(body);
  });

  it("of an empty file are never satisfiable", async () => {
    for (const range of ["bytes=0-", "bytes=-1"]) {
      expect(statusOf(await ask(port, "/assets/empty", { headers: [`Range: ${range}`] }))).toBe(416);
    }
  });
});

describe("conditions", () => {
  const etag = async () => headerOf(await ask(port, "/assets/a.txt"), "Etag") ?? "";

  it("answer 304 without body or length to who has the file", async () => {
    const tag = await etag();
    for (const tags of [tag, `W/${tag}`, `"other", ${tag}`, "*"]) {
      const answer = await ask(port, "/assets/a.txt", { headers: [`If-None-Match: ${tags}`] });
      expect(statusOf(answer)).toBe(304);
      expect(headerOf(answer, "Etag")).toBe(tag);
      expect(answer.body.length).toBe(0);
      expect(answer.headerLines.join()).not.toMatch(/Content-Length|Transfer-Encoding/);
    }
  });

  it("hold for no other file of the same size and time", async () => {
    const tag = await etag();
    const path = join(root, "a.txt");
    const { atime, mtime, size } = statSync(path);
    const before = readFileSync(path);
    const replaceBy = (bytes: Buffer) => {
      writeFileSync(`${path}.next`, bytes);
      utimesSync(`${path}.next`, atime, mtime);
      renameSync(`${path}.next`, path);
    };
    replaceBy(Buffer.alloc(size, "y"));
    expect(statusOf(await ask(port, "/assets/a.txt", { headers: [`If-None-Match: ${tag}`] }))).toBe(200);
    const headers = ["Range: bytes=0-1", `If-Range: ${tag}`];
    expect(statusOf(await ask(port, "/assets/a.txt", { headers }))).toBe(200);
    replaceBy(before);
  });

  it.each<[name: string, header: string, status: number]>([
    ["another tag", 'If-None-Match: "other"', 200],
    ["the file's date", `If-Modified-Since: ${modified}`, 304],
    ["a later date", "If-Modified-Since: Fri, 02 Jan 2026 00:00:00 GMT", 304],
    ["an earlier date", "If-Modified-Since: Wed, 31 Dec 2025 00:00:00 GMT", 200],
    ["no date", "If-Modified-Since: soon", 200],
  ])("with %s", async (_name, header, status) => {
    expect(statusOf(await ask(port, "/assets/a.txt", { headers: [header] }))).toBe(status);
  });

  it("of a tag win over those of a date", async () => {
    const headers = ['If-None-Match: "other"', `If-Modified-Since: ${modified}`];
    expect(statusOf(await ask(port, "/assets/a.txt", { headers }))).toBe(200);
  });

  it("of If-Range let a part through only for the current file", async () => {
    const tag = await etag();
    const ask206 = async (condition: string) =>
      statusOf(await ask(port, "/assets/a.txt", { headers: ["Range: bytes=0-1", `If-Range: ${condition}`] }));
    expect(await ask206(tag)).toBe(206);
    expect(await ask206(modified)).toBe(206);
    expect(await ask206('"other"')).toBe(200);
    expect(await ask206(`W/${tag}`)).toBe(200);
    expect(await ask206("Fri, 02 Jan 2026 00:00:00 GMT")).toBe(200);
  });
});

describe("downloads", () => {
  it("beyond the limit wait for their turn, and get 503 with Retry-After if it does not come", async () => {
    const limited = await start(root, { maxStreams: 1, maxWaitMs: 100 });
    const slow = connect(limited, "127.0.0.1");
    slow.write("GET /assets/large HTTP/1.1\r\nHost: davit\r\n\r\n");
    await once(slow, "readable");
    const refused = await ask(limited, "/assets/a.txt");
    expect(statusOf(refused)).toBe(503);
    expect(headerOf(refused, "Retry-After")).toBe("5");
    // Answers without a body need no place.
    expect(statusOf(await ask(limited, "/assets/a.txt", { method: "HEAD" }))).toBe(200);
    expect(statusOf(await ask(limited, "/assets/nothing"))).toBe(404);
    slow.destroy();
    await expect.poll(async () => statusOf(await ask(limited, "/assets/a.txt"))).toBe(200);
  });

  it("of a file that shrinks meanwhile end the connection", async () => {
    const path = join(root, "shrinking");
    writeFileSync(path, Buffer.alloc(largeBytes, "x"));
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /assets/shrinking HTTP/1.1\r\nHost: davit\r\n\r\n");
    await once(socket, "readable");
    truncateSync(path, 1000);
    const answer = parseAnswer(await readToEnd(socket));
    expect(headerOf(answer, "Content-Length")).toBe(String(largeBytes));
    expect(answer.body.length).toBeLessThan(largeBytes);
  });

  it("of a file that is replaced meanwhile have the old bytes to the end", async () => {
    const path = join(root, "replaced");
    writeFileSync(path, Buffer.alloc(largeBytes, "a"));
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /assets/replaced HTTP/1.1\r\nHost: davit\r\nConnection: close\r\n\r\n");
    await once(socket, "readable");
    rmSync(path);
    writeFileSync(path, "b");
    const { body } = parseAnswer(await readToEnd(socket));
    expect(body.length).toBe(largeBytes);
    expect(body.every((byte) => byte === 0x61)).toBe(true);
  });
});
