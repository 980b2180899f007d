/**
 * davit and etcd 3.4 as processes of their own, each with a data directory on the same disk. davit runs as the image runs
 * it (`npm run bundle`).
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { imageProgram } from "../test/helpers/image-program.ts";
import { startEtcd } from "../test/helpers/keys-servers.ts";
import { startDavit } from "../tools/davit-process.ts";

export interface LoadedPeer {
  readonly name: "davit" | "etcd";
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly pid: number;
}

export interface Peer extends LoadedPeer {
  /** Kills the process, and starts another one on its data. @returns when it served again, milliseconds. */
  restart(): Promise<number>;
  stop(): Promise<void>;
}

interface Running {
  readonly url: string;
  readonly pid: number;
  kill(): Promise<unknown>;
}

export const manifests = join(import.meta.dirname, "../manifests/quickstart");

/** Starts both. `BENCH_DIR` names a directory on the disk to measure; default: the system's temporary one. */
export async function startPeers(): Promise<readonly [davit: Peer, etcd: Peer]> {
  return [await startPeer("davit", launchDavit), await startPeer("etcd", launchEtcd)];
}

async function startPeer(name: Peer["name"], launch: (dataDir: string) => Promise<Running>): Promise<Peer> {
  const directory = await mkdtemp(join(process.env.BENCH_DIR ?? tmpdir(), `davit-bench-${name}-`));
  let running = await launch(directory);
  return {
    name,
    get url() {
      return running.url;
    },
    get pid() {
      return running.pid;
    },
    restart: async () => {
      await running.kill();
      const startMs = performance.now();
      running = await launch(directory);
      return performance.now() - startMs;
    },
    stop: async () => {
      await running.kill();
      await rm(directory, { recursive: true });
    },
  };
}

async function launchDavit(dataDir: string): Promise<Running> {
  const davit = await startDavit({ manifests, dataDir, args: ["--log-level", "info"], ...imageProgram() });
  return { url: davit.storeUrl, pid: davit.pid, kill: () => davit.stop("SIGKILL") };
}

async function launchEtcd(dataDir: string): Promise<Running> {
  const etcd = await startEtcd(dataDir);
  return { url: `http://127.0.0.1:${etcd.port}`, pid: etcd.pid, kill: () => etcd.stop() };
}
