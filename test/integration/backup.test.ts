/** Backup, loss and restore as an operator goes through them: real processes, real files. */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { diskFiles } from "../../src/lib/files/files.ts";
import { parseJsonObject } from "../../src/model/json.ts";
import { readBackup } from "../../src/store/backup/backup.ts";
import { storePath } from "../../src/store/core/node.ts";
import {
  type DavitBootProcess,
  type DavitProcess,
  davitProgram,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";

const mac = "52:54:00:a1:9c:ae";
const soon = { timeout: 20_000 };

const objects = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: web}
spec: {boot: {kernel: /assets/vmlinuz, args: [quiet]}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: web}
spec: {profileRef: {name: web}, selector: {matchLabels: {mac: "${mac}"}}}
`;

let folder: string;
const running: DavitBootProcess[] = [];
const ends: (() => void)[] = [];
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-backup-"));
  await mkdir(at("manifests"));
  await writeFile(at("manifests/objects.yaml"), objects);
});

afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await Promise.all(running.splice(0).map((davit) => davit.stop("SIGKILL")));
  await rm(folder, { recursive: true });
});

async function serve(dataDir: string, args: readonly string[] = []): Promise<DavitProcess> {
  const davit = await startDavit({ manifests: at("manifests"), dataDir: at(dataDir), args });
  running.push(davit);
  return davit;
}

interface Ended {
  readonly code: number;
  readonly output: string;
  readonly complaints: string;
}

/** Runs a command line of davit to its end. */
function davit(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [davitProgram, ...args], { env: {} }, (error, output, complaints) => {
      resolve({ code: error === null ? 0 : Number(error.code), output, complaints });
    });
  });
}

async function put({ storeUrl }: DavitProcess, key: string, value: string): Promise<Response> {
  return await fetch(`${storeUrl}/v2/keys${key}`, { method: "PUT", body: new URLSearchParams({ value }) });
}

async function get({ storeUrl }: DavitProcess, keyAndQuery: string) {
  const answer = await fetch(`${storeUrl}/v2/keys${keyAndQuery}`);
  return { status: answer.status, body: parseJsonObject(await answer.text()), headers: answer.headers };
}

const script = async ({ bootUrl }: DavitBootProcess) => (await fetch(`${bootUrl}/ipxe?mac=${mac}`)).status;

/** Writes one number after the other to a key, until it is told to stop; gives the last one that was answered. */
function writeOn(server: DavitProcess): { stop(): Promise<number> } {
  let isOver = false;
  const written = (async () => {
    let number = 0;
    while (!isOver) {
      await put(server, "/counter", `${number + 1}`);
      number += 1;
    }
    return number;
  })();
  return {
    stop: () => {
      isOver = true;
      return written;
    },
  };
}

/** A server that holds more than what is on its way to a client. */
async function serveMuch(): Promise<DavitProcess> {
  const server = await serve("data");
  const value = "x".repeat(512 * 1024);
  for (let key = 0; key < 64; key++) expect((await put(server, `/big/${key}`, value)).status).toBe(201);
  return server;
}

/** Between a client and a server: lets through one mebibyte of the answer, and the rest when it is told to. */
async function startBrake(server: DavitProcess) {
  const held = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  const brake = createServer((client) => {
    const upstream = connect(Number(new URL(server.storeUrl).port), "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => client.destroy());
    client.pipe(upstream);
    upstream.pipe(client);
    let bytes = 0;
    upstream.on("data", (chunk) => {
      bytes += chunk.length;
      if (bytes < 1024 * 1024) return;
      upstream.unpipe(client);
      upstream.pause();
      held.resolve();
      void letGo.promise.then(() => upstream.pipe(client));
    });
  });
  brake.listen(0, "127.0.0.1");
  await once(brake, "listening");
  const address = brake.address();
  const port = typeof address === "object" ? address?.port : undefined;
  ends.push(() => brake.close());
  return { url: `http://127.0.0.1:${port}`, isHeld: held.promise, letGo: () => letGo.resolve() };
}

/** Takes a backup, without waiting for it. */
function take(storeUrl: string) {
  const taking = spawn(
    process.execPath,
    [davitProgram, "backup", ...storeOf({ storeUrl, dataDir: at("data") }), "--output", at("backup")],
    { env: {} },
  );
  let text = "";
  taking.stderr.setEncoding("utf8").on("data", (more: string) => {
    text += more;
  });
  return { taking, ended: once(taking, "close"), complaints: () => text };
}

const backupFiles = async () => (await readdir(folder)).filter((name) => name.startsWith("backup"));

it("a store that is lost comes back from a backup of its running server, as another one from a later index on", async () => {
  const server = await serve("data");
  const follower = await startDavitBoot(storeOf(server));
  running.push(follower);
  await put(server, "/users/note", "kept");
  const writing = writeOn(server);
  await expect.poll(async () => (await get(server, "/counter")).status, soon).toBe(200);
  const taken = await davit("backup", ...storeOf(server), "--output", at("backup"));
  expect(taken).toMatchObject({ code: 0, complaints: "" });
  const last = await writing.stop();
  expect((await stat(at("backup"))).mode & 0o777).toBe(0o600);
  const { head, tree } = await readBackup(() => diskFiles.readPieces(at("backup")), "it");
  const counter = Number([...tree.walk(storePath("/counter"))][0]?.value);
  expect(counter).toBeGreaterThan(0);
  expect(counter).toBeLessThanOrEqual(last);
  expect(parseJsonObject(taken.output)).toMatchObject({ msg: "backup written", index: head.index });
  const before = Number((await get(server, "/counter")).headers.get("x-store-index"));
  await server.stop("SIGKILL");

  const restored = await davit("restore", "--input", at("backup"), "--data-dir", at("restored"));
  expect(restored).toMatchObject({ code: 0, complaints: "" });
  // Nothing that machines boot from is in it before the source was heard.
  expect((await davit("inspect", at("restored"))).output).toMatch(/\n {2}keys +2\n/);
  // It is in the place of the old one for the follower, too.
  await copyFile(at("data/local-token"), at("restored/local-token"));
  const again = await serve("restored", ["--store-address", new URL(server.storeUrl).host]);
  expect(await get(again, "/users/note")).toMatchObject({ status: 200, body: { node: { value: "kept" } } });
  expect(await get(again, "/counter")).toMatchObject({ body: { node: { value: `${counter}` } } });
  const { headers } = await get(again, "/counter");
  expect(Number(headers.get("x-store-index"))).toBeGreaterThan(head.index + 1_000_000);
  expect(headers.get("x-store-cluster-id")).not.toBe(head.clusterId);
  for (const waitIndex of [1, before, before + 1]) {
    const waiting = await get(again, `/counter?wait=true&waitIndex=${waitIndex}`);
    expect(waiting).toMatchObject({ status: 400, body: { errorCode: 401 } });
  }
  expect(await script(again)).toBe(200);
  // The follower has served its copy all along, and takes over the restored store.
  expect(await script(follower)).toBe(200);
  await writeFile(at("manifests/objects.yaml"), objects.replace("spec: {profileRef", "spec: {hold: true, profileRef"));
  await expect.poll(() => script(follower), soon).toBe(503);
});

it("a backup of a stopped store is the same, and one of a running store's directory is refused", async () => {
  const server = await serve("data");
  await put(server, "/users/note", "kept");
  const refused = await davit("backup", "--data-dir", at("data"), "--output", at("backup"));
  expect(refused).toMatchObject({ code: 1, complaints: expect.stringMatching(/^Locking ".*": another davit uses it/) });
  expect(await davit("inspect", at("data"))).toMatchObject({ code: 2 });
  await davit("backup", ...storeOf(server), "--output", at("running"));
  await server.stop();
  const names = await readdir(at("data"));
  expect(await davit("backup", "--data-dir", at("data"), "--output", at("stopped"))).toMatchObject({ code: 0 });
  expect(await readdir(at("data"))).toEqual(names);
  const [running, stopped] = await Promise.all(
    ["running", "stopped"].map((name) => readBackup(() => diskFiles.readPieces(at(name)), name)),
  );
  const nodes = [running, stopped].map((backup) => [...(backup?.tree.walk(storePath("/")) ?? [])].toSorted());
  expect(nodes[0]).toEqual(nodes[1]);
  expect(stopped?.head.index).toBe(running?.head.index);
});

describe("davit inspect", () => {
  it("tells of a backup, and exits by whether it is sound", async () => {
    const server = await serve("data");
    await davit("backup", ...storeOf(server), "--output", at("backup"));
    const sound = await davit("inspect", at("backup"));
    expect(sound.code).toBe(0);
    expect(sound.output).toMatch(
      /^.*backup: a backup, \d+ bytes\n {2}version +1\n {2}taken +\d{4}-.*\n(.*\n)*sound\n$/,
    );
    const bytes = await readFile(at("backup"));
    await writeFile(at("damaged"), bytes.fill(65, 300, 301));
    const damaged = await davit("inspect", at("damaged"));
    expect(damaged).toMatchObject({
      code: 1,
      output: expect.stringMatching(/^damaged\n {2}Reading ".*damaged": bytes 0 to \d+ are not/),
    });
    const restored = await davit("restore", "--input", at("damaged"), "--data-dir", at("restored"));
    expect(restored).toMatchObject({ code: 1, complaints: expect.stringMatching(/^Reading ".*damaged": bytes 0 to/) });
    await expect(readdir(at("restored"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("tells of a data directory, and of damage in it with file and byte", async () => {
    const server = await serve("data");
    await put(server, "/a", "x");
    await put(server, "/a", "y");
    await server.stop();
    const sound = await davit("inspect", at("data"));
    expect(sound.code).toBe(0);
    expect(sound.output).toMatch(/\n {2}segments +1: 0000000000000001\.log\n {2}snapshots +none\nsound\n$/);
    const segment = at("data/0000000000000001.log");
    await writeFile(segment, (await readFile(segment)).fill(65, 110, 111));
    const damaged = await davit("inspect", at("data"));
    expect(damaged.code).toBe(1);
    expect(damaged.output).toContain(`\ndamaged\n  Reading "${segment}": damaged at byte `);
  });

  it.each([
    { name: "no path", args: [] },
    { name: "two paths", args: ["a", "b"] },
    { name: "an option", args: ["--all"] },
    { name: "a path that leads nowhere", args: ["/nowhere/at/all"] },
  ])("exits with 2 for $name", async ({ args }) => {
    const { code, complaints } = await davit("inspect", ...args);
    expect(code).toBe(2);
    expect(complaints).not.toBe("");
  });
});

describe("a backup that does not come to its end", () => {
  it("leaves no file when the server is killed within it", async () => {
    const server = await serveMuch();
    const brake = await startBrake(server);
    const { ended, complaints } = take(brake.url);
    await brake.isHeld;
    expect((await backupFiles()).length).toBe(1);
    await server.stop("SIGKILL");
    brake.letGo();
    expect(await ended).toEqual([1, null]);
    expect(complaints()).toMatch(/the connection ended, and what came is not whole/);
    expect(await backupFiles()).toEqual([]);
  });

  it("leaves no file when it is stopped", async () => {
    const brake = await startBrake(await serveMuch());
    const { taking, ended, complaints } = take(brake.url);
    await brake.isHeld;
    taking.kill("SIGTERM");
    expect(await ended).toEqual([1, null]);
    expect(complaints()).toMatch(/it was stopped/);
    expect(await backupFiles()).toEqual([]);
  });

  it("says what to do when the store asks for a token", async () => {
    await writeFile(at("tokens"), "the-first-token-0123\n", { mode: 0o600 });
    const server = await serve("data", ["--store-token-file", at("tokens")]);
    const args = ["backup", "--store", server.storeUrl, "--output", at("backup")];
    const refused = await davit(...args);
    expect(refused).toMatchObject({ code: 1, complaints: expect.stringMatching(/give --store-token-file, or/) });
    expect(await davit(...args, "--store-token-file", at("tokens"))).toMatchObject({ code: 0 });
    expect(await davit(...args, "--store-token-file", at("tokens"))).toMatchObject({ code: 2 });
  });
});
