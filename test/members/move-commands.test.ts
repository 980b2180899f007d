/** The commands that move a store into etcd and back, and restore it there, as an operator uses them. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EtcdClient } from "../../packages/etcd-client/src/etcd-client.ts";
import { systemClock, toRfc3339 } from "../../src/lib/clock.ts";
import { parseJsonObject } from "../../src/model/json.ts";
import { type DavitProcess, davitProgram, startDavit, storeOf } from "../../tools/davit-process.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";
import { silentLog } from "../helpers/test-store.ts";

// Each test starts about ten processes, one after the other.
const limitMs = 300_000;
const soon = { timeout: 60_000, interval: 200 };

let folder: string;
let etcd: EtcdMembers;
const davits: DavitProcess[] = [];
const at = (name: string) => join(folder, name);
const endpoints = () => ["--store-etcd-endpoints", etcd.urls.map(({ origin }) => origin).join(",")];
const move = (to: string, directory: string) => [
  "migrate-store",
  "--to",
  to,
  "--data-dir",
  at(directory),
  ...endpoints(),
];

async function serve(dataDir: string, args: readonly string[] = []): Promise<DavitProcess> {
  const assets = ["--assets-dir", at("assets")];
  const davit = await startDavit({ manifests: at("manifests"), dataDir: at(dataDir), args: [...assets, ...args] });
  davits.push(davit);
  return davit;
}

const serveMember = (dataDir: string, args: readonly string[] = []) =>
  serve(dataDir, [...endpoints(), "--store-advertise-url", `http://${dataDir}.example:2379`, ...args]);

/** Runs a command line of davit to its end. */
function davit(...args: readonly string[]): Promise<{ readonly code: number; readonly complaints: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [davitProgram, ...args], { env: {} }, (error, _output, complaints) => {
      resolve({ code: error === null ? 0 : Number(error.code), complaints });
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

async function isAnswering({ opsUrl }: DavitProcess): Promise<void> {
  await expect.poll(async () => (await fetch(`${opsUrl}/readyz`)).status, soon).toBe(200);
}

async function withClient<Result>(work: (client: EtcdClient) => Promise<Result>): Promise<Result> {
  const client = EtcdClient.open({ endpoints: etcd.urls, clock: systemClock, log: silentLog, random: () => 0 });
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** Kills a process without a farewell, once a piece of a snapshot is in etcd. */
async function killInTheMiddle(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  await withClient(async (client) => {
    const pieces = { key: "/davit/snap/", end: "/davit/snap0", keysOnly: true, limit: 1 };
    while (child.exitCode === null && (await client.range(pieces)).keys.length === 0);
  });
  child.kill("SIGKILL");
  await ended;
}

const mac = "52:54:00:00:00:01";

function installObjects(ledger = "00000000"): string {
  const until = toRfc3339(systemClock.nowMs() + 3_600_000);
  return `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: installer}
spec: {effect: Install, install: {then: exit}, boot: {kernel: /assets/vmlinuz}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: installs}
spec:
  profileRef: {name: installer}
  selector: {matchLabels: {mac: "${mac}"}}
  install: {generation: 1, ledger: "${ledger}", until: "${until}", scope: All}
`;
}

/** What a machine is answered that has a grant: 200 is the installer. */
async function bootOf({ bootUrl }: DavitProcess): Promise<number> {
  const { status } = await fetch(`${bootUrl}/ipxe?mac=${mac}`);
  return status;
}

/** Grants an install by this davit's ledger, and waits until davit has read it. The machine does not ask. */
async function grantInstall({ opsUrl }: DavitProcess): Promise<void> {
  const ledgerOf = async (query = "") => parseJsonObject(await (await fetch(`${opsUrl}/ledger${query}`)).text()) ?? {};
  await expect.poll(async () => typeof (await ledgerOf()).id, soon).toBe("string");
  await writeFile(at("manifests/install.yaml"), installObjects(String((await ledgerOf()).id)));
  const grant = async () => JSON.stringify((await ledgerOf("?grant=group/default/installs")).grant);
  await expect.poll(grant, soon).toContain(String((await ledgerOf()).id));
}

/** Asks from the start on, until davit has read everything and some time after. */
async function expectNoInstall(again: DavitProcess): Promise<void> {
  const found = new Set<number>();
  const ask = async () => found.add(await bootOf(again));
  await expect.poll(async () => (await ask()) && (await fetch(`${again.opsUrl}/readyz`)).status, soon).toBe(200);
  for (let asked = 0; asked < 50; asked++) {
    await ask();
    await systemClock.sleep(50);
  }
  expect(found).toEqual(new Set([503]));
}

describe.skipIf(missing("etcd"))("a store, by the commands of an operator,", () => {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-move-"));
    await mkdir(at("manifests"));
    await mkdir(at("assets"));
    await writeFile(at("assets/vmlinuz"), "a kernel");
    await writeFile(
      at("manifests/objects.yaml"),
      "apiVersion: davit.dev/v1alpha1\nkind: Profile\nmetadata: {name: web}\nspec: {boot: {kernel: /assets/vmlinuz}}\n",
    );
    etcd = await startEtcdV3();
  });
  afterEach(async () => {
    await Promise.all(davits.splice(0).map((each) => each.stop("SIGKILL")));
    await etcd.stop();
    await rm(folder, { recursive: true });
  });

  it("moves to etcd and back; its clients go on", { timeout: limitMs }, async () => {
    const first = await serve("data");
    await isAnswering(first);
    await put(first, "/a", "1");
    expect(await davit(...move("etcd", "data"))).toMatchObject({
      code: 1,
      complaints: expect.stringMatching(/^Locking ".*data": another davit uses it/),
    });
    const { headers } = await get(first, "/a");
    const clusterId = headers.get("x-store-cluster-id");
    const index = Number(headers.get("x-store-index"));
    await first.stop();

    expect(await davit(...move("etcd", "data"))).toEqual({ code: 0, complaints: "" });
    // The options of before would begin a second life of this store.
    await expect(serve("data")).rejects.toThrow("davit migrate-store moved its store to");
    const member = await serveMember("data");
    expect(await get(member, "/a")).toMatchObject({ status: 200, body: { node: { value: "1" } } });
    const waiting = get(member, `/a?wait=true&waitIndex=${index + 1}`);
    await put(member, "/a", "2");
    const next = await waiting;
    expect(next).toMatchObject({ status: 200, body: { node: { value: "2" }, prevNode: { value: "1" } } });
    expect(next.headers.get("x-store-cluster-id")).toBe(clusterId);
    expect(Number(next.headers.get("x-raft-term"))).toBeGreaterThan(Number(headers.get("x-raft-term")));
    expect(await davit(...move("data-dir", "back"))).toMatchObject({
      code: 1,
      complaints: expect.stringContaining("stop every davit that uses this prefix"),
    });
    await member.stop();

    expect(await davit(...move("data-dir", "back"))).toEqual({ code: 0, complaints: "" });
    await expect(serveMember("data")).rejects.toThrow(`moved its store to "${at("back")}"`);
    const back = await serve("back");
    const found = await get(back, "/a");
    expect(found).toMatchObject({ status: 200, body: { node: { value: "2" } } });
    expect(found.headers.get("x-store-cluster-id")).toBe(clusterId);
  });

  it("opens no install of its former ledger after a move that was undone", { timeout: limitMs }, async () => {
    const first = await serve("data");
    await grantInstall(first);
    await first.stop();
    expect(await davit(...move("etcd", "data"))).toEqual({ code: 0, complaints: "" });
    const member = await serveMember("data");
    await isAnswering(member);
    expect(await bootOf(member)).toBe(503);
    await member.stop();
    await withClient((client) => client.deleteRange({ key: "/davit/", end: "/davit0" }));
    await rm(join(at("data"), "moved"));

    const again = await serve("data");
    await expectNoInstall(again);
    await grantInstall(again);
    await again.stop();
  });

  it("opens none of a ledger in etcd either", { timeout: limitMs }, async () => {
    const first = await serveMember("m0");
    await grantInstall(first);
    await first.stop();
    expect(await davit(...move("data-dir", "data"))).toEqual({ code: 0, complaints: "" });
    const moved = await serve("data");
    await isAnswering(moved);
    expect(await bootOf(moved)).toBe(503);
    await moved.stop();
    await withClient((client) => client.deleteRange({ key: "/davit/moved" }));

    const again = await serveMember("m0");
    await expectNoInstall(again);
    await grantInstall(again);
  });

  it("is whole or not there after a kill, and moves by the next run", { timeout: limitMs }, async () => {
    const first = await serve("data");
    await isAnswering(first);
    for (let key = 0; key < 40; key++) await put(first, `/big/${key}`, "x".repeat(500_000));
    await first.stop();
    const moving = spawn(process.execPath, [davitProgram, ...move("etcd", "data")], { env: {}, stdio: "ignore" });
    await killInTheMiddle(moving);
    expect(moving.signalCode).toBe("SIGKILL");
    const left = await withClient((client) => client.range({ key: "/davit/", end: "/davit0", keysOnly: true }));
    const keys = left.keys.map(({ key }) => key);
    expect(keys).not.toContain("/davit/meta");
    expect(keys.filter((key) => !key.startsWith("/davit/snap/"))).toEqual(["/davit/leader"]);
    expect(await readdir(at("data"))).not.toContain("moved");
    // The killed run holds the prefix for its lease of ten seconds.
    await expect.poll(async () => await davit(...move("etcd", "data")), soon).toEqual({ code: 0, complaints: "" });
    const member = await serveMember("data");
    expect((await get(member, "/big/39")).status).toBe(200);
  });

  it("is backed up from any member, and restored into etcd as another one", { timeout: limitMs }, async () => {
    const leader = await serveMember("m0");
    await isAnswering(leader);
    const other = await serveMember("m1");
    await put(leader, "/a", "1");
    expect((await get(other, "/a?quorum=true")).status).toBe(200);
    expect(await davit("backup", ...storeOf(other), "--output", at("backup"))).toEqual({ code: 0, complaints: "" });
    const { headers } = await get(other, "/a");
    const restore = ["restore", "--input", at("backup"), ...endpoints()];
    expect(await davit(...restore)).toMatchObject({
      code: 1,
      complaints: expect.stringContaining("stop every davit that uses this prefix"),
    });
    for (const member of [leader, other]) await member.stop();
    expect(await davit(...restore)).toMatchObject({
      code: 1,
      complaints: expect.stringMatching(
        /^Restoring to "\/davit\/" in etcd: it is not empty, "\/davit\/epoch" is in it/,
      ),
    });
    const elsewhere = ["--store-etcd-prefix", "/restored"];
    expect(await davit(...restore, ...elsewhere)).toEqual({ code: 0, complaints: "" });
    const restored = await serveMember("m0", elsewhere);
    const found = await get(restored, "/a");
    expect(found).toMatchObject({ status: 200, body: { node: { value: "1" } } });
    expect(found.headers.get("x-store-cluster-id")).not.toBe(headers.get("x-store-cluster-id"));
    const before = Number(headers.get("x-store-index"));
    expect(Number(found.headers.get("x-store-index"))).toBeGreaterThan(before + 999_999);
    expect(await get(restored, `/a?wait=true&waitIndex=${before}`)).toMatchObject({ body: { errorCode: 401 } });
  });

  it("has another ledger once it is restored, and never joins one that is left", { timeout: limitMs }, async () => {
    const first = await serveMember("m0");
    await grantInstall(first);
    expect(await davit("backup", ...storeOf(first), "--output", at("backup"))).toEqual({ code: 0, complaints: "" });
    await first.stop();
    const restore = (...place: readonly string[]) => davit("restore", "--input", at("backup"), ...place);
    await withClient(async (client) => {
      await client.deleteRange({ key: "/davit/", end: "/davit/permits/" });
      await client.deleteRange({ key: "/davit/permits0", end: "/davit0" });
    });
    expect(await restore(...endpoints())).toMatchObject({
      code: 1,
      complaints: expect.stringContaining('it is not empty, "/davit/permits/'),
    });

    const elsewhere = ["--store-etcd-prefix", "/restored"];
    expect(await restore(...endpoints(), ...elsewhere)).toEqual({ code: 0, complaints: "" });
    const inEtcd = await serveMember("m1", elsewhere);
    await expectNoInstall(inEtcd);
    await inEtcd.stop();
    expect(await restore("--data-dir", at("restored"))).toEqual({ code: 0, complaints: "" });
    const again = await serve("restored");
    await expectNoInstall(again);
    await grantInstall(again);
    expect(await bootOf(again)).toBe(200);
  });
});
