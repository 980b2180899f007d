/** davit as a user starts it: a process of its own. The system chooses its ports, and its log shows them. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { localTokenFile } from "../src/lib/files/token-file.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../src/model/json.ts";

export interface DavitOptions {
  /** Where objects are from: a directory, or the cluster that a kubeconfig file leads to. */
  readonly manifests?: string;
  readonly kubeconfig?: string;
  readonly dataDir: string;
  /** Further words of the command line. */
  readonly args?: readonly string[];
  /** The file that is run; davit's own unless given. */
  readonly program?: string;
  /** Options of Node itself. */
  readonly nodeArgs?: readonly string[];
  /** Ends the process, whatever it does: a crash. */
  readonly crash?: AbortSignal;
  /** Where the lines of its log go, for when it ends before it serves. */
  readonly log?: JsonObject[];
  /** Words before the command, that run it somewhere else. */
  readonly within?: readonly string[];
  /** Variables of its environment; it has none of davit's otherwise. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** A boot service that follows a store, without one of its own. */
export interface DavitBootProcess {
  readonly pid: number;
  /** `http://127.0.0.1:PORT`, as are the others; `https:` for a store with TLS. */
  readonly bootUrl: string;
  readonly opsUrl: string;
  /** Every line of the log so far. */
  readonly log: readonly JsonObject[];
  /**
   * Ends the process, if it still runs, and waits until it is gone.
   * @param signal SIGTERM asks it to stop, SIGKILL is a crash.
   * @returns the exit code; null when the signal ended it.
   */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<number | null>;
}

export interface DavitProcess extends DavitBootProcess {
  readonly storeUrl: string;
  readonly dataDir: string;
}

/**
 * davit's program: its sources, or with DAVIT_TEST_PROGRAM=bundle what `npm run bundle` made of them. The bundle starts in
 * half of the time, and suites start davit many hundred times.
 */
export const davitProgram = join(
  import.meta.dirname,
  process.env.DAVIT_TEST_PROGRAM === "bundle" ? "../dist/bundle/main.js" : "../src/main.ts",
);

// A start takes about a second; this allows for a machine that is busy with other suites.
const startLimitMs = 60_000;

/**
 * Starts `davit serve` and waits until it says what it serves, and is ready.
 * @throws {Error} with what it wrote, when it ends instead or stays silent.
 */
export async function startDavit(options: DavitOptions): Promise<DavitProcess> {
  const { manifests, kubeconfig, dataDir, args = [], ...how } = options;
  const source = kubeconfig === undefined ? [] : ["--kubernetes", "--kubeconfig", kubeconfig];
  const files = manifests === undefined ? [] : ["--manifests", manifests];
  const places = [...source, ...files, "--data-dir", dataDir];
  const { served, ...davit } = await launch("serve", [...places, ...addresses(["boot", "store", "ops"], args)], how);
  const scheme = served.storeTls === true ? "https" : "http";
  return { ...davit, dataDir, storeUrl: "storeAddress" in served ? loopbackUrl(served.storeAddress, scheme) : "" };
}

/**
 * Starts `davit boot` and waits until it answers machines.
 * @param args the rest of the command line, `--store` among it.
 * @throws {Error} as `startDavit`.
 */
export async function startDavitBoot(
  args: readonly string[],
  how: Pick<DavitOptions, "variables" | "program" | "nodeArgs"> = {},
): Promise<DavitBootProcess> {
  return await launch("boot", addresses(["boot", "ops"], args), how);
}

/** How `davit boot` and `davit backup` reach the store of a davit on this machine. */
export function storeOf({ storeUrl, dataDir }: Pick<DavitProcess, "storeUrl" | "dataDir">): readonly string[] {
  return ["--store", storeUrl, "--data-dir", dataDir];
}

/** The header by which anything may be asked of a davit's store on this machine. */
export async function localAuthorization(dataDir: string): Promise<Record<string, string>> {
  return { authorization: `Bearer ${(await readFile(localTokenFile(dataDir), "utf8")).trim()}` };
}

/** A free port for each listener that is given none. */
function addresses(names: readonly string[], args: readonly string[]): readonly string[] {
  const free = names.filter((name) => !args.includes(`--${name}-address`));
  return [...free.flatMap((name) => [`--${name}-address`, "127.0.0.1:0"]), ...args];
}

type LaunchOptions = Pick<DavitOptions, "program" | "nodeArgs" | "crash" | "log" | "within" | "variables">;

async function launch(
  command: string,
  args: readonly string[],
  { program = davitProgram, nodeArgs = [], crash, log = [], within = [], variables }: LaunchOptions = {},
) {
  const [file = process.execPath, ...words] = [...within, process.execPath, ...nodeArgs, program, command];
  const child = spawn(file, [...words, "--log-format", "json", ...args], {
    env: { ...environment(), ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  crash?.addEventListener("abort", () => child.kill("SIGKILL"));
  const served = await serving(child, log);
  const opsUrl = loopbackUrl(served.opsAddress);
  if (bootThreads !== undefined) await threadsOf({ opsUrl }, Number(bootThreads));
  return {
    served,
    pid: child.pid ?? 0,
    bootUrl: loopbackUrl(served.bootAddress),
    opsUrl,
    log,
    stop: async (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal);
        await once(child, "exit");
      }
      return child.exitCode;
    },
  };
}

/** Resolves with the line that has the addresses. Lines go to `log` for as long as the process lives. */
function serving(child: ChildProcessByStdio<null, Readable, Readable>, log: JsonObject[]): Promise<JsonObject> {
  const limit = AbortSignal.timeout(startLimitMs);
  const giveUp = () => child.kill("SIGKILL");
  limit.addEventListener("abort", giveUp);
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const entry = parseJsonObject(line);
      if (entry === undefined) return;
      log.push(entry);
      if (entry.msg !== "serving") return;
      limit.removeEventListener("abort", giveUp);
      resolve(entry);
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const lines = log.map((entry) => JSON.stringify(entry)).join("\n");
      const end = limit.aborted ? `was ended after ${startLimitMs} ms` : `ended with ${code ?? signal}`;
      reject(new Error(`davit ${end}, before it served\n${complaints}${lines}`));
    });
  });
}

/** The number of boot threads of each davit, to run other suites with several threads. */
const bootThreads = process.env.DAVIT_TEST_BOOT_THREADS;

/** This process's environment without options of davit, which would change what a test starts. */
function environment(): Record<string, string | undefined> {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("DAVIT_"));
  return { ...Object.fromEntries(others), ...(bootThreads !== undefined && { DAVIT_BOOT_THREADS: bootThreads }) };
}

/** Resolves when this many threads answer machines. */
export async function threadsOf({ opsUrl }: Pick<DavitBootProcess, "opsUrl">, count: number): Promise<void> {
  for (;;) {
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
    if (metrics.includes(`\ndavit_boot_threads ${count}\n`)) return;
    await setTimeout(50);
  }
}

function loopbackUrl(address: unknown, scheme = "http"): string {
  return `${scheme}://127.0.0.1:${servedPort(address)}`;
}

/** The port of an address in the log's line `serving`. @throws {Error} when it has none. */
export function servedPort(address: unknown): number {
  const port = isJsonObject(address) ? address.port : undefined;
  if (typeof port !== "number") throw new Error("The log's serving line has no port");
  return port;
}
