/** A store that gets more than it may hold, as a process: what it takes, what it refuses, and how much memory it needs. */

import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";

const mebibyte = 1024 * 1024;
const quotaMebibytes = 64;

let folder: string;
let davit: DavitProcess;

async function start(): Promise<void> {
  const args = ["--store-quota-bytes", String(quotaMebibytes * mebibyte)];
  davit = await startDavit({ manifests: join(folder, "manifests"), dataDir: join(folder, "data"), args });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-full-"));
  await mkdir(join(folder, "manifests"));
  const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nothing-here}\n";
  await writeFile(join(folder, "manifests", "empty.yaml"), manifest);
  await start();
});
afterAll(async () => {
  await davit.stop();
  await rm(folder, { recursive: true });
});

async function ask(method: string, path: string, value?: string) {
  const body = value === undefined ? {} : { body: new URLSearchParams({ value }) };
  const answer = await fetch(`${davit.storeUrl}/v2/keys${path}`, { method, ...body });
  return { status: answer.status, body: await answer.text() };
}

function residentMebibytes(): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${davit.pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) / 1024;
}

const value = "v".repeat(mebibyte);

describe("1,000 values of 1 MiB into a store for 64 MiB", () => {
  it("are taken until it is full, then refused with code 300, and take memory for no more", {
    timeout: 120_000,
  }, async () => {
    const before = residentMebibytes();
    const statuses: number[] = [];
    for (let key = 0; key < 1_000; key++) statuses.push((await ask("PUT", `/big/${key}`, value)).status);
    // What davit itself has written, names and the directory take a little room as well.
    const taken = quotaMebibytes - 1;
    expect(statuses.slice(0, taken)).toEqual(Array.from({ length: taken }, () => 201));
    expect(statuses.slice(taken)).toEqual(Array.from({ length: 1_000 - taken }, () => 500));
    const grown = residentMebibytes() - before;
    process.stdout.write(`\n1,000 values of 1 MiB, ${taken} of them taken: ${Math.round(grown)} MiB more resident\n`);
    // The values, the history of 64 MiB, snapshots and requests under way: far from the 1,000 MiB that were sent.
    expect(grown).toBeLessThan(600);
  });

  it("say what is the matter, and deletes make room", async () => {
    const refusal = await ask("PUT", "/big/more", value);
    expect(JSON.parse(refusal.body)).toEqual({
      errorCode: 300,
      message: "Raft Internal Error",
      cause: `the quota of ${quotaMebibytes * mebibyte} bytes would be exceeded; delete keys or raise it`,
      index: 0,
    });
    expect(await ask("GET", "/big/0")).toMatchObject({ status: 200 });
    expect(await ask("DELETE", "/big/0")).toMatchObject({ status: 200 });
    expect(await ask("PUT", "/big/more", value)).toMatchObject({ status: 201 });
  });

  it("are there after a restart, those that were taken, and what was counted is not", async () => {
    await davit.stop();
    await start();
    const counts = JSON.parse(await (await fetch(`${davit.storeUrl}/v2/stats/store`)).text());
    expect(counts).toMatchObject({ setsSuccess: 0, getsSuccess: 0, deleteSuccess: 0 });
    const listing = await ask("GET", "/big?sorted=true");
    const keys: readonly { key: string }[] = JSON.parse(listing.body).node.nodes;
    const expected = [...Array.from({ length: quotaMebibytes - 2 }, (_, key) => `/big/${key + 1}`), "/big/more"];
    expect(keys.map(({ key }) => key)).toEqual(expected.toSorted());
  });
});
