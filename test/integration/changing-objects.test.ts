/**
 * Edits of files, and grants after them, while machines ask all the time, at davit and at a follower. No machine may
 * install what the objects said before an edit that is older than its grant.
 */

import { execFile } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readFile, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";
import { installAssets, ledgerId } from "../helpers/install-world.ts";

const run = promisify(execFile);
const wipes = "wipe_data=1";
/** A machine that has read its config boots its disk. */
const isExpected = /^(install|disk|503 (no permit|objects are changing|install not certain|permit not logged yet))/;

let folder: string;
let davit: DavitProcess;
let follower: DavitBootProcess;
let ledger: string;
let number = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-changing-"));
  for (const name of ["m", "n", "beside"]) await mkdir(join(folder, name));
  await put("m/disk.yaml", object("Profile", "disk", "  boot: {local: exit}\n"));
  await put("n/disk.yaml", object("Profile", "disk2", "  boot: {local: exit}\n"));
  const assets = await installAssets(folder, "k");
  const args = ["--manifests", join(folder, "n"), "--boot-threads", "2", ...assets];
  davit = await startDavit({ manifests: join(folder, "m"), dataDir: join(folder, "data"), args });
  follower = await startDavitBoot([...storeOf(davit), ...assets]);
  ledger = await ledgerId(davit);
});

afterAll(async () => {
  await follower?.stop();
  await davit?.stop();
  await rm(folder, { recursive: true });
});

/** The files of one machine. */
interface Names {
  /** The number of the machine, which is in every name. */
  readonly id: number;
  readonly mac: string;
  /** The path of the Profile. */
  readonly profile: string;
  /** The path of the Group. */
  readonly group: string;
}

interface Case {
  readonly name: string;
  /** Writes the objects, of which none has a grant. */
  readonly before?: (names: Names) => Promise<void>;
  /** Makes the Profile keep data, and then grants the install. */
  readonly steps: (names: Names) => Promise<void>;
  /** True if the Profile is written again and again: no install follows. */
  readonly neverRests?: true;
}

const cases: readonly Case[] = [
  {
    name: "sed -i, the grant 4 s later",
    steps: async (names) => {
      await sed(names.profile);
      await pause(4_000);
      await append(names);
    },
  },
  {
    name: "saved in place, the grant moved in 0.5 s later as an old file",
    steps: async (names) => {
      await writeFile(names.profile, profile(names, "keep_data=1"));
      await pause(500);
      await put(names.group, group(names) + grant());
    },
  },
  {
    name: "sed -i and the grant at once",
    steps: async (names) => {
      await sed(names.profile);
      await append(names);
    },
  },
  {
    name: "vim, the grant 5 s later",
    steps: async (names) => {
      await run("vim", ["-es", "-c", "g/wipe_data/d", "-c", "wq", names.profile]).catch(() => {});
      await pause(5_000);
      await append(names);
    },
  },
  {
    name: "shortened in place, the grant 4 s later",
    steps: async (names) => {
      await writeFile(names.profile, profile(names));
      await pause(4_000);
      await append(names);
    },
  },
  {
    name: "the grant of a Machine, moved in by rsync with an old time",
    steps: async (names) => {
      await writeFile(names.profile, profile(names, "keep_data=1"));
      await put("beside/machine.yaml", machine(names) + grant());
      await run("rsync", ["-t", at("beside/machine.yaml"), at(`m/machine${names.id}.yaml`)]);
    },
  },
  {
    name: "both in one file",
    before: async (names) => {
      await put(names.group, `${profile(names, wipes)}---\n${group(names)}`);
    },
    steps: async (names) => {
      await writeFile(names.group, `${profile(names, "keep_data=1")}---\n${group(names)}`);
      await pause(200);
      await append(names);
    },
  },
  {
    name: "in two manifest directories",
    before: async (names) => {
      await put(`n/p${names.id}.yaml`, profile(names, wipes));
      await put(names.group, group(names));
    },
    steps: async (names) => {
      await writeFile(at(`n/p${names.id}.yaml`), profile(names, "keep_data=1"));
      await put(names.group, group(names) + grant());
    },
  },
  {
    name: "a ConfigMap with the args of a config",
    before: async (names) => {
      await put(
        names.profile,
        profile(names, "x=1").replace(
          "boot:",
          `generic: {templateFrom: {configMapKeyRef: {name: t${names.id}, key: a}}}\n  boot:`,
        ),
      );
      await put(`m/t${names.id}.yaml`, texts(names, wipes));
      await put(names.group, group(names));
    },
    steps: async (names) => {
      await writeFile(at(`m/t${names.id}.yaml`), texts(names, "keep_data=1"));
      await put(names.group, group(names) + grant());
    },
  },
  {
    name: "git checkout of both files",
    before: async (names) => {
      const repository = at(`m/r${names.id}`);
      await mkdir(repository);
      const git = (...words: readonly string[]) =>
        run("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd: repository });
      await git("init", "-q");
      await writeFile(join(repository, "p.yaml"), profile(names, "keep_data=1"));
      await writeFile(join(repository, "g.yaml"), group(names) + grant());
      await git("add", ".");
      await git("commit", "-qm", "new");
      await writeFile(join(repository, "p.yaml"), profile(names, wipes));
      await writeFile(join(repository, "g.yaml"), group(names));
      await git("commit", "-qam", "old");
    },
    steps: async ({ id }) => {
      await run("git", ["checkout", "-q", "HEAD~1"], { cwd: at(`m/r${id}`) });
    },
  },
  {
    name: "a link that leads to another version",
    before: async (names) => {
      const versions = at(`beside/v${names.id}`);
      for (const [version, args, more] of [
        ["1", wipes, ""],
        ["2", "keep_data=1", grant()],
      ] as const) {
        await mkdir(join(versions, version), { recursive: true });
        await writeFile(join(versions, version, "p.yaml"), profile(names, args));
        await writeFile(join(versions, version, "g.yaml"), group(names) + more);
      }
      await symlink(join(versions, "1"), at(`m/link${names.id}`));
    },
    steps: async ({ id }) => {
      await symlink(at(`beside/v${id}/2`), at(`beside/link${id}`));
      await rename(at(`beside/link${id}`), at(`m/link${id}`));
    },
  },
  {
    name: "the Profile's file cannot be read while it is edited",
    steps: async (names) => {
      await rm(names.profile);
      await symlink("nothing", names.profile);
      await writeFile(at("beside/p.yaml"), profile(names, "keep_data=1"));
      await put(names.group, group(names) + grant());
      await pause(1_000);
      await rename(at("beside/p.yaml"), names.profile);
    },
  },
  {
    name: "the Profile's folder moves out, and another one in",
    before: async (names) => {
      await mkdir(at(`m/d${names.id}`));
      await put(`m/d${names.id}/p.yaml`, profile(names, wipes));
      await put(names.group, group(names));
    },
    steps: async (names) => {
      await mkdir(at(`beside/d${names.id}`));
      await put(`beside/d${names.id}/p.yaml`, profile(names, "keep_data=1"));
      await rename(at(`m/d${names.id}`), at(`beside/old${names.id}`));
      await put(names.group, group(names) + grant());
      await rename(at(`beside/d${names.id}`), at(`m/d${names.id}`));
    },
  },
  {
    name: "again and again, then the grant",
    neverRests: true,
    steps: async (names) => {
      for (let write = 0; write < 16; write++) {
        await writeFile(names.profile, profile(names, "keep_data=1"));
        if (write === 1) await put(names.group, group(names) + grant());
        await pause(1_000);
      }
    },
  },
];

describe("no machine installs by an older version than the one before its grant", () => {
  it.each(cases)("$name", { timeout: 120_000 }, async ({ before = write, steps, neverRests }) => {
    const names = named();
    await before(names);
    await settled(names, "503 no permit to install");
    const answers = asking(names);
    await steps(names);
    const installs = () => [...answers.seen].filter((each) => each.startsWith("install"));
    if (neverRests) expect(installs()).toEqual([]);
    await expect.poll(() => installs().length, { timeout: 20_000, interval: 50 }).toBeGreaterThan(0);
    await answers.stop();
    expect(installs().filter((each) => each.includes(wipes))).toEqual([]);
    expect([...answers.seen].filter((each) => !isExpected.test(each))).toEqual([]);
  });

  it("once the files of its raw installer are written again and again", { timeout: 60_000 }, async () => {
    const names = named();
    const raw = `  effect: Install\n  boot: {kernel: /assets/k, args: [${wipes}]}\n`;
    await put(names.profile, object("Profile", `p${names.id}`, raw));
    await put(names.group, group(names));
    await settled(names, `install ${wipes}`);
    const disk = group(names).replace(`{name: p${names.id}}`, "{name: disk}");
    await writeFile(names.group, disk);
    await settled(names, "503 objects are changing");
    const answers = asking(names);
    for (let count = 0; count < 14; count++) {
      await pause(1_000);
      await writeFile(names.group, disk);
    }
    await answers.stop();
    expect([...answers.seen]).toEqual(["503 objects are changing"]);
    await expect.poll(() => ask(follower, names), { timeout: 5_000, interval: 50 }).toBe("disk");
  });
});

/** Asks davit and its follower all the time. */
function asking(names: Names) {
  const seen = new Set<string>();
  let isOver = false;
  const asked = Promise.all(
    [davit, follower].map(async (each) => {
      while (!isOver) {
        seen.add(await ask(each, names));
        await pause(5);
      }
    }),
  );
  const stop = async () => {
    isOver = true;
    await asked;
  };
  return { seen, stop };
}

/** Returns what a machine gets: its arguments and its config, or the status with its text. */
async function ask({ bootUrl }: Pick<DavitBootProcess, "bootUrl">, { mac }: Names): Promise<string> {
  const response = await fetch(`${bootUrl}/ipxe?mac=${mac.replaceAll(":", "-")}`);
  const body = await response.text();
  if (response.status !== 200) return `${response.status} ${body.trim()}`.replace(/^503 503/, "503");
  if (!body.includes("/assets/k")) return "disk";
  const config = await fetch(`${bootUrl}/generic?mac=${mac.replaceAll(":", "-")}`);
  const text = config.status === 200 ? await config.text() : "";
  const args = [...(/(\w+_data=1)/.exec(body + text)?.slice(1) ?? [])];
  return ["install", ...args].join(" ");
}

async function settled(names: Names, answer: string): Promise<void> {
  const options = { timeout: 20_000, interval: 20 };
  for (const each of [davit, follower]) await expect.poll(() => ask(each, names), options).toContain(answer);
}

function named(): Names {
  number += 1;
  const id = number;
  const mac = `52:54:00:00:00:${String(id).padStart(2, "0")}`;
  return { id, mac, profile: at(`m/p${id}.yaml`), group: at(`m/g${id}.yaml`) };
}

async function write(names: Names): Promise<void> {
  await put(names.profile, profile(names, wipes));
  await put(names.group, group(names));
}

/** Moves in a file that was finished a minute ago. */
async function put(name: string, text: string): Promise<void> {
  const beside = at("beside/.next");
  await writeFile(beside, text);
  const time = Date.now() / 1_000 - 60;
  await utimes(beside, time, time);
  await rename(beside, name.startsWith("/") ? name : at(name));
}

const at = (name: string) => join(folder, name);
const sed = (path: string) => run("sed", ["-i", "/wipe_data/d", path]);
const append = async ({ group: path }: Names) => {
  expect(await readFile(path, "utf8")).toMatch(/\n$/);
  await appendFile(path, grant());
};

function grant(): string {
  const until = new Date(Date.now() + 24 * 3_600_000).toISOString();
  return `  install: {generation: 1, ledger: "${ledger}", until: "${until}"}\n`;
}

function object(kind: string, name: string, spec: string): string {
  return `apiVersion: davit.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\nspec:\n${spec}`;
}

function profile({ id }: Names, args?: string): string {
  const plan = "  effect: Install\n  install: {then: exit, timeout: 1h}\n";
  const words = args === undefined ? "" : `      - ${args}\n`;
  return object(
    "Profile",
    `p${id}`,
    `${plan}  boot:\n    kernel: /assets/k\n    args:\n      - console=ttyS0\n${words}`,
  );
}

function group({ id, mac }: Names): string {
  return object("Group", `g${id}`, `  profileRef: {name: p${id}}\n  selector: {matchLabels: {mac: "${mac}"}}\n`);
}

function machine({ id, mac }: Names): string {
  return object("Machine", `m${id}`, `  identity: {macs: ["${mac}"]}\n`);
}

function texts({ id }: Names, text: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: t${id}}\ndata:\n  a: ${text}\n`;
}
