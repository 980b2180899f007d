/** Groups that select by what machines report, at a davit that does not know all reports. */

import { type IncomingMessage, request, type Server } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DavitBootProcess, type DavitProcess, storeOf, threadsOf } from "../../tools/davit-process.ts";
import { hourMs, InstallWorld, installAssets, ledgerId, macOf } from "../helpers/install-world.ts";
import { startStoreRelay } from "../helpers/store-relay.ts";

const soon = { timeout: 60_000, interval: 50 };
const limitMs = 180_000;

let world: InstallWorld;
const proxies: Server[] = [];
beforeEach(async () => {
  world = await InstallWorld.make();
  await installAssets(world.folder, "once");
});
afterEach(async () => {
  for (const proxy of proxies.splice(0)) {
    proxy.closeAllConnections();
    proxy.close();
  }
  await world.stop();
});

const group = (name: string, profile: string, labels: object, more = "") => `---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: ${name}}
spec:
  profileRef: {name: ${profile}}
  selector: {matchLabels: ${JSON.stringify(labels)}}
${more}
`;
const mac = macAt(1);

function macAt(number: number): string {
  return macOf(number).replaceAll("-", ":");
}

const profiles = `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: once}
spec:
  effect: Install
  install: {then: exit}
  reports: {labels: {os: [installed]}}
  boot: {kernel: /assets/once}
  generic: {inline: "report to {{davit.report}}"}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec:
  effect: Install
  boot: {kernel: /assets/wipe}
---
apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: disk}
spec:
  boot: {local: exit}
`;

/** With the label `os`, each machine boots its disk. Without it, a Profile without `install` overwrites the disk. */
function objects(ledger: string, machines = 1): string {
  const grant = { generation: 1, ledger, until: new Date(Date.now() + hourMs).toISOString() };
  const install = `  install: ${JSON.stringify(grant)}`;
  const groups = Array.from({ length: machines }, (_, at) => {
    const own = { mac: macAt(at + 1) };
    return [
      group(`wipe-${at}`, "wipe", own),
      group(`disk-${at}`, "disk", { ...own, os: "installed" }),
      group(`once-${at}`, "once", { ...own, role: "new" }, install),
    ];
  });
  return [profiles, ...groups.flat()].join("");
}

async function ask({ bootUrl }: DavitBootProcess, path: string, body?: string): Promise<string> {
  const response = await fetch(`${bootUrl}${path}`, {
    method: body === undefined ? "GET" : "POST",
    body: body ?? null,
  });
  return `${response.status} ${(await response.text()).trim()}`;
}
const script = (davit: DavitBootProcess, of = mac) => ask(davit, `/ipxe?mac=${of}`);
/** Asks by a connection of its own: the kernel chooses its thread. */
async function askAnew({ bootUrl }: DavitBootProcess, of: string): Promise<string> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(`${bootUrl}/ipxe?mac=${of}`, { agent: false }, resolve).on("error", reject).end();
  });
  return `${response.statusCode} ${(await text(response)).trim()}`;
}
const disk = "200 #!ipxe\nexit";

/** Installs a machine. @returns the path of its report. */
async function install(davit: DavitBootProcess, of = mac): Promise<string> {
  await expect.poll(() => ask(davit, `/ipxe?mac=${of}&role=new`), soon).toContain("/assets/once");
  await expect.poll(() => script(davit, of), soon).toContain("/assets/wipe");
  return /\/report\/\S+/.exec(await ask(davit, `/generic?mac=${of}&role=new`))?.[0] ?? "";
}

const report = (davit: DavitBootProcess, path: string) => ask(davit, path, "state=installed&label.os=installed");

/** Starts a davit whose ledger has the report of the machine. */
async function serveReported(): Promise<DavitProcess> {
  const davit = await world.serve();
  await world.writeText(objects(await ledgerId(davit)));
  expect(await report(davit, await install(davit))).toMatch(/^200/);
  expect(await script(davit)).toBe(disk);
  return davit;
}

/** Passes on all requests, but those for the ledger only while `isOpen` returns true. */
async function relay(store: URL, isOpen: () => boolean): Promise<string> {
  const isRefused = (target: string) => target.startsWith("/davit/v1/ledger") && !isOpen();
  const { server, url } = await startStoreRelay(store, (target) => (isRefused(target) ? 503 : undefined));
  proxies.push(server);
  return url;
}

describe("a boot thread", { timeout: limitMs }, () => {
  it("knows each report when davit has answered it", async () => {
    const machines = 20;
    const davit = await world.serve(["--boot-threads", "3"]);
    await world.writeText(objects(await ledgerId(davit), machines));
    await threadsOf(davit, 3);
    const paths: string[] = [];
    for (let at = 1; at <= machines; at++) paths.push(await install(davit, macAt(at)));
    for (const [at, path] of paths.entries()) {
      expect(await report(davit, path)).toMatch(/^200/);
      const answers = await Promise.all(Array.from({ length: 40 }, () => askAnew(davit, macAt(at + 1))));
      expect(answers.filter((answer) => answer !== disk)).toEqual([]);
    }
  });
});

describe("a follower", { timeout: limitMs }, () => {
  it.each([["1"], ["2"]])("installs no machine whose report it may not know, with %s boot threads", async (threads) => {
    const davit = await serveReported();
    let isOpen = false;
    const store = await relay(new URL(davit.storeUrl), () => isOpen);
    const args = ["--data-dir", davit.dataDir, "--boot-threads", threads];
    const follower = await world.boot("--store", store, ...args);
    const answers = new Set<string>();
    for (let count = 0; count < 100; count++) {
      answers.add(await script(follower));
      await setTimeout(20);
    }
    expect([...answers].filter((answer) => !answer.startsWith("503"))).toEqual([]);
    isOpen = true;
    await expect.poll(() => script(follower), soon).toBe(disk);
    for (let count = 0; count < 50; count++) expect(await script(follower)).toBe(disk);
  });

  it("installs a machine that has reported nothing", async () => {
    const davit = await world.serve();
    await world.writeText(objects(await ledgerId(davit)));
    const follower = await world.boot(...storeOf(davit));
    await expect.poll(() => script(follower), soon).toContain("/assets/wipe");
  });
});
