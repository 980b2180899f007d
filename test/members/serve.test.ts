/**
 * Three davits that share a store in etcd, and machines that ask all of them: whatever happens to a davit, no answer is
 * older than one that was given before by the same davit, and every Install is what the objects say.
 */

import { createHash, randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePorts } from "../../tools/cluster/ports.ts";
import { type DavitBootProcess, type DavitProcess, startDavit, startDavitBoot } from "../../tools/davit-process.ts";
import { file, startFileServer } from "../assets/file-server.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { missing } from "../helpers/requirements.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 180_000;
const installing = "52:54:00:00:00:02";
const running = "52:54:00:00:00:01";

const objectsWith = (image: string, hold = false) => `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec: {boot: {kernel: /assets/disk}}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec: {effect: Install, boot: {kernel: /assets/${image}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: running}
spec: {profileRef: {name: disk}, selector: {matchLabels: {mac: "${running}"}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: "new"}
spec: {profileRef: {name: wipe}, hold: ${hold}, selector: {matchLabels: {mac: "${installing}"}}}
`;

let folder: string;
let etcd: EtcdMembers;
const davits: DavitBootProcess[] = [];

async function write(objects: string): Promise<void> {
  await writeFile(join(folder, "next.yaml"), objects);
  await rename(join(folder, "next.yaml"), join(folder, "manifests", "objects.yaml"));
}

async function start(number: number, args: readonly string[] = []): Promise<DavitProcess> {
  const davit = await startDavit({
    manifests: join(folder, "manifests"),
    dataDir: join(folder, `data-${number}`),
    args: [
      ...["--store-etcd-endpoints", etcd.urls.map(({ origin }) => origin).join(",")],
      // Members are distinguished by this URL.
      ...["--store-advertise-url", `http://127.0.0.1:${20_000 + number}`],
      ...args,
    ],
  });
  davits.push(davit);
  return davit;
}

/** What a machine gets: the image of its kernel, "held", or the status. */
async function bootOf({ bootUrl }: DavitBootProcess, mac: string): Promise<string> {
  const response = await fetch(`${bootUrl}/ipxe?mac=${mac}`);
  const text = await response.text();
  if (response.status === 200) return /assets\/(\S+)/.exec(text)?.[1] ?? text;
  return text.includes("held") ? "held" : String(response.status);
}

/** The ledger's store has a leader of its own. */
const isLeader = ({ log }: DavitProcess) => {
  const count = (text: string) => log.filter(({ msg, part }) => msg === text && part === "store").length;
  return count("elected leader") > count("leads no more");
};

/** Asks a davit again and again, and collects the answers that differ from the one before. */
function poll(davit: DavitBootProcess) {
  const answers: string[] = [];
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      const answer = await bootOf(davit, installing).catch(() => "gone");
      if (answers.at(-1) !== answer) answers.push(answer);
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  return {
    end: async () => {
      isOver = true;
      await done;
      return answers;
    },
  };
}

describe.skipIf(missing("etcd"))("three davits on one etcd", () => {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "davit-members-"));
    await mkdir(join(folder, "manifests"));
    await write(objectsWith("wipe-1"));
    etcd = await startEtcdV3();
  });

  afterEach(async () => {
    await Promise.all(davits.splice(0).map((davit) => davit.stop("SIGKILL")));
    await etcd.stop();
    await rm(folder, { recursive: true });
  });

  it("all install what the objects say, and go on without the leader from a fresh list", {
    timeout: limitMs,
  }, async () => {
    const all = await Promise.all([1, 2, 3].map((number) => start(number)));
    for (const davit of all) {
      await expect.poll(() => bootOf(davit, installing), soon).toBe("wipe-1");
      expect(await bootOf(davit, running)).toBe("disk");
    }
    const leader = all.find(isLeader);
    expect(all.filter(isLeader)).toHaveLength(1);
    const others = all.filter((davit) => davit !== leader);
    const polls = others.map(poll);
    await leader?.stop("SIGKILL");
    // No davit reads the source now, until another one leads.
    await write(objectsWith("wipe-2"));
    for (const davit of others) await expect.poll(() => bootOf(davit, installing), soon).toBe("wipe-2");
    expect(others.filter(isLeader)).toHaveLength(1);
    await write(objectsWith("wipe-2", true));
    for (const davit of others) await expect.poll(() => bootOf(davit, installing), soon).toBe("held");
    for (const { end } of polls) {
      const answers = (await end()).filter((answer) => answer !== "503");
      expect(answers.slice(-2)).toEqual(["wipe-2", "held"]);
      expect(new Set(answers)).toEqual(new Set(["wipe-1", "wipe-2", "held"]));
      // Never back to an older one.
      expect(answers.lastIndexOf("wipe-1")).toBeLessThan(answers.indexOf("wipe-2"));
      expect(answers.lastIndexOf("wipe-2")).toBeLessThan(answers.indexOf("held"));
    }
  });

  /** Three members. @param more further words of each, by its number. */
  async function startMembers(more: (number: number) => readonly string[] = () => []) {
    const tokens = join(folder, "tokens");
    await writeFile(tokens, "token-of-followers\n", { mode: 0o600 });
    const ports = await freePorts(4);
    const startAt = (number: number) =>
      start(number, [
        ...["--store-address", `127.0.0.1:${ports[number]}`, "--store-token-file", tokens],
        ...["--limit", "store-etcd-lease=2s"],
        ...more(number),
      ]);
    const started = await Promise.all([0, 1, 2].map(async (number) => await startAt(number)));
    const members = new Map(started.map((davit) => [davit.storeUrl, davit]));
    /** Starts a davit boot that follows them. */
    const follow = async (words: readonly string[] = []) => {
      const store = ["--store", [...members.keys()].join(","), "--store-token-file", tokens];
      const follower = await startDavitBoot([...store, ...words]);
      davits.push(follower);
      return follower;
    };
    return { members, startAt, follow };
  }

  it("show the boots of a davit boot, at the leader", { timeout: limitMs }, async () => {
    const { members, follow } = await startMembers();
    const follower = await follow();
    const showing = async (mac: string) => {
      const shown = await Promise.all(
        [...members].map(async ([origin, { opsUrl }]) => {
          const answer = await fetch(`${opsUrl}/history?mac=${mac}`);
          return (await answer.text()).includes("  via ") ? [origin] : [];
        }),
      );
      return shown.flat();
    };
    expect(await bootOf(follower, running)).toBe("disk");
    await expect.poll(() => showing(running), soon).toHaveLength(1);
    const [first = ""] = await showing(running);
    await members.get(first)?.stop("SIGKILL");
    members.delete(first);
    await bootOf(follower, installing);
    await expect.poll(() => showing(installing), { ...soon, timeout: 90_000 }).toHaveLength(1);
  });

  it("are followed by a davit boot, each in turn, and it never goes back", { timeout: limitMs }, async () => {
    const { members, startAt, follow } = await startMembers();
    const follower = await follow();
    const followed = () => String(follower.log.findLast(({ msg }) => msg === "following the store")?.store);
    await expect.poll(() => bootOf(follower, installing), soon).toBe("wipe-1");
    const { end } = poll(follower);
    const images = ["wipe-1"];
    for (const round of [2, 3, 4]) {
      const origin = followed();
      await members.get(origin)?.stop("SIGKILL");
      images.push(`wipe-${round}`);
      await write(objectsWith(`wipe-${round}`));
      await expect.poll(() => bootOf(follower, installing), soon).toBe(`wipe-${round}`);
      await expect.poll(followed).not.toBe(origin);
      members.set(origin, await startAt([...members.keys()].indexOf(origin)));
    }
    expect((await end()).filter((answer) => answer !== "503")).toEqual(images);
  });

  it("give a davit boot the assets of Profiles while one of them is there", { timeout: limitMs }, async () => {
    const content = randomBytes(1_000_000);
    const server = await startFileServer([file(content)]);
    const place = (name: string) => {
      const directory = join(folder, `assets-${name}`);
      mkdirSync(directory);
      return ["--assets-dir", directory];
    };
    const sha256 = createHash("sha256").update(content).digest("hex");
    const asset = JSON.stringify({ name: "disk", url: `${server.url}/disk`, sha256 });
    await write(objectsWith("wipe-1").replace("/assets/disk}", `/assets/disk}, assets: [${asset}]`));
    const { members, follow } = await startMembers((number) => [
      ...place(`${number}`),
      ...["--fetch-assets-from", new URL(server.url).host],
    ]);
    // Each member fetches for itself.
    const statuses = () =>
      Promise.all([...members.values()].map(async ({ bootUrl }) => (await fetch(`${bootUrl}/assets/disk`)).status));
    await expect.poll(statuses, soon).toEqual([200, 200, 200]);
    for (const davit of [...members.values()].slice(0, 2)) await davit.stop("SIGKILL");
    const follower = await follow([...place("follower"), "--fetch-assets"]);
    const got = async () => Buffer.from(await (await fetch(`${follower.bootUrl}/assets/disk`)).arrayBuffer());
    await expect.poll(async () => (await got()).equals(content), soon).toBe(true);
    expect(server.ranges).toHaveLength(3);
    server.close();
  });

  it("refuses a data directory that has a store", { timeout: limitMs }, async () => {
    const dataDir = join(folder, "data-1");
    const alone = await startDavit({ manifests: join(folder, "manifests"), dataDir });
    await alone.stop();
    await expect(start(1)).rejects.toThrow(/Two stores: .* has one, and --store-etcd-endpoints names another/);
    // As a move leaves it that was killed before etcd had the store: a new one would hide the keys.
    await writeFile(join(dataDir, "moved"), "/davit/ in etcd\n");
    const empty = ["--store-etcd-prefix", "/nothing/"];
    await expect(start(1, empty)).rejects.toThrow(/there is no store at \/nothing\/, and that of the data directory/);
    await rm(dataDir, { recursive: true });
    await start(1, empty);
  });
});
