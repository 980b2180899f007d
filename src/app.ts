/**
 * Builds every part in the order in which data flows, starts them from left to right and stops them from right to left.
 * The only place where parts meet the machine's own disk, network and randomness.
 */

import { createHash, randomBytes, randomInt } from "node:crypto";
import type { Address } from "./address.ts";
import { BootService } from "./boot-service.ts";
import type { ServeConfig } from "./config.ts";
import { Controller } from "./controller/controller.ts";
import { DirectorySource } from "./directory/directory.ts";
import { StatusLog } from "./directory/status-log.ts";
import type { Clock } from "./lib/clock.ts";
import { diskFiles } from "./lib/files.ts";
import type { Log } from "./lib/log.ts";
import { createMetrics, type Metrics } from "./lib/metrics.ts";
import { davitRoot } from "./model/documents.ts";
import type { Source } from "./model/source.ts";
import { parseTemplate } from "./render/template.ts";
import { type OpenStoreOptions, openStore } from "./store/open-store.ts";
import type { Store } from "./store/store.ts";
import { lockDirectory } from "./store/wal/lock.ts";
import { StoreService } from "./store-service.ts";

export interface AppOptions {
  readonly config: ServeConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly version: string;
  /** When the store begins another segment and takes a snapshot, where that shall be sooner than it is by itself. */
  readonly storeSizes?: Pick<OpenStoreOptions, "maxSegmentBytes" | "snapshotInterval">;
}

/** What is served once machines are answered. */
export interface Served {
  readonly version: string;
  readonly profiles: number;
  readonly groups: number;
  /** Files and documents that cannot be used. */
  readonly problems: number;
  readonly bootAddress: Address;
  readonly storeAddress: Address;
  /** True when the store is reached by HTTPS. */
  readonly storeTls: boolean;
  readonly opsAddress: Address;
  /** What machines reach the boot service by. */
  readonly advertised: string;
}

type Listening = Pick<Served, "bootAddress" | "storeAddress" | "storeTls" | "opsAddress" | "advertised">;

export class App {
  readonly #config: ServeConfig;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #version: string;
  readonly #storeSizes: AppOptions["storeSizes"];
  readonly #metrics: Metrics;
  readonly #boot: BootService;
  readonly #source: Source;
  readonly #statuses: StatusLog;
  #controller: Controller | undefined;
  /** Ends of what was started, the last one first. */
  readonly #stops: (() => void | Promise<void>)[] = [];

  constructor({ config, log, clock, version, storeSizes }: AppOptions) {
    this.#config = config;
    this.#log = log;
    this.#clock = clock;
    this.#version = version;
    this.#storeSizes = storeSizes;
    this.#metrics = createMetrics(version);
    this.#boot = new BootService({ config, log, clock, metrics: this.#metrics, version });
    this.#source = new DirectorySource({ directories: config.manifests, clock, log: log.child({ part: "directory" }) });
    this.#statuses = new StatusLog({ log: log.child({ part: "status" }) });
  }

  /**
   * Starts every part. Resolves when all listen; `ready` then resolves once machines are answered.
   * @throws {StartError | WalError} one sentence for the operator; `stop` ends what was started by then.
   */
  async start(): Promise<{ readonly ready: Promise<Served> }> {
    const store = await this.#openStore();
    this.#stops.unshift(store.follow(davitRoot, this.#boot.index));
    const keys = this.#storeService(store);
    this.#stops.unshift(() => this.#boot.stop());
    const opsAddress = await this.#boot.listenForOperators({
      waitingFor: "the source's first list is not in the store",
      attention: () => this.#attention(store),
      measure: () => {
        keys.measure();
        this.#controller?.measure();
      },
    });
    this.#stops.unshift(() => keys.stop());
    const storeAddress = await keys.listen();
    const machines = await this.#boot.listenForMachines();
    const { synced } = await this.#startController(store);
    const listening = { opsAddress, storeAddress, storeTls: keys.hasTls, ...machines };
    return { ready: this.#boot.openWhenHeard(synced).then(() => this.#served(listening)) };
  }

  /** Not ready at once; then what is under way finishes, and the log is closed. Idempotent. */
  async stop(): Promise<void> {
    this.#boot.beginStop();
    for (let next = this.#stops.shift(); next !== undefined; next = this.#stops.shift()) await next();
  }

  async #openStore(): Promise<Store> {
    const store = await openStore({
      directory: this.#config.dataDir,
      files: diskFiles,
      lock: lockDirectory,
      clock: this.#clock,
      random: randomBytes,
      log: this.#log.child({ part: "store" }),
      observeSyncSeconds: (seconds) => this.#metrics.storeSyncSeconds.observe(seconds),
      onDamage: this.#config.onDamage,
      quotaBytes: this.#config.storeQuotaBytes,
      maxWatchers: this.#config.storeMaxWatchers,
      ...this.#storeSizes,
    });
    this.#stops.unshift(() => store.stop());
    return store;
  }

  #storeService(store: Store): StoreService {
    return new StoreService({
      config: this.#config,
      store,
      log: this.#log,
      clock: this.#clock,
      metrics: this.#metrics,
      isReady: () => this.#boot.index.isReady,
    });
  }

  /** Resolves when the source's first list is in the store. */
  async #startController(store: Store): Promise<{ readonly synced: Promise<void> }> {
    const { promise: synced, resolve: onSynced } = Promise.withResolvers<void>();
    const controller = new Controller({
      source: this.#source,
      store,
      statusSink: this.#statuses,
      clock: this.#clock,
      log: this.#log.child({ part: "controller" }),
      metrics: this.#metrics,
      sha256: (text) => createHash("sha256").update(text).digest("hex"),
      checkTemplate: parseTemplate,
      adminNamespace: this.#config.adminNamespace,
      // As fine as a wait of minutes can use.
      random: () => randomInt(2 ** 32) / 2 ** 32,
      tombstoneTtlSeconds: Math.ceil(this.#config.tombstoneTtlMs / 1_000),
      onSynced,
    });
    this.#stops.unshift(() => controller.stop());
    this.#stops.unshift(() => this.#source.stop());
    this.#controller = controller;
    await controller.start();
    return { synced };
  }

  #served(listening: Listening): Served {
    const { view } = this.#source;
    const count = (objects: Iterable<unknown>) => [...objects].length;
    return {
      version: this.#version,
      profiles: count(view.all("Profile")),
      groups: count(view.all("Group")),
      problems: view.problems.length,
      ...listening,
    };
  }

  /** What a person should look at, a line each. */
  #attention(store: Store): readonly string[] {
    const problems = this.#source.view.problems.map(({ origin, message }) => `${origin}: ${message}`);
    const objects = this.#statuses
      .attention()
      .map(({ name, reason, message }) => `${name.kind} ${name.namespace}/${name.name}: ${reason}: ${message}`);
    return [...(store.status === "writable" ? [] : [`store: the log is ${store.status}`]), ...problems, ...objects];
  }
}
