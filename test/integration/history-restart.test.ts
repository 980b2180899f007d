/** The history of boots after davit was killed, stopped, or started on a journal that cannot be used. */

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  type DavitBootProcess,
  type DavitProcess,
  startDavit,
  startDavitBoot,
  storeOf,
} from "../../tools/davit-process.ts";

const limitMs = 120_000;
const soon = { timeout: 30_000, interval: 50 };

const objects = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec: {boot: {kernel: /assets/disk}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: running}
spec: {profileRef: {name: disk}, selector: {matchLabels: {mac: "52:54:00:00:00:01"}}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: held}
spec: {profileRef: {name: disk}, hold: true, selector: {matchLabels: {mac: "52:54:00:00:00:02"}}}
`;

let folder: string;
let manifests: string;
let dataDir: string;
const running: DavitBootProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "davit-history-"));
  manifests = join(folder, "manifests");
  dataDir = join(folder, "data");
  await mkdir(manifests);
  await writeFile(join(manifests, "objects.yaml"), objects);
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((davit) => davit.stop("SIGKILL")));
  await rm(folder, { recursive: true });
});

async function start(): Promise<DavitProcess> {
  const davit = await startDavit({ manifests, dataDir });
  running.push(davit);
  return davit;
}

/** A boot, a refused one, one that no Group matches, and a name that a terminal must not get. */
async function bootAll({ bootUrl }: DavitBootProcess): Promise<readonly number[]> {
  const statuses: number[] = [];
  const ask = async (path: string) => {
    const answer = await fetch(`${bootUrl}${path}`);
    await answer.arrayBuffer();
    statuses.push(answer.status);
  };
  await ask("/boot.ipxe");
  await ask("/ipxe?mac=52:54:00:00:00:01&hostname=a%1b%5b2J%0ab");
  for (let times = 0; times < 3; times++) await ask("/ipxe?mac=52:54:00:00:00:02");
  await ask("/ipxe?mac=52:54:00:00:00:03");
  return statuses;
}

interface HistoryAnswer {
  readonly machines: readonly { readonly labels: object; readonly boots: readonly { readonly requests: object[] }[] }[];
}

/** What `/history` says of each machine, without its times: two clocks have no common fraction of a millisecond. */
async function historyOf({ opsUrl }: DavitBootProcess): Promise<readonly object[]> {
  const found: object[] = [];
  for (const end of ["01", "02", "03"]) {
    const answer = await fetch(`${opsUrl}/history?mac=52:54:00:00:00:${end}`, {
      headers: { accept: "application/json" },
    });
    if (!answer.ok) continue;
    const { machines } = (await answer.json()) as HistoryAnswer;
    found.push(
      ...machines.map(({ labels, boots }) => ({
        labels,
        requests: boots.flatMap(({ requests }) => requests.map((request) => ({ ...request, at: "", lastAt: "" }))),
      })),
    );
  }
  return found;
}

async function journalText(directory: string): Promise<string> {
  const names = await readdir(directory).catch(() => []);
  const texts = await Promise.all(names.map((name) => readFile(join(directory, name), "latin1")));
  return texts.join("");
}

it("is the same after a kill as soon as a batch is written, and with the reasons of refusals", {
  timeout: limitMs,
}, async () => {
  const davit = await start();
  expect(await bootAll(davit)).toEqual([200, 200, 503, 503, 503, 404]);
  await vi.waitFor(
    async () => expect(await journalText(join(dataDir, "history"))).toContain("52:54:00:00:00:03"),
    soon,
  );
  const shown = await historyOf(davit);
  await davit.stop("SIGKILL");
  const next = await start();
  expect(await historyOf(next)).toEqual(shown);
  expect(JSON.stringify(shown)).toContain(`"reason":"held"`);
  expect(await (await fetch(`${next.opsUrl}/history`)).text()).not.toContain("\u001b");
});

it("loses nothing at a stop right after the answers", { timeout: limitMs }, async () => {
  const davit = await start();
  await bootAll(davit);
  const shown = await historyOf(davit);
  expect(shown).toHaveLength(3);
  await fetch(`${davit.bootUrl}/ipxe?mac=52:54:00:00:00:01&last=1`);
  await davit.stop();
  const text = await journalText(join(dataDir, "history"));
  expect(text.match(/"ipxe"/g)).toHaveLength(6);
  const next = await start();
  expect(await historyOf(next)).toHaveLength(3);
});

it("does not keep davit from booting machines if its journal cannot be used", { timeout: limitMs }, async () => {
  const davit = await start();
  await davit.stop();
  await rm(join(dataDir, "history"), { recursive: true, force: true });
  await writeFile(join(dataDir, "history"), "a file in place of the directory");
  const next = await start();
  expect((await bootAll(next))[1]).toBe(200);
  expect(await historyOf(next)).toHaveLength(3);
  await vi.waitFor(async () => {
    expect(await (await fetch(`${next.opsUrl}/metrics`)).text()).toContain("davit_boot_history_writable 0");
  }, soon);
});

it("of a follower is beside its copy, and only in memory without one", { timeout: limitMs }, async () => {
  const davit = await start();
  const args = ["--copy-file", join(folder, "copy")];
  const follow = async (more: readonly string[]) => {
    const follower = await startDavitBoot([...storeOf(davit), ...more]);
    running.push(follower);
    return follower;
  };
  const follower = await follow(args);
  await bootAll(follower);
  const shown = await historyOf(follower);
  await follower.stop();
  expect(await historyOf(await follow(args))).toEqual(shown);
  const without = await follow([]);
  expect(await historyOf(without)).toEqual([]);
  expect(await (await fetch(`${without.opsUrl}/metrics`)).text()).not.toMatch(/^davit_boot_history_writable/m);
});
