/** Three davits on a test cluster, and three etcds with their store. Each has its own ways to the API server and etcd. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClusterAccess } from "../../tools/cluster/cluster.ts";
import { freePorts } from "../../tools/cluster/ports.ts";
import { type DavitProcess, startDavit } from "../../tools/davit-process.ts";
import { type EtcdProxy, startEtcdProxy } from "../helpers/etcd-proxy.ts";
import { type EtcdMembers, startEtcdV3 } from "../helpers/etcd-v3.ts";
import { FaultProxy } from "./fault-proxy.ts";

export interface ClusterMembersOptions {
  readonly cluster: ClusterAccess;
  /** Further options of `davit serve`. */
  readonly args?: readonly string[];
}

interface MemberParts {
  readonly name: string;
  /** Its way to the API server. */
  readonly api: FaultProxy;
  /** Its ways to the etcds. */
  readonly etcd: readonly EtcdProxy[];
  readonly start: () => Promise<DavitProcess>;
}

export class ClusterMember {
  readonly name: string;
  readonly api: FaultProxy;
  readonly etcd: readonly EtcdProxy[];
  readonly #start: () => Promise<DavitProcess>;
  #davit: DavitProcess | undefined;
  #isPaused = false;

  constructor({ name, api, etcd, start }: MemberParts) {
    this.name = name;
    this.api = api;
    this.etcd = etcd;
    this.#start = start;
  }

  /** Undefined while it is down. */
  get bootUrl(): string | undefined {
    return this.#davit?.bootUrl;
  }

  /** Where operators ask it; undefined while it is down. */
  get opsUrl(): string | undefined {
    return this.#davit?.opsUrl;
  }

  /** The store's URL; undefined while it is down. */
  get storeUrl(): string | undefined {
    return this.#davit?.storeUrl;
  }

  /** As its log says. */
  get isLeader(): boolean {
    if (this.#isPaused) return false;
    // The ledger's store has a leader of its own.
    const lines = (this.#davit?.log ?? []).filter(({ part }) => part === "store");
    const count = (message: string) => lines.filter(({ msg }) => msg === message).length;
    return count("elected leader") > count("leads no more");
  }

  /** Waits until it serves. */
  async start(): Promise<void> {
    this.#davit = await this.#start();
  }

  async kill(): Promise<void> {
    const davit = this.#davit;
    this.#davit = undefined;
    await davit?.stop("SIGKILL");
  }

  /** It stands still; its sockets stay open. */
  pause(): void {
    this.#isPaused = true;
    this.#signal("SIGSTOP");
  }

  resume(): void {
    this.#isPaused = false;
    this.#signal("SIGCONT");
  }

  /** Ends its process and its proxies. */
  async stop(): Promise<void> {
    await this.kill();
    await this.api.stop();
    await Promise.all(this.etcd.map((proxy) => proxy.stop()));
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#davit !== undefined) process.kill(this.#davit.pid, signal);
  }
}

export class ClusterMembers {
  readonly all: readonly ClusterMember[];
  readonly etcd: EtcdMembers;
  readonly #folder: string;

  private constructor(all: readonly ClusterMember[], etcd: EtcdMembers, folder: string) {
    this.all = all;
    this.etcd = etcd;
    this.#folder = folder;
  }

  /** Starts everything, and waits until all members serve. */
  static async start({ cluster, args = [] }: ClusterMembersOptions): Promise<ClusterMembers> {
    const folder = await mkdtemp(join(tmpdir(), "davit-members-"));
    const etcd = await startEtcdV3({ count: 3 });
    const ports = await freePorts(3);
    const all = await Promise.all(
      ports.map(async (port, at) => {
        const name = `m${at + 1}`;
        const api = await FaultProxy.start(cluster);
        const ways = await Promise.all(etcd.urls.map((url) => startEtcdProxy(url)));
        const kubeconfig = cluster.kubeconfigFor(name, cluster.adminToken, api.url);
        const shared = [
          ...["--store-etcd-endpoints", ways.map(({ url }) => url.origin).join(","), "--limit", "store-etcd-lease=2s"],
          ...["--store-address", `127.0.0.1:${port}`],
        ];
        const start = () => startDavit({ kubeconfig, dataDir: join(folder, name), args: [...shared, ...args] });
        return new ClusterMember({ name, api, etcd: ways, start });
      }),
    );
    await Promise.all(all.map((member) => member.start()));
    return new ClusterMembers(all, etcd, folder);
  }

  /** The member that leads and runs; undefined while none does. */
  get leader(): ClusterMember | undefined {
    return this.all.find(({ isLeader }) => isLeader);
  }

  async stop(): Promise<void> {
    await Promise.all(this.all.map((member) => member.stop()));
    await this.etcd.stop();
    await rm(this.#folder, { recursive: true });
  }
}
