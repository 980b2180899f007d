/** What davits that are members of one store lose, or find: more faults of `faults.ts`. */

import { execFile } from "node:child_process";
import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { EtcdClient, EtcdError } from "../packages/etcd-client/src/etcd-client.ts";
import { systemClock } from "../src/lib/clock.ts";
import type { EtcdMember, EtcdMembers } from "../test/helpers/etcd-v3.ts";
import { silentLog } from "../test/helpers/test-store.ts";
import type { DavitProcess } from "../tools/davit-process.ts";
import type { DavitMembers, DavitMembersOptions } from "./davit-members.ts";
import { writeUntilSnapshot } from "./store-members.ts";

export interface MembersFault {
  readonly name: string;
  /** Returns what else is worth a line. @param lost gets the number of a davit that cannot answer. */
  readonly run: (members: DavitMembers, lost: (number: number) => void) => Promise<string>;
  readonly options?: DavitMembersOptions;
}

const pausedMs = 12_000;
const hourMs = 3_600_000;

const changedMac = "52:54:00:00:00:99";
const changedObjects = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: changed}
spec: {boot: {kernel: /assets/changed}}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: changed}
spec: {profileRef: {name: changed}, selector: {matchLabels: {mac: "${changedMac}"}}}
`;

export const membersFaults: readonly MembersFault[] = [
  { name: "no fault", run: () => pause(pausedMs) },
  {
    name: "etcd's leader is killed",
    run: async ({ etcd }) => {
      const leader = await leaderOfEtcd(etcd.all);
      await leader.kill();
      await pause(pausedMs);
      await leader.start();
      return "";
    },
  },
  {
    name: "etcd's leader is paused for 12 s",
    run: async ({ etcd }) => await standStill([await leaderOfEtcd(etcd.all)]),
  },
  {
    name: "two etcds are paused for 12 s",
    run: async (members) => {
      await standStill(members.etcd.all.slice(1));
      return `writes work again after ${await writtenAgain(members)}`;
    },
  },
  { name: "a davit is killed", run: async (members, lost) => await killed(members, lost, false) },
  { name: "the davit that leads is killed", run: async (members, lost) => await killed(members, lost, true) },
  { name: "a davit is paused for two snapshots", run: leftBehind },
  { name: "etcd has reached its quota", run: withoutRoom, options: { quotaBytes: 64 * 2 ** 20 } },
  { name: "etcd is restored from an older copy", run: restored },
  {
    name: "the clock of the davit that leads is an hour ahead, then it is killed",
    run: async (members, lost) => {
      const ends = await endsOfKeys(members);
      const note = await killed(members, lost, true);
      return `keys with a ttl of 2 s ended after ${ends}; ${note}`;
    },
    options: { clockOffMs: (number) => (number === 0 ? hourMs : 0) },
  },
];

async function leaderOfEtcd(all: readonly EtcdMember[]): Promise<EtcdMember> {
  for (const member of all) {
    const metrics = await (await fetch(new URL("/metrics", member.url))).text();
    if (/^etcd_server_is_leader 1$/m.test(metrics)) return member;
  }
  throw new Error("etcd has no leader");
}

async function standStill(some: readonly EtcdMember[]): Promise<string> {
  for (const member of some) member.pause();
  await pause(pausedMs);
  for (const member of some) member.resume();
  return "";
}

function leadingOf(all: readonly DavitProcess[]): number {
  const isLeading = ({ log }: DavitProcess) =>
    log.filter(({ msg }) => msg === "elected leader").length > log.filter(({ msg }) => msg === "leads no more").length;
  return all.findIndex(isLeading);
}

/** Kills a davit: how long until a key with a ttl of 1 s ends, and until a changed object is what machines get. */
async function killed(
  { all, manifests, start }: DavitMembers,
  lost: (number: number) => void,
  isLeader: boolean,
): Promise<string> {
  const leading = leadingOf(all);
  const number = isLeader ? leading : (leading + 1) % all.length;
  const other = all[(number + 1) % all.length];
  lost(number);
  const body = new URLSearchParams({ value: "1", ttl: "1" });
  const { node } = Object(await (await fetch(`${other?.storeUrl}/v2/keys/short`, { method: "PUT", body })).json());
  const startMs = performance.now();
  await all[number]?.stop("SIGKILL");
  await writeFile(join(manifests, "fault.yaml"), changedObjects);
  const ended = fetch(`${other?.storeUrl}/v2/keys/short?wait=true&waitIndex=${Number(node.modifiedIndex) + 1}`)
    .then((response) => response.text())
    .then(() => since(startMs));
  const changed = await changeOf(other, startMs);
  const note = `a change of objects arrived after ${changed}; the key ended after ${await ended}`;
  await start(number);
  return note;
}

/** A davit stands still until the others have begun two epochs: how long until it has what they have. */
async function leftBehind({ all }: DavitMembers, lost: (number: number) => void): Promise<string> {
  const leader = all[leadingOf(all)];
  const number = (leadingOf(all) + 1) % all.length;
  const behind = all[number];
  if (leader === undefined || behind === undefined) throw new Error("no davit leads");
  lost(number);
  process.kill(behind.pid, "SIGSTOP");
  try {
    for (let snapshots = 0; snapshots < 3; snapshots++) await writeUntilSnapshot(leader);
  } finally {
    // A davit that stands still could not be stopped.
    process.kill(behind.pid, "SIGCONT");
  }
  const startMs = performance.now();
  const wanted = await indexOf(leader);
  while ((await indexOf(behind)) < wanted) await pause(20);
  return `it has caught up after ${since(startMs)}`;
}

async function indexOf({ storeUrl }: DavitProcess): Promise<number> {
  const response = await fetch(`${storeUrl}/v2/keys/`);
  await response.text();
  return Number(response.headers.get("x-etcd-index"));
}

function since(startMs: number): string {
  return `${Math.round(performance.now() - startMs)} ms`;
}

async function changeOf(davit: DavitProcess | undefined, startMs: number): Promise<string> {
  for (;;) {
    const response = await fetch(`${davit?.bootUrl}/ipxe?mac=${changedMac}`);
    if ((await response.text()).includes("/assets/changed")) return since(startMs);
    await pause(20);
  }
}

async function pause(durationMs: number): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, durationMs));
  return "";
}

/** How long until each of the davits has taken a write. Tries end after a second. */
async function writtenAgain({ all }: DavitMembers): Promise<string> {
  const startMs = performance.now();
  const writes = all.map(async ({ storeUrl }, number) => {
    while (!(await isWritten(`${storeUrl}/v2/keys/again/${number}`))) await pause(20);
    return since(startMs);
  });
  return (await Promise.all(writes)).join(", ");
}

async function isWritten(url: string): Promise<boolean> {
  const body = new URLSearchParams({ value: "1" });
  try {
    const response = await fetch(url, { method: "PUT", body, signal: AbortSignal.timeout(1_000) });
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}

/** How long keys with a ttl of two seconds last that each of the davits writes. */
async function endsOfKeys({ all }: DavitMembers): Promise<string> {
  const ends = all.map(async ({ storeUrl }, number) => {
    const body = new URLSearchParams({ value: "1", ttl: "2" });
    const url = `${storeUrl}/v2/keys/ends/${number}`;
    const startMs = performance.now();
    const { node } = Object(await (await fetch(url, { method: "PUT", body })).json());
    await (await fetch(`${url}?wait=true&waitIndex=${Number(node.modifiedIndex) + 1}`)).text();
    return since(startMs);
  });
  return (await Promise.all(ends)).join(", ");
}

/** Others fill etcd; then the operator defragments it and clears the alarm. */
async function withoutRoom(members: DavitMembers): Promise<string> {
  const { urls } = members.etcd;
  const client = EtcdClient.open({ endpoints: urls, clock: systemClock, log: silentLog, random: () => 0 });
  try {
    for (let at = 0; ; at++) {
      await client.txn({ success: [{ put: { key: `ballast/${at}`, value: Buffer.alloc(500_000, at) } }] });
    }
  } catch (error) {
    if (!(error instanceof EtcdError) || error.reason !== "noSpace") throw error;
  }
  await pause(pausedMs / 2);
  const [first] = members.all;
  const readyz = await (await fetch(`${first?.opsUrl}/readyz?verbose`)).text();
  await client.deleteRange({ key: "ballast/", end: "ballast0" });
  await client.compact((await client.status()).header.revision);
  client.close();
  for (const url of urls) await etcdctl(url, "defrag");
  const [url] = urls;
  if (url !== undefined) await etcdctl(url, "alarm", "disarm");
  const said = /quota.*/.exec(readyz)?.[0] ?? "nothing";
  return `writes work again ${await writtenAgain(members)} after the alarm is cleared; /readyz says: ${said}`;
}

async function etcdctl(url: URL, ...words: readonly string[]): Promise<void> {
  const env = { ...process.env, ETCDCTL_API: "3" };
  await promisify(execFile)("etcdctl", ["--endpoints", url.origin, ...words], { env });
}

/** An operator brings back an older copy of etcd's data, and starts every davit anew. */
async function restored(members: DavitMembers): Promise<string> {
  const { etcd, all, start } = members;
  const forEach = async (change: (dataDir: string) => Promise<unknown>) => await changeEtcd(etcd, change);
  await forEach((dataDir) => cp(dataDir, `${dataDir}-copy`, { recursive: true }));
  await pause(pausedMs);
  await forEach(async (dataDir) => {
    await rm(dataDir, { recursive: true });
    await cp(`${dataDir}-copy`, dataDir, { recursive: true });
  });
  await pause(pausedMs);
  const lost = all.filter(({ log }) => log.some(({ msg }) => msg === "log is lost")).length;
  const written = await Promise.all(all.map(({ storeUrl }) => isWritten(`${storeUrl}/v2/keys/again/1`)));
  const taken = written.filter(Boolean).length;
  for (const davit of all) await davit.stop();
  const startMs = performance.now();
  for (const number of all.keys()) await start(number);
  const note = `${lost} davits lost their log, and ${taken} took a write`;
  return `${note}; all started anew after ${since(startMs)}, and wrote ${await writtenAgain(members)} later`;
}

async function changeEtcd({ all }: EtcdMembers, change: (dataDir: string) => Promise<unknown>): Promise<void> {
  await Promise.all(all.map((member) => member.end()));
  for (const { dataDir } of all) await change(dataDir);
  await Promise.all(all.map((member) => member.start()));
}
