/** Servers of the key API for tests: davit's, in this process, and the reference. Both on loopback, on free ports. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { keysErrors } from "../../src/http/keys/reply.ts";
import { keysHandler, keysLimits } from "../../src/http/keys/routes.ts";
import { createServer, type HttpServer } from "../../src/http/server.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import type { Store, StoreOptions } from "../../src/store/store.ts";
import { freePorts } from "../../tools/cluster/ports.ts";
import { openStore, silentLog } from "./test-store.ts";

export interface TestServer {
  readonly port: number;
  /** Of several servers of one store: the port for the next request. That server has everything that was answered. */
  readonly nextPort?: () => Promise<number>;
  /** How far the clocks of these servers may differ, in milliseconds. */
  readonly clockMs?: number;
  stop(): Promise<void>;
}

export interface EtcdServer extends TestServer {
  readonly pid: number;
}

export interface DavitKeys extends TestServer {
  readonly store: Store;
  readonly http: HttpServer;
}

export interface DavitKeysOptions extends Pick<StoreOptions, "quotaBytes" | "maxWatchers"> {
  readonly maxValueBytes?: number;
  /** The machine's own unless given. */
  readonly clock?: Clock;
  /** Of whoever calls, who stops it; one of its own unless given. */
  readonly store?: Store;
  /** A free one unless given. */
  readonly port?: number;
}

/** The key API as `davit serve` has it, without a door, over a store in memory. */
export async function startDavitKeys(keysOptions: DavitKeysOptions = {}): Promise<DavitKeys> {
  const { clock = systemClock, quotaBytes, maxWatchers, maxValueBytes = 1024 * 1024 } = keysOptions;
  const store = keysOptions.store ?? (await openStore(undefined, { clock, quotaBytes, maxWatchers }));
  const server = createServer({
    log: silentLog,
    clock: systemClock,
    answerError: keysErrors(store),
    limits: keysLimits,
    handler: keysHandler({ store, maxValueBytes, clock, advertiseUrl: () => "http://keys.example:2379" }),
  });
  const { port } = await server.listen({
    host: "127.0.0.1",
    port: keysOptions.port ?? 0,
    option: "--store-address",
  });
  return {
    port,
    store,
    http: server,
    stop: async () => {
      await server.close();
      if (keysOptions.store === undefined) await store.stop();
    },
  };
}

/**
 * The reference: etcd 3.4 with its v2 API.
 * @param dataDir its own, which goes with it, unless given.
 */
export async function startEtcd(dataDir?: string): Promise<EtcdServer> {
  const directory = dataDir ?? (await mkdtemp(join(tmpdir(), "davit-etcd-")));
  const [port = 0, peerPort = 0] = await freePorts(2);
  const client = `http://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const etcd = spawn(
    "etcd",
    [
      ["--enable-v2=true", "--data-dir", directory],
      ["--listen-client-urls", client, "--advertise-client-urls", client],
      ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
      ["--initial-cluster", `default=${peer}`],
    ].flat(),
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const exited = once(etcd, "exit");
  await isReady(etcd.stderr);
  await hasVersion(port);
  return {
    port,
    pid: etcd.pid ?? 0,
    stop: async () => {
      etcd.kill("SIGKILL");
      await exited;
      if (dataDir === undefined) await rm(directory, { recursive: true });
    },
  };
}

/** Resolves once the reference says on its log that it serves; rejects when that ends first. */
async function isReady(log: Readable): Promise<void> {
  let text = "";
  const isServing = await new Promise<boolean>((resolve) => {
    log.on("data", (chunk) => {
      if (text.includes("ready to serve client requests")) return;
      text += String(chunk);
      if (text.includes("ready to serve client requests")) resolve(true);
    });
    log.on("end", () => resolve(false));
  });
  if (!isServing) throw new Error(`The reference does not serve:\n${text}`);
}

/** Resolves once it has written down the version of its cluster: soon after it serves, and a change of its store. */
async function hasVersion(port: number): Promise<void> {
  for (;;) {
    const version = await fetch(`http://127.0.0.1:${port}/version`);
    if (!(await version.text()).includes("not_decided")) return;
    await systemClock.sleep(10);
  }
}
