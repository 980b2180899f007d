/** A member that starts while etcd has no quorum: it says so, waits, and serves as soon as etcd can. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/model/json.ts";
import { davitProgram, startDavit } from "../../tools/davit-process.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";

const soon = { timeout: 60_000, interval: 50 };
const reasons = [
  "it has no leader",
  "it has no quorum or is slow",
  "no answer in time",
  "no connection in time",
  "nothing listens there",
].join("|");
const lostQuorum = new RegExp(`^(Opening the log|Reading .*) in etcd: etcd at http://127.0.0.1:[0-9]+: (${reasons})$`);

describe.skipIf(missing("etcd"))("a davit that starts without a quorum of etcd", { timeout: 120_000 }, () => {
  let etcd: EtcdMembers;
  let folder: string;
  beforeEach(async () => {
    etcd = await startEtcdV3({ count: 3 });
    folder = await mkdtemp(join(tmpdir(), "davit-member-start-"));
    await mkdir(join(folder, "manifests"));
  });
  afterEach(async () => {
    await etcd.stop();
    await rm(folder, { recursive: true });
  });

  const endpoints = () => etcd.urls.map(({ origin }) => origin).join(",");
  const start = (log: JsonObject[]) =>
    startDavit({
      manifests: join(folder, "manifests"),
      dataDir: join(folder, "data"),
      args: ["--store-etcd-endpoints", endpoints(), "--store-advertise-url", "http://127.0.0.1:20000"],
      log,
    });
  const waiting = (log: readonly JsonObject[]) => log.filter(({ msg }) => msg === "waiting for etcd");

  it.each([
    { name: "two of three are killed", lose: (two: EtcdMembers["all"]) => Promise.all(two.map((each) => each.kill())) },
    { name: "two of three stand still", lose: async (two: EtcdMembers["all"]) => two.map((each) => each.pause()) },
  ])("waits, and serves as soon as there is one: $name", async ({ name, lose }) => {
    const two = etcd.all.slice(1);
    await lose(two);
    const log: JsonObject[] = [];
    const starting = start(log);
    const said = expect.poll(() => waiting(log).length, soon).toBeGreaterThan(0);
    await Promise.race([said, starting]);
    for (const line of waiting(log)) expect(line).toMatchObject({ reason: expect.stringMatching(lostQuorum) });
    await (name.includes("still") ? two.map((each) => each.resume()) : Promise.all(two.map((each) => each.start())));
    const davit = await starting;
    const body = new URLSearchParams({ value: "1", ttl: "30" });
    expect((await fetch(`${davit.storeUrl}/v2/keys/a`, { method: "PUT", body })).status).toBe(201);
    expect(await davit.stop()).toBe(0);
  });

  it("stops while it waits", async () => {
    await Promise.all(etcd.all.map((each) => each.kill()));
    const words = ["serve", "--manifests", join(folder, "manifests"), "--data-dir", join(folder, "data")];
    const listeners = ["boot", "store", "ops"].flatMap((name) => [`--${name}-address`, "127.0.0.1:0"]);
    const place = ["--store-etcd-endpoints", endpoints(), "--store-advertise-url", "http://127.0.0.1:20000"];
    const child = spawn(process.execPath, [davitProgram, ...words, ...listeners, ...place, "--log-format", "json"]);
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes('"waiting for etcd"')) child.kill("SIGTERM");
    });
    let complaints = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaints += text;
    });
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(said).toContain("nothing listens there");
    expect(complaints).toBe("");
  });
});
