/**
 * One process of davit whose wall clock is set while it runs, by libfaketime: durations go on as they are. On a node that
 * would be the clock of all containers, and perhaps of this computer; this is davit's alone.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { fakeTimeLibrary, missing } from "../helpers/requirements.ts";

const patience = { timeout: 60_000 };
const limitMs = 120_000;

const document = (kind: string, name: string, spec: string) =>
  `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\nspec: ${spec}\n`;

const everybody = [
  document("Profile", "disk", "{boot: {kernel: /assets/disk}}"),
  document("Profile", "install", "{boot: {kernel: /assets/install}}"),
  document("Group", "others", "{profileRef: {name: install}, matchAll: true}"),
].join("---\n");
const one = document("Group", "one", '{profileRef: {name: disk}, selector: {matchLabels: {mac: "52:54:00:00:00:01"}}}');

describe.skipIf(missing("faketime"))("a wall clock that is set while davit runs", { timeout: limitMs }, () => {
  let folder: string;
  let davit: DavitProcess;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "davit-clock-"));
    mkdirSync(join(folder, "manifests"));
    writeFileSync(join(folder, "manifests/everybody.yaml"), everybody);
    writeFileSync(join(folder, "manifests/one.yaml"), one);
    setClock("+0");
  });
  afterEach(async () => {
    await davit?.stop();
    rmSync(folder, { recursive: true });
  });

  /** @param offset from the time that it is, in words of libfaketime. */
  function setClock(offset: "-1h" | "+0" | "+1h"): void {
    writeFileSync(join(folder, "clock"), offset);
  }

  /** Sets it, and waits until davit's answers show that: Node makes their `Date` once a second. */
  async function stepClock(offset: "-1h" | "+1h"): Promise<void> {
    setClock(offset);
    await expect.poll(shownHours, patience).toBeCloseTo(offset === "-1h" ? -1 : 1, 1);
  }

  async function start(...args: readonly string[]): Promise<void> {
    const variables = {
      LD_PRELOAD: fakeTimeLibrary,
      FAKETIME_TIMESTAMP_FILE: join(folder, "clock"),
      FAKETIME_NO_CACHE: "1",
      // An administrator who sets a clock does not set this one either.
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
    const places = { manifests: join(folder, "manifests"), dataDir: join(folder, "data") };
    davit = await startDavit({ ...places, args: ["--store-own-certificate", ...args], variables });
  }

  /** How far ahead of this process's clock davit's is. */
  async function shownHours(): Promise<number> {
    const date = (await fetch(`${davit.bootUrl}/boot.ipxe`)).headers.get("date") ?? "";
    return (Date.parse(date) - Date.now()) / 3_600_000;
  }

  async function bootOfOne(): Promise<string> {
    const response = await fetch(`${davit.bootUrl}/ipxe?mac=52-54-00-00-00-01`);
    return response.status === 200 ? (/assets\/\w+/.exec(await response.text())?.[0] ?? "") : String(response.status);
  }

  /** By a client of today, which trusts davit's own authority alone. */
  async function store(method: string, value?: string): Promise<number> {
    const ca = readFileSync(join(folder, "data/certificate/ca.pem"));
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const path = `${davit.storeUrl}/v2/keys/lease`;
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const sent = request(path, { method, ca, headers, agent: false }, (response) => {
      text(response).then(() => resolve(response.statusCode ?? 0), reject);
    });
    sent.on("error", reject).end(value);
    return await promise;
  }

  it.each(["-1h", "+1h"] as const)("by %s: keys end after their time, neither sooner nor later", async (offset) => {
    await start();
    expect(await store("PUT", "value=long&ttl=600")).toBe(201);
    await stepClock(offset);
    expect(await store("GET")).toBe(200);
    expect(await store("PUT", "value=short&ttl=2")).toBe(200);
    await expect.poll(() => store("GET"), patience).toBe(404);
    setClock("+0");
    expect(await store("PUT", "value=again&ttl=600")).toBe(201);
    expect(await store("GET")).toBe(200);
  });

  it("ahead while davit is down: a tombstone is as young as before, and no answer is the less specific Group", async () => {
    await start("--tombstone-ttl", "10m");
    rmSync(join(folder, "manifests/one.yaml"));
    await expect.poll(bootOfOne, patience).toBe("503");
    await davit.stop("SIGKILL");
    setClock("+1h");
    await start("--tombstone-ttl", "10m");
    const response = await fetch(`${davit.bootUrl}/ipxe?mac=52-54-00-00-00-01`);
    expect(await response.text()).toBe("503 group removed a moment ago\n");
  });

  it("ahead: a tombstone keeps its machine from a less specific Group as long as ever", async () => {
    await start("--tombstone-ttl", "10m");
    expect(await bootOfOne()).toBe("assets/disk");
    rmSync(join(folder, "manifests/one.yaml"));
    await expect.poll(bootOfOne, patience).toBe("503");
    await stepClock("+1h");
    expect(await store("PUT", "value=written")).toBe(201);
    expect(await bootOfOne()).toBe("503");
  });

  it("back: a tombstone ends, and does not keep its machine for an hour", async () => {
    await start("--tombstone-ttl", "5s");
    rmSync(join(folder, "manifests/one.yaml"));
    await expect.poll(bootOfOne, patience).not.toBe("assets/disk");
    await stepClock("-1h");
    await expect.poll(bootOfOne, patience).toBe("assets/install");
  });
});
