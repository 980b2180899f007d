/**
 * Clients of the key API that know all members go on when one stops, or is killed: etcdctl and python-etcd, as Debian
 * has them.
 */

import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePorts } from "../../tools/cluster/ports.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { Etcdctl } from "../clients/etcdctl.ts";
import { type DavitMembers, startDavitMembers } from "../helpers/davit-members.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";

const limitMs = 60_000;
// Of three processes.
const startLimitMs = 180_000;
const soon = { timeout: 15_000 };
// The package is Debian's, for its Python.
const python = "/usr/bin/python3";
const counter = fileURLToPath(new URL("counter.py", import.meta.url));

let members: DavitMembers;

/** Stops the member of a number in order, as an upgrade does. */
async function stopMember(number: number): Promise<void> {
  await members.all[number]?.stop();
}

/** Counts with python-etcd. @param ends member 0 as soon as the client has counted to 10, and member 1 at 40. */
async function expectCounts(ports: readonly number[], ends: (number: number) => Promise<unknown>): Promise<void> {
  const counts = 60;
  const program = spawn(python, ["-B", counter, ports.join(","), String(counts)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const seen: number[] = [];
  const indexes: number[] = [];
  let ended: Promise<unknown> = Promise.resolve();
  for await (const line of createInterface({ input: program.stdout })) {
    const [number = 0, index = 0] = line.split(" ").map(Number);
    seen.push(number);
    indexes.push(index);
    if (number === 10) ended = ends(0);
    if (number === 40) ended = ended.then(() => ends(1));
  }
  await ended;
  expect(seen).toEqual(Array.from({ length: counts }, (_, at) => at + 1));
  expect(indexes).toEqual(indexes.toSorted((a, b) => a - b));
}

describe.skipIf(missing("etcd"))("a client with three endpoints", () => {
  beforeEach(async () => {
    members = await startDavitMembers();
  });
  afterEach(async () => {
    await members?.stop();
  });

  it.skipIf(missing("etcdctl"))(
    "etcdctl lists the members, and changes over when one stops",
    { timeout: limitMs },
    async () => {
      const endpoints = members.all.map(({ port }) => `http://127.0.0.1:${port}`).join(",");
      const run = async (words: string) => {
        const command = new Etcdctl(`--endpoints ${endpoints} ${words}`);
        return { exit: await command.ended(), output: command.output };
      };
      const membersListed = async () => (await run("member list")).output.trim().split("\n");
      // A member registers itself once it serves.
      await expect.poll(membersListed, soon).toHaveLength(3);
      expect((await membersListed()).filter((line) => line.endsWith("isLeader=true"))).toEqual([
        expect.stringContaining("name=davit-0 peerURLs= clientURLs=http://127.0.0.1:"),
      ]);
      expect(await run("set /k first")).toEqual({ exit: 0, output: "first\n" });
      for (const number of [0, 1]) {
        await stopMember(number);
        expect(await run("get --quorum /k")).toMatchObject({ exit: 0, output: number === 0 ? "first\n" : "second\n" });
        expect(await run(`set /k ${number === 0 ? "second" : "third"}`)).toMatchObject({ exit: 0 });
      }
      expect(await run("get --quorum /k")).toEqual({ exit: 0, output: "third\n" });
    },
  );

  it.skipIf(missing("python-etcd"))(
    "python-etcd counts on while members stop, and counts nothing twice",
    { timeout: limitMs },
    async () => {
      await expectCounts(
        members.all.map(({ port }) => port),
        stopMember,
      );
    },
  );
});

describe.skipIf(missing("etcd"))("a client of three davits that are killed", () => {
  let etcd: EtcdMembers;
  let folder: string;
  let ports: readonly number[];
  let davits: readonly DavitProcess[] = [];

  beforeEach(async () => {
    etcd = await startEtcdV3();
    folder = await mkdtemp(join(tmpdir(), "davit-clients-"));
    await mkdir(join(folder, "manifests"));
    ports = await freePorts(3);
    davits = [];
    davits = await Promise.all(ports.map((port) => start(port)));
  }, startLimitMs);
  afterEach(async () => {
    await Promise.all(davits.map((davit) => davit.stop("SIGKILL")));
    await etcd.stop();
    await rm(folder, { recursive: true });
  }, startLimitMs);

  function start(port: number): Promise<DavitProcess> {
    const url = `http://127.0.0.1:${port}`;
    const endpoints = etcd.urls.map(({ origin }) => origin).join(",");
    return startDavit({
      manifests: join(folder, "manifests"),
      dataDir: join(folder, String(port)),
      args: ["--store-etcd-endpoints", endpoints, "--store-address", `127.0.0.1:${port}`, "--store-advertise-url", url],
    });
  }

  const kill = async (number: number) => await davits[number]?.stop("SIGKILL");

  it.skipIf(missing("etcdctl"))("etcdctl changes over", { timeout: limitMs }, async () => {
    const endpoints = ports.map((port) => `http://127.0.0.1:${port}`).join(",");
    const run = async (words: string) => {
      const command = new Etcdctl(`--endpoints ${endpoints} ${words}`);
      return { exit: await command.ended(), output: command.output };
    };
    expect(await run("set /k 0")).toEqual({ exit: 0, output: "0\n" });
    for (const number of [0, 1]) {
      await kill(number);
      expect(await run("get --quorum /k")).toEqual({ exit: 0, output: `${number}\n` });
      expect(await run(`set /k ${number + 1}`)).toMatchObject({ exit: 0 });
    }
    expect(await run("get --quorum /k")).toEqual({ exit: 0, output: "2\n" });
  });

  it.skipIf(missing("python-etcd"))("python-etcd counts on, and counts nothing twice", { timeout: limitMs }, () =>
    expectCounts(ports, kill),
  );
});
