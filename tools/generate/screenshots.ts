/**
 * `make screenshots`: takes the console's pictures, docs/console/*.png, from a run of davit beside a throw-away API
 * server with machines that boot, wait, install and fail. It needs Chromium and `make cluster-tools`.
 */

import { mkdir, mkdtemp, open, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Page } from "playwright-core";
import { type Cluster, startCluster } from "../cluster/cluster.ts";
import { type DavitProcess, startDavit } from "../davit-process.ts";
import { openChromium } from "./browser.ts";
import * as fleet from "./screenshot-fleet.ts";

const folder = join(import.meta.dirname, "../../docs/console");
/** Readers load several pictures with a page. */
const maxBytes = 150_000;
const viewport = { width: 1_280, height: 800 };
const trafficMs = 100_000;
const account = "dana";

const labels = `mac=${fleet.machineOf("worker", 3).mac}\nhostname=worker-03`;
const beside = `${fleet.namespace}/${fleet.machineOf("storage", 2).name}`;

/** The screens by the names of their pictures. */
const shots: Readonly<Record<string, string>> = {
  fleet: "/console/",
  machine: `/console/machines/${beside}`,
  "waiting-room": "/console/waiting",
  objects: "/console/objects",
  try: `/console/try?${new URLSearchParams({ labels, machine: beside })}`,
  health: "/console/health",
};

const work = await mkdtemp(join(tmpdir(), "davit-screenshots-"));
const cluster = await startCluster();
try {
  await makeAssets(join(work, "assets"));
  await cluster.apply(fleet.fleetObjects());
  const token = await newAccount(cluster);
  const davit = await startDavit({
    kubeconfig: cluster.kubeconfig,
    dataDir: join(work, "data"),
    args: ["--namespace", fleet.namespace, "--assets-dir", join(work, "assets")],
  });
  try {
    await live(davit, cluster);
    await takeAll(davit, token);
  } finally {
    await davit.stop();
  }
} finally {
  await cluster.stop();
  await rm(work, { recursive: true });
}

/** Files without content, as large as real ones. */
async function makeAssets(directory: string): Promise<void> {
  for (const [name, size] of Object.entries(fleet.assets)) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    const file = await open(path, "w");
    await file.truncate(size);
    await file.close();
  }
}

/** Somebody who approves machines. @returns the token. */
async function newAccount(cluster: Cluster): Promise<string> {
  const resources = ["machines", "groups", "profiles"].map((kind) => `${kind}.davit.dev`).join(",");
  const token = await cluster.serviceAccountToken(fleet.namespace, account);
  await cluster.kubectl(["create", "clusterrole", account, "--verb=get,list,patch", `--resource=${resources}`]);
  const binding = [`--clusterrole=${account}`, `--serviceaccount=${fleet.namespace}:${account}`];
  await cluster.kubectl(["create", "clusterrolebinding", account, ...binding]);
  return token;
}

/** What happens in the data centre before somebody looks. */
async function live(davit: DavitProcess, cluster: Cluster): Promise<void> {
  const { boot, machineOf, racks } = fleet;
  // Until davit has read everything.
  await fleet.untilServed(davit, machineOf("control", 1));
  const until = new Date(Date.now() + 24 * 3_600_000).toISOString().replace(/\.\d+Z$/, "Z");
  await cluster.apply(fleet.grantedGroup(await fleet.ledgerOf(davit), until));
  for (const machine of racks.control) await boot(davit, machine, ["/generic"]);
  // The plots of the health screen have a point for every ten seconds.
  const endMs = Date.now() + trafficMs;
  for (let at = 0; Date.now() < endMs; at += 1) {
    await boot(davit, machineOf("worker", (at % 8) + 1), ["/ignition"]);
    await pause((at % 5) * 300);
  }
  const [installed, failed, installing] = [1, 2, 3].map((number) => machineOf("storage", number));
  if (installed === undefined || failed === undefined || installing === undefined) throw new Error("No storage");
  const end = await fleet.install(davit, installed);
  const fail = await fleet.install(davit, failed);
  const proceed = await fleet.install(davit, installing);
  await end({ state: "installed" });
  await proceed({ state: "progress", progress: "42", message: "copying the root file system" });
  await fail({ state: "failed", message: "no disk with serial S4EVNF0M000001" });
  for (const machine of racks.worker.slice(0, 8)) await boot(davit, machine, ["/ignition"]);
  for (const machine of racks.worker.slice(8)) await boot(davit, machine);
  await boot(davit, machineOf("gpu", 1), ["/cloud"]);
  await cluster.apply(fleet.brokenProfile());
  for (const machine of racks.edge) await boot(davit, machine);
  await boot(davit, machineOf("gpu", 2), ["/cloud"]);
  for (const machine of racks.stranger) await boot(davit, machine);
  // Until the statuses are written, and a boot has ages.
  await pause(10_000);
}

async function takeAll(davit: DavitProcess, token: string): Promise<void> {
  const browser = await openChromium();
  try {
    const page = await browser.newPage({ viewport });
    await page.goto(`${davit.opsUrl}/console/sign-in`);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL("**/console/");
    for (const [name, path] of Object.entries(shots)) {
      const answer = await page.goto(`${davit.opsUrl}${path}`);
      if (answer?.status() !== 200) throw new Error(`${path}: ${answer?.status()}`);
      for (const colorScheme of ["light", "dark"] as const) await take(page, `${name}-${colorScheme}.png`, colorScheme);
    }
  } finally {
    await browser.close();
  }
}

async function take(page: Page, name: string, colorScheme: "light" | "dark"): Promise<void> {
  await page.emulateMedia({ colorScheme });
  const path = join(folder, name);
  await page.screenshot({ path });
  const { size } = await stat(path);
  process.stdout.write(`${name}: ${size} bytes\n`);
  if (size > maxBytes) throw new Error(`${name} has more than ${maxBytes} bytes`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
