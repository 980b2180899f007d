/** Members of etcd v3 for tests: real processes on loopback, each with a data directory of its own. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../../tools/cluster/ports.ts";

export interface EtcdMembersOptions {
  /** 1 unless given. */
  readonly count?: number;
  /** Further arguments of each member, such as `--quota-backend-bytes=…`. */
  readonly args?: readonly string[];
  /** Where the data directories are made; the system's folder for temporary files unless given. */
  readonly parent?: string;
  /** Of the client port; `http` unless given. */
  readonly scheme?: "http" | "https";
}

export interface EtcdMember {
  readonly name: string;
  /** For clients. */
  readonly url: URL;
  readonly dataDir: string;
  readonly pid: number;
  /** Starts the process, on the same data and ports; resolves once it serves. */
  start(): Promise<void>;
  /** Ends the process without a farewell, as a lost node does. */
  kill(): Promise<void>;
  /** Ends the process in order. */
  end(): Promise<void>;
  /** The process stands still, its sockets stay open. */
  pause(): void;
  resume(): void;
}

export interface EtcdMembers {
  readonly all: readonly EtcdMember[];
  readonly urls: readonly URL[];
  /** Ends every process and removes the data. */
  stop(): Promise<void>;
}

/** Starts a cluster; resolves once it has a leader. */
export async function startEtcdV3(options: EtcdMembersOptions = {}): Promise<EtcdMembers> {
  const { count = 1, parent = tmpdir() } = options;
  const folder = await mkdtemp(join(parent, "davit-etcd-v3-"));
  const ports = await freePorts(count * 2);
  const peers = Array.from({ length: count }, (_, at) => `m${at}=http://127.0.0.1:${ports[count + at]}`);
  const all = peers.map((peer, at) => new Member(peer, { ...options, folder, peers, port: ports[at] ?? 0 }));
  await Promise.all(all.map((member) => member.start()));
  return {
    all,
    urls: all.map(({ url }) => url),
    stop: async () => {
      await Promise.all(all.map((member) => member.kill()));
      await rm(folder, { recursive: true });
    },
  };
}

interface MemberOptions extends EtcdMembersOptions {
  readonly folder: string;
  readonly peers: readonly string[];
  readonly port: number;
}

class Member implements EtcdMember {
  readonly name: string;
  readonly url: URL;
  readonly dataDir: string;
  readonly #peer: string;
  readonly #options: MemberOptions;
  #process: ChildProcess | undefined;

  constructor(peer: string, options: MemberOptions) {
    const [name = "", url = ""] = peer.split("=");
    this.name = name;
    this.#peer = url;
    this.#options = options;
    this.dataDir = join(options.folder, this.name);
    this.url = new URL(`${options.scheme ?? "http"}://127.0.0.1:${options.port}`);
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  async start(): Promise<void> {
    const { folder, peers, args = [] } = this.#options;
    const process = spawn(
      "etcd",
      [
        ["--name", this.name, "--data-dir", this.dataDir],
        ["--listen-client-urls", this.url.origin, "--advertise-client-urls", this.url.origin],
        ["--listen-peer-urls", this.#peer, "--initial-advertise-peer-urls", this.#peer],
        ["--initial-cluster", peers.join(","), "--initial-cluster-token", folder, "--logger", "zap"],
        args,
      ].flat(),
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    this.#process = process;
    await serves(process);
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async end(): Promise<void> {
    await this.#end("SIGTERM");
  }

  pause(): void {
    this.#process?.kill("SIGSTOP");
    // On a busy computer, some of its threads run on for a moment.
    while (runs(this.pid));
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  async #end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const process = this.#process;
    this.#process = undefined;
    if (process === undefined || process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, "exit");
    process.kill(signal);
    await exited;
  }
}

/** True while a thread of a process runs, or could run. */
function runs(pid: number): boolean {
  const tasks = `/proc/${pid}/task`;
  return existsSync(tasks) && readdirSync(tasks).some((task) => !isStopped(join(tasks, task, "stat")));
}

/** The state is the letter behind the name, which is in brackets (proc_pid_stat(5)). */
function isStopped(statFile: string): boolean {
  try {
    return readFileSync(statFile, "utf8").split(") ").at(-1)?.startsWith("T") ?? true;
  } catch {
    // The thread has ended.
    return true;
  }
}

/** Resolves once the member's log says that it serves clients, which it does with a leader. */
async function serves({ stderr }: ChildProcess): Promise<void> {
  let text = "";
  const isServing = await new Promise<boolean>((resolve) => {
    stderr?.on("data", (chunk) => {
      if (text.length > maxLogLength) return;
      text += String(chunk);
      if (/serving (insecure )?client/.test(text)) resolve(true);
    });
    stderr?.on("end", () => resolve(false));
  });
  if (!isServing) throw new Error(`etcd does not serve:\n${text}`);
}

// A member logs as long as it runs; only its start matters.
const maxLogLength = 1_000_000;
