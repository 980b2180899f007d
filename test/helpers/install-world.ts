/** davit as a process with a Group whose machines may install, and what a machine gets of it. */

import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { isJsonObject } from "../../src/model/json.ts";
import {
  type DavitBootProcess,
  type DavitOptions,
  type DavitProcess,
  startDavit,
  startDavitBoot,
} from "../../tools/davit-process.ts";

/** What a machine gets: `install`, `disk`, or the status with its text. */
export type Boot = string;

export const hourMs = 3_600_000;

/** A grant of the Group. */
export interface Grant {
  readonly generation: number;
  /** Without it the grant is asleep. */
  readonly ledger?: string;
  readonly until?: string;
  readonly scope?: "NeverInstalled" | "All";
}

export class InstallWorld {
  readonly folder: string;
  readonly #running: DavitBootProcess[] = [];

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(): Promise<InstallWorld> {
    const world = new InstallWorld(await mkdtemp(join(tmpdir(), "davit-installs-")));
    await mkdir(world.at("manifests"));
    await installAssets(world.folder);
    await world.write({});
    return world;
  }

  at(...names: readonly string[]): string {
    return join(this.folder, ...names);
  }

  /** Writes the objects: the Profile, and the Group with its grant. */
  async write({ grant, timeout = "1h", more = "" }: { grant?: Grant; timeout?: string; more?: string }): Promise<void> {
    await this.writeText(installObjects(grant, timeout) + more);
  }

  /** Writes objects of the test's own in place of those of `write`. */
  async writeText(manifests: string): Promise<void> {
    await writeFile(this.at("next.yaml"), manifests);
    await rename(this.at("next.yaml"), this.at("manifests", "objects.yaml"));
  }

  /** Starts `davit serve`. Without `--assets-dir` among its words, it has the assets directory of this world. */
  async serve(args: readonly string[] = [], more: Partial<DavitOptions> = {}): Promise<DavitProcess> {
    const dataDir = this.at("data");
    const words = this.#withAssets(args);
    const davit = await startDavit({ manifests: this.at("manifests"), dataDir, args: words, ...more });
    this.#running.push(davit);
    return davit;
  }

  /** As `serve`, but `davit boot`. */
  async boot(...args: readonly string[]): Promise<DavitBootProcess> {
    const davit = await startDavitBoot(this.#withAssets(args));
    this.#running.push(davit);
    return davit;
  }

  #withAssets(args: readonly string[]): readonly string[] {
    return args.includes("--assets-dir") ? args : ["--assets-dir", this.at("assets"), ...args];
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((davit) => davit.stop("SIGKILL")));
    await rm(this.folder, { recursive: true });
  }
}

/**
 * Makes an assets directory below a folder: without its kernel, no machine claims an install.
 * @param kernel that of `installObjects` unless given.
 * @returns the option that names the directory.
 */
export async function installAssets(folder: string, kernel = "wipe"): Promise<readonly string[]> {
  const directory = join(folder, "assets");
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, kernel), "a kernel");
  return ["--assets-dir", directory];
}

/** The Profile that installs, and its Group with a grant or without one. */
export function installObjects(grant: Grant | undefined, timeout = "1h"): string {
  const { until = soonEnough(), ...named } = grant ?? { generation: 0, ledger: "" };
  return `apiVersion: davit.dev/v1alpha1
kind: Profile
metadata: {name: wipe}
spec:
  effect: Install
  install: {then: exit, timeout: ${timeout}}
  reports: {labels: {os: [installed]}}
  boot: {kernel: /assets/wipe}
  generic: {inline: "report to {{davit.report}}"}
---
apiVersion: davit.dev/v1alpha1
kind: Group
metadata: {name: all}
spec:
  selector: {matchLabels: {role: lab}}
  profileRef: {name: wipe}
${grant === undefined ? "" : `  install: ${JSON.stringify({ ...named, until })}\n`}`;
}

function soonEnough(): string {
  return new Date(Date.now() + 24 * hourMs).toISOString();
}

/** The MAC address of the machine with this number, as iPXE sends it. */
export function macOf(number: number): string {
  return `52-54-00-${number
    .toString(16)
    .padStart(6, "0")
    .replaceAll(/(..)(?=.)/g, "$1-")}`;
}

/** What the machine with this number sends. A catch-all Group installs nobody right after a start. */
export function queryOf(number: number): string {
  return `mac=${macOf(number)}&role=lab`;
}

/**
 * Asks for a boot script as iPXE does: again while davit has no proof of its objects, as right after a start, and while
 * objects are changing.
 */
export async function bootOf(davit: Pick<DavitBootProcess, "bootUrl">, number = 1, method = "GET"): Promise<Boot> {
  for (;;) {
    const boot = await bootNow(davit, number, method);
    if (!/^503 (install not certain|objects are changing)$/.test(boot)) return boot;
    await setTimeout(100);
  }
}

/** Asks once. */
export async function bootNow(
  { bootUrl }: Pick<DavitBootProcess, "bootUrl">,
  number: number,
  method = "GET",
): Promise<Boot> {
  const response = await fetch(`${bootUrl}/ipxe?${queryOf(number)}`, { method });
  const body = await response.text();
  if (response.status !== 200) return body.trim() || String(response.status);
  if (method === "HEAD") return "200";
  return body.includes("/assets/wipe") ? "install" : body.includes("exit") ? "disk" : body;
}

/** Reads the config of an installer: the path of its report, or the status with its text. */
export async function configOf({ bootUrl }: Pick<DavitBootProcess, "bootUrl">, number = 1): Promise<string> {
  const response = await fetch(`${bootUrl}/generic?${queryOf(number)}`);
  const body = await response.text();
  return /(\/report\/\S+)/.exec(body)?.[1] ?? body.trim();
}

/** Sends a report; the status and the text of the answer. */
export async function report({ bootUrl }: Pick<DavitBootProcess, "bootUrl">, path: string, state = "installed") {
  const response = await fetch(`${bootUrl}${path}`, { method: "POST", body: new URLSearchParams({ state }) });
  await response.text();
  return response.status;
}

/** The id of davit's ledger. */
export async function ledgerId({ opsUrl }: Pick<DavitBootProcess, "opsUrl">): Promise<string> {
  const ledger: unknown = await (await fetch(`${opsUrl}/ledger`)).json();
  return isJsonObject(ledger) && typeof ledger.id === "string" ? ledger.id : "";
}

/** The state of a machine's last install; empty for a machine that the ledger does not know. */
export async function stateOf({ opsUrl }: Pick<DavitBootProcess, "opsUrl">, number = 1): Promise<string> {
  const response = await fetch(`${opsUrl}/machines/${macOf(number)}`);
  const machine: unknown = await response.json().catch(() => undefined);
  const install = isJsonObject(machine) ? machine.install : undefined;
  return isJsonObject(install) && typeof install.state === "string" ? install.state : "";
}
