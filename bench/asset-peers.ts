/** davit and nginx as processes of their own, which serve one directory. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { imageProgram } from "../test/helpers/image-program.ts";
import { freePorts } from "../tools/cluster/ports.ts";
import { startDavit } from "../tools/davit-process.ts";
import { cpuMicrosecondsOf } from "./process-usage.ts";
import { manifests } from "./store-peers.ts";

export interface AssetPeer {
  readonly port: number;
  /** The process that was started; nginx works in children of it. */
  readonly pid: number;
  /** Processor time so far of all its processes, microseconds. */
  cpuMicroseconds(): number;
  stop(): Promise<void>;
}

/** A directory with one file of so many bytes, below `assets/`. */
export class AssetFolder {
  readonly path = mkdtempSync(join(tmpdir(), "davit-bench-assets-"));
  readonly assets = join(this.path, "assets");

  constructor(sizeBytes: number) {
    // Workers of nginx may be another user.
    chmodSync(this.path, 0o755);
    mkdirSync(this.assets);
    writeFileSync(join(this.assets, "kernel"), Buffer.alloc(sizeBytes, "kernel "), { mode: 0o644 });
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}

/** Starts davit as the image runs it. @param options further options of `davit serve`. */
export async function startDavitPeer(folder: AssetFolder, options: readonly string[]): Promise<AssetPeer> {
  const dataDir = mkdtempSync(join(folder.path, "data-"));
  const args = ["--assets-dir", folder.assets, ...options];
  const davit = await startDavit({ ...imageProgram(), manifests, dataDir, args });
  return {
    port: Number(new URL(davit.bootUrl).port),
    pid: davit.pid,
    cpuMicroseconds: () => cpuMicrosecondsOf(davit.pid),
    stop: async () => {
      await davit.stop();
    },
  };
}

/** nginx as Debian builds it, with sendfile, and no access log. */
export async function startNginx(folder: AssetFolder, workers: number): Promise<AssetPeer> {
  const directory = mkdtempSync(join(folder.path, "nginx-"));
  const [port = 0] = await freePorts(1);
  const file = join(directory, "nginx.conf");
  writeFileSync(file, nginxConfig({ directory, port, workers, root: folder.path }));
  const child = spawn("nginx", ["-c", file, "-e", join(directory, "error.log")], { stdio: "inherit" });
  const failed = once(child, "error").then(([error]) => Promise.reject(error));
  await Promise.race([failed, answers(port)]);
  const pid = child.pid ?? 0;
  return {
    port,
    pid,
    cpuMicroseconds: () => [pid, ...childrenOf(pid)].reduce((sum, each) => sum + cpuMicrosecondsOf(each), 0),
    stop: async () => {
      child.kill();
      await once(child, "exit");
    },
  };
}

interface NginxOptions {
  readonly directory: string;
  readonly port: number;
  readonly workers: number;
  readonly root: string;
}

function nginxConfig({ directory, port, workers, root }: NginxOptions): string {
  const bodies = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `
    daemon off;
    worker_processes ${workers};
    pid ${directory}/pid;
    events { worker_connections 10000; }
    http {
      access_log off;
      sendfile on;
      tcp_nopush on;
      keepalive_requests 1000000;
      ${bodies.map((name) => `${name}_temp_path ${directory}/${name};`).join("\n      ")}
      server { listen 127.0.0.1:${port}; root ${root}; }
    }
  `;
}

function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1");
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map(Number);
}

/** Resolves once somebody listens. */
async function answers(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
