/** Clients of the key API that know all members go on when one stops: etcdctl and python-etcd, as Debian has them. */

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Etcdctl } from "../clients/etcdctl.ts";
import { type DavitMembers, startDavitMembers } from "../helpers/davit-members.ts";
import { missing } from "../helpers/requirements.ts";

const limitMs = 60_000;
const soon = { timeout: 15_000 };
// The package is Debian's, for its Python.
const python = "/usr/bin/python3";
const counter = fileURLToPath(new URL("counter.py", import.meta.url));

let members: DavitMembers;

/** Stops the member of a number in order, as an upgrade does. */
async function stopMember(number: number): Promise<void> {
  await members.all[number]?.stop();
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
      const ports = members.all.map(({ port }) => port).join(",");
      const counts = 60;
      const program = spawn(python, ["-B", counter, ports, String(counts)], { stdio: ["ignore", "pipe", "inherit"] });
      const seen: number[] = [];
      const indexes: number[] = [];
      let stopped = Promise.resolve();
      for await (const line of createInterface({ input: program.stdout })) {
        const [number = 0, index = 0] = line.split(" ").map(Number);
        seen.push(number);
        indexes.push(index);
        if (number === 10) stopped = stopMember(0);
        if (number === 40) stopped = stopped.then(() => stopMember(1));
      }
      await stopped;
      expect(seen).toEqual(Array.from({ length: counts }, (_, at) => at + 1));
      expect(indexes).toEqual(indexes.toSorted((a, b) => a - b));
    },
  );
});
