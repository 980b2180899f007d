/** The davit of `make cluster`: a process that reads its objects from a cluster, and whose log a person reads. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { prettyFactory } from "pino-pretty";
import { parseJsonObject } from "../../src/model/json.ts";
import { davitProgram, servedPort } from "../davit-process.ts";
import { freePorts, isFree } from "./ports.ts";

export interface ThrowAwayDavitOptions {
  readonly kubeconfig: string;
  /** A directory that is there. */
  readonly assetsDir: string;
  readonly dataDir: string;
  /** Takes the lines of its log, one by one. */
  readonly write: (line: string) => void;
  readonly isTerminal: boolean;
}

/** What it says of itself once machines are answered. */
export interface DavitPlaces {
  readonly version: string;
  /** Where its objects are from, as a person would name it. */
  readonly source: string;
  readonly bootPort: number;
  readonly storePort: number;
  readonly opsPort: number;
}

export interface ThrowAwayDavit {
  /** Undefined when it has ended instead. */
  readonly serving: Promise<DavitPlaces | undefined>;
  /** Resolves when its process is gone, with its exit code; null for one that was killed. */
  readonly ended: Promise<number | null>;
  /** Asks it to end; `ended` resolves when it has. */
  stop(): void;
}

/** The ports of README.md, which other instructions know. */
export const usualPorts = { boot: 8080, store: 2379, ops: 8081 } as const;

/** Starts it on the usual ports, or on others where somebody has one of them already. */
export async function startThrowAwayDavit(options: ThrowAwayDavitOptions): Promise<ThrowAwayDavit> {
  const { kubeconfig, assetsDir, dataDir, write, isTerminal } = options;
  const words = ["serve", "--kubernetes", "--kubeconfig", kubeconfig, "--assets-dir", assetsDir];
  const own = ["--data-dir", dataDir, "--log-format", "json", ...(await addresses())];
  // In a process group of its own, so that Ctrl-C reaches it once; and it ends with this process, whatever becomes of it.
  const command = ["--pdeathsig", "KILL", process.execPath, davitProgram, ...words, ...own];
  const child = spawn("setpriv", command, { stdio: ["ignore", "pipe", "inherit"], detached: true });
  const ended = once(child, "close").then(([code]) => (typeof code === "number" ? code : null));
  const toText = prettyFactory({ colorize: isTerminal, singleLine: true, translateTime: "SYS:HH:MM:ss.l" });
  const serving = new Promise<DavitPlaces | undefined>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const places = readPlaces(line);
      if (places === undefined) write(toText(line));
      else resolve(places);
    });
    ended.then(() => resolve(undefined), reject);
  });
  return { serving, ended, stop: () => void child.kill("SIGTERM") };
}

async function addresses(): Promise<readonly string[]> {
  const spare = await freePorts(Object.keys(usualPorts).length);
  const words = Object.entries(usualPorts).map(async ([name, usual], at) => {
    const port = (await isFree(usual)) ? usual : spare[at];
    return [`--${name}-address`, `127.0.0.1:${port}`];
  });
  return (await Promise.all(words)).flat();
}

/** Reads the line of the log that has the addresses; undefined for every other one. */
function readPlaces(line: string): DavitPlaces | undefined {
  const entry = parseJsonObject(line);
  if (entry?.msg !== "serving") return undefined;
  const { version, source, bootAddress, storeAddress, opsAddress } = entry;
  return {
    version: String(version),
    source: String(source),
    bootPort: servedPort(bootAddress),
    storePort: servedPort(storeAddress),
    opsPort: servedPort(opsAddress),
  };
}
