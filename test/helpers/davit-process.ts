/** davit as a user starts it: a process of its own. Its ports are chosen by the system and told by its log. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../src/model/json.ts";

export interface DavitOptions {
  readonly manifests: string;
  readonly dataDir: string;
  /** Further words of the command line. */
  readonly args?: readonly string[];
}

export interface DavitProcess {
  /** `http://127.0.0.1:PORT`, as are the other two. */
  readonly bootUrl: string;
  readonly storeUrl: string;
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

const main = join(import.meta.dirname, "../../src/main.ts");

// A start takes about a second; this allows for a machine that is busy with other suites.
const startLimitMs = 60_000;

/**
 * Starts `davit serve` and waits until it says what it serves, and is ready.
 * @throws {Error} with what it wrote, when it ends instead or stays silent.
 */
export async function startDavit({ manifests, dataDir, args = [] }: DavitOptions): Promise<DavitProcess> {
  const ports = ["boot", "store", "ops"].flatMap((name) => [`--${name}-address`, "127.0.0.1:0"]);
  const options = ["--manifests", manifests, "--data-dir", dataDir, "--log-format", "json", ...ports, ...args];
  const child = spawn(process.execPath, [main, "serve", ...options], {
    env: environment(),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log: JsonObject[] = [];
  const served = await serving(child, log);
  return {
    bootUrl: loopbackUrl(served.bootAddress),
    storeUrl: loopbackUrl(served.storeAddress),
    opsUrl: loopbackUrl(served.opsAddress),
    log,
    stop: async (signal = "SIGTERM") => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill(signal);
        await once(child, "exit");
      }
      return child.exitCode;
    },
  };
}

/** Resolves with the line that tells the addresses. Lines go to `log` for as long as the process lives. */
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
    child.on("close", (code) => {
      const lines = log.map((entry) => JSON.stringify(entry)).join("\n");
      reject(new Error(`davit ended with ${code} before it served\n${complaints}${lines}`));
    });
  });
}

/** This process's environment without options of davit, which would change what a test starts. */
function environment(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("DAVIT_")));
}

function loopbackUrl(address: unknown): string {
  const port = isJsonObject(address) ? address.port : undefined;
  if (typeof port !== "number") throw new Error("The log's serving line has no port");
  return `http://127.0.0.1:${port}`;
}
