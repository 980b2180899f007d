/** A store that cannot be written, as a real process: what it answers, what it says of itself, and that it gets well. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { missing } from "../helpers/requirements.ts";

const manifests = join(import.meta.dirname, "../../manifests/quickstart");
const mebibyte = 1024 * 1024;

let folder: string;
const running: DavitProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "davit-unwritable-"));
});
afterEach(async () => {
  for (const davit of running.splice(0)) await davit.stop("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function started(options: Partial<Parameters<typeof startDavit>[0]> & { readonly dataDir: string }) {
  const davit = await startDavit({ manifests, ...options });
  running.push(davit);
  return davit;
}

async function ask(url: string, init?: RequestInit): Promise<readonly [status: number, body: string]> {
  const answer = await fetch(url, init);
  return [answer.status, await answer.text()];
}

const put = (davit: DavitProcess, key: string, value = "x") =>
  ask(`${davit.storeUrl}/v2/keys/${key}`, { method: "PUT", body: new URLSearchParams({ value }) });

/** What davit says of its store everywhere. */
async function saysOf(davit: DavitProcess) {
  const [health, live, ready, metrics] = await Promise.all([
    ask(`${davit.storeUrl}/health`),
    ask(`${davit.opsUrl}/livez`),
    ask(`${davit.opsUrl}/readyz?verbose`),
    ask(`${davit.opsUrl}/metrics`),
  ]);
  return {
    health,
    live: live[0],
    ready: ready[0],
    attention: ready[1].split("\n").filter((line) => line.startsWith("[!] store:")),
    writable: /^davit_store_writable (\d)$/m.exec(metrics[1])?.[1],
  };
}

const sound = { health: [200, '{"health":"true"}'], live: 200, ready: 200, attention: [], writable: "1" };
const unwritable = (sentence: string) => ({
  health: [503, '{"health":"false"}\n'],
  live: 200,
  ready: 200,
  attention: [`[!] store: ${sentence}`],
  writable: "0",
});

/** What a machine is answered, wherever davit listens. */
async function bootOf(davit: DavitProcess) {
  const [status, body] = await ask(`${davit.bootUrl}/ipxe?mac=52:54:00:a1:9c:ae`);
  return [status, body.replaceAll(davit.bootUrl, "http://davit")];
}

const trying = { timeout: 20_000, interval: 100 };

it("syncs that fail: reads and machines go on, and it is written again without a restart, with all that was answered", async () => {
  const failing = join(folder, "failing");
  const dataDir = join(folder, "data");
  const nodeArgs = ["--import", join(import.meta.dirname, "davit-failing-disk.ts")];
  const options = { dataDir, nodeArgs, variables: { FAILING_DISK: failing } };
  const davit = await started(options);
  const boot = await bootOf(davit);
  expect((await put(davit, "a"))[0]).toBe(201);
  expect(await saysOf(davit)).toEqual(sound);

  writeFileSync(failing, "");
  expect(await put(davit, "refused")).toEqual([500, expect.stringContaining('"errorCode":300')]);
  expect(await put(davit, "refused-at-once")).toEqual([500, expect.stringContaining("the disk fails")]);
  expect(await saysOf(davit)).toEqual(unwritable("its disk fails, so changes take no effect: see to the disk"));
  expect((await ask(`${davit.storeUrl}/v2/keys/a`))[0]).toBe(200);
  expect((await ask(`${davit.storeUrl}/v2/keys/refused`))[0]).toBe(404);
  expect(await bootOf(davit)).toEqual(boot);

  rmSync(failing);
  await expect.poll(() => saysOf(davit), trying).toEqual(sound);
  expect((await put(davit, "b"))[0]).toBe(201);
  expect(await bootOf(davit)).toEqual(boot);
  await davit.stop("SIGKILL");
  const again = await started(options);
  const [, listing] = await ask(`${again.storeUrl}/v2/keys/?sorted=true`);
  expect([...listing.matchAll(/"key":"(.*?)"/g)].map(([, key]) => key)).toEqual(["/a", "/b", "/davit"]);
  expect(await bootOf(again)).toEqual(boot);
}, 120_000);

it("a lock that is removed: the first davit never writes again, and the second loses nothing", async () => {
  const dataDir = join(folder, "data");
  const first = await started({ dataDir });
  expect((await put(first, "a"))[0]).toBe(201);
  const boot = await bootOf(first);
  for (const directory of [dataDir, join(dataDir, "ledger")]) rmSync(join(directory, "lock.db"));
  const second = await started({ dataDir });
  expect((await put(second, "b"))[0]).toBe(201);
  expect(await put(first, "c")).toEqual([500, expect.stringContaining("lock.db")]);
  expect(await saysOf(first)).toEqual(
    unwritable("its lock.db was removed or replaced, so changes take no effect: stop other davits there, restart this"),
  );
  expect(await bootOf(first)).toEqual(boot);
  expect((await put(second, "d"))[0]).toBe(201);
  expect(await first.stop()).toBe(0);
  expect((await put(second, "e"))[0]).toBe(201);
  await second.stop("SIGKILL");
  const third = await started({ dataDir });
  for (const [key, status] of [
    ["a", 200],
    ["b", 200],
    ["c", 404],
    ["d", 200],
    ["e", 200],
  ]) {
    expect([key, (await ask(`${third.storeUrl}/v2/keys/${key}`))[0]]).toEqual([key, status]);
  }
}, 120_000);

describe.skipIf(missing("tmpfs"))("on a disk of its own", () => {
  let disk: string;
  beforeEach(() => {
    disk = join(folder, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", disk]);
  });
  afterEach(async () => {
    for (const davit of running.splice(0)) await davit.stop("SIGKILL");
    execFileSync("umount", [disk]);
    rmdirSync(disk);
  });

  it("that its own keys filled, it can be emptied by DELETE alone", async () => {
    const small = join(import.meta.dirname, "davit-small-files.ts");
    const davit = await started({ dataDir: join(disk, "data"), program: small });
    const boot = await bootOf(davit);
    const value = "v".repeat(50_000);
    let key = 0;
    let status = 201;
    for (; status === 201; key++) [status] = await put(davit, `full/${key}`, value);
    expect(status).toBe(500);
    expect(await saysOf(davit)).toEqual(
      unwritable(
        "no space is left on its disk: clients' writes are refused, and Profiles, Groups and holds take effect only " +
          "while its reserve lasts: make room",
      ),
    );
    expect((await put(davit, "more"))[0]).toBe(500);
    expect((await ask(`${davit.storeUrl}/v2/keys/full/0`))[0]).toBe(200);
    expect(await bootOf(davit)).toEqual(boot);

    expect((await ask(`${davit.storeUrl}/v2/keys/full/1`, { method: "DELETE" }))[0]).toBe(200);
    expect((await ask(`${davit.storeUrl}/v2/keys/full?recursive=true`, { method: "DELETE" }))[0]).toBe(200);
    await expect.poll(() => saysOf(davit), trying).toEqual(sound);
    for (let at = 0; at < 20; at++) expect((await put(davit, `again/${at}`, value))[0]).toBe(201);
    await davit.stop("SIGKILL");
    const again = await started({ dataDir: join(disk, "data"), program: small });
    expect((await ask(`${again.storeUrl}/v2/keys/full`))[0]).toBe(404);
    expect((await ask(`${again.storeUrl}/v2/keys/again/19`))[0]).toBe(200);
    expect(await bootOf(again)).toEqual(boot);
  }, 120_000);

  it("that others fill, it says so, and is written again when there is room", async () => {
    const davit = await started({ dataDir: join(disk, "data") });
    const filler = join(disk, "filler");
    expect(() => writeFileSync(filler, Buffer.alloc(16 * mebibyte))).toThrow("ENOSPC");
    const value = "v".repeat(50_000);
    await expect.poll(async () => (await put(davit, "a", value))[0], trying).toBe(500);
    expect((await saysOf(davit)).health).toEqual([503, '{"health":"false"}\n']);
    rmSync(filler);
    await expect.poll(() => saysOf(davit), trying).toEqual(sound);
    expect((await put(davit, "b", value))[0]).toBe(201);
  }, 120_000);
});
