/**
 * Builds every part in the order in which data flows, starts them from left to right and stops them from right to left.
 * The only place where parts meet the machine's own disk, network and randomness.
 */

import { createHash, randomBytes } from "node:crypto";
import { advertisedAuthority } from "./advertise.ts";
import { BootConfigs } from "./boot/boot-configs.ts";
import { BootError } from "./boot/boot-error.ts";
import { BootIndex } from "./boot/boot-index.ts";
import type { Address, ServeConfig } from "./config.ts";
import { Controller } from "./controller/controller.ts";
import { DirectorySource } from "./directory/directory.ts";
import { StatusLog } from "./directory/status-log.ts";
import { accessLog } from "./http/access-log.ts";
import { assets } from "./http/assets.ts";
import { bootRoutes } from "./http/boot-routes.ts";
import { answerError } from "./http/errors.ts";
import { keysRoutes } from "./http/keys-routes.ts";
import { keysRewriteUrl } from "./http/keys-target.ts";
import { opsRoutes } from "./http/ops-routes.ts";
import { createServer, type HttpServer } from "./http/server.ts";
import type { Clock } from "./lib/clock.ts";
import { diskFiles } from "./lib/files.ts";
import type { Log } from "./lib/log.ts";
import { createMetrics, type Metrics } from "./lib/metrics.ts";
import { davitRoot } from "./model/documents.ts";
import type { Source } from "./model/source.ts";
import { parseTemplate } from "./render/template.ts";
import { Store } from "./store/store.ts";
import { lockDirectory } from "./store/wal/lock.ts";
import { FileLog } from "./store/wal/wal.ts";

export interface AppOptions {
  readonly config: ServeConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly version: string;
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
  readonly opsAddress: Address;
  /** What machines reach the boot service by. */
  readonly advertised: string;
}

type Listening = Pick<Served, "bootAddress" | "storeAddress" | "opsAddress" | "advertised">;

export class App {
  readonly #config: ServeConfig;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #version: string;
  readonly #metrics: Metrics;
  readonly #index: BootIndex;
  readonly #source: Source;
  readonly #statuses: StatusLog;
  /** Ends of what was started, the last one first. */
  readonly #stops: (() => void | Promise<void>)[] = [];
  readonly #stopping = new AbortController();
  #configs: BootConfigs | undefined;

  constructor({ config, log, clock, version }: AppOptions) {
    this.#config = config;
    this.#log = log;
    this.#clock = clock;
    this.#version = version;
    this.#metrics = createMetrics(version);
    this.#index = new BootIndex({ log: log.child({ part: "boot" }) });
    this.#source = new DirectorySource({ directories: config.manifests, clock, log: log.child({ part: "directory" }) });
    this.#statuses = new StatusLog({ log: log.child({ part: "status" }) });
  }

  /**
   * Starts every part. Resolves when all listen; `ready` then resolves once machines are answered.
   * @throws {StartError | WalError} one sentence for the operator; `stop` ends what was started by then.
   */
  async start(): Promise<{ readonly ready: Promise<Served> }> {
    const { bootAddress, storeAddress, opsAddress, advertiseAddress, grubSeparator, grubCommands } = this.#config;
    const store = await this.#openStore();
    this.#stops.unshift(store.follow(davitRoot, this.#index));
    const listening = {
      opsAddress: await this.#listen(await this.#opsServer(store), opsAddress, "--ops-address"),
      storeAddress: await this.#listen(await this.#storeServer(store), storeAddress, "--store-address"),
      bootAddress: await this.#listen(await this.#bootServer(), bootAddress, "--boot-address"),
    };
    const advertised = advertisedAuthority(advertiseAddress, listening.bootAddress);
    const grub = { separator: grubSeparator, commands: grubCommands };
    this.#configs = new BootConfigs({ index: this.#index, authority: advertised, grub });
    const isReady = this.#openWhenHeard(await this.#startController(store));
    return { ready: isReady.then(() => this.#served({ ...listening, advertised })) };
  }

  /** Not ready at once; then what is under way finishes, and the log is closed. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (let next = this.#stops.shift(); next !== undefined; next = this.#stops.shift()) await next();
  }

  async #openStore(): Promise<Store> {
    const wal = await FileLog.open({
      directory: this.#config.dataDir,
      files: diskFiles,
      lock: lockDirectory,
      clock: this.#clock,
      random: randomBytes,
      log: this.#log.child({ part: "store" }),
      observeSyncSeconds: (seconds) => this.#metrics.storeSyncSeconds.observe(seconds),
    });
    const store = await Store.open({ log: wal, clock: this.#clock });
    this.#stops.unshift(() => store.stop());
    return store;
  }

  async #bootServer(): Promise<HttpServer> {
    const log = this.#log.child({ part: "http" });
    const clock = this.#clock;
    const observe = accessLog({ log, clock, metrics: this.#metrics });
    const server = createServer({ log, clock, answerError, isReadOnly: true, observe });
    await server.app.register(bootRoutes, {
      configs: { render: (name, asked) => this.#bootConfigs().render(name, asked) },
    });
    await server.app.register(assets, { root: this.#config.assetsDir, metrics: this.#metrics });
    return server;
  }

  async #storeServer(store: Store): Promise<HttpServer> {
    const log = this.#log.child({ part: "keys" });
    const server = createServer({
      log,
      clock: this.#clock,
      answerError,
      isReadOnly: false,
      rewriteUrl: keysRewriteUrl,
      limits: storeLimits,
    });
    await server.app.register(keysRoutes, { store, maxValueBytes: this.#config.storeMaxValueBytes });
    return server;
  }

  async #opsServer(store: Store): Promise<HttpServer> {
    const server = createServer({
      log: this.#log.child({ part: "ops" }),
      clock: this.#clock,
      answerError,
      isReadOnly: true,
    });
    const { contentType, text } = this.#metrics;
    const scrape = () => {
      this.#metrics.storeIndex.set(store.indexes.storeIndex);
      this.#metrics.storeWatchers.set(store.watcherCount);
      return text();
    };
    await server.app.register(opsRoutes, {
      version: this.#version,
      checks: [
        {
          name: "boot",
          check: () => (this.#index.isReady ? undefined : "the source's first list is not in the store"),
        },
        { name: "running", check: () => (this.#stopping.signal.aborted ? "stopping" : undefined) },
      ],
      attention: () => this.#attention(store),
      metrics: { contentType, text: scrape },
    });
    return server;
  }

  async #listen(server: HttpServer, { host, port }: Address, option: string): Promise<Address> {
    const { address, port: actualPort } = await server.listen({ host, port, option });
    this.#stops.unshift(() => server.close());
    return { host: address, port: actualPort };
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
      onSynced,
    });
    this.#stops.unshift(() => controller.stop());
    this.#stops.unshift(() => this.#source.stop());
    await controller.start();
    return { synced };
  }

  /** Lets machines be answered once the source was heard, or from the copy on disk after the grace time. */
  async #openWhenHeard({ synced }: { readonly synced: Promise<void> }): Promise<void> {
    const grace = this.#clock.sleep(this.#config.sourceGraceMs, this.#stopping.signal).then(() => "grace" as const);
    const first = await Promise.race([synced, grace]);
    this.#index.open();
    if (first !== "grace" || this.#stopping.signal.aborted) return;
    if (!this.#index.isReady) return await synced;
    this.#log.warn({ waitedMs: this.#config.sourceGraceMs }, "source not heard in time, serving the copy on disk");
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
      .notReady()
      .map(({ name, reason, message }) => `${name.kind} ${name.namespace}/${name.name}: ${reason}: ${message}`);
    return [...(store.status === "writable" ? [] : [`store: the log is ${store.status}`]), ...problems, ...objects];
  }

  #bootConfigs(): BootConfigs {
    // The port is known only after listening: a request may come in between.
    if (this.#configs === undefined) throw new BootError("notReady");
    return this.#configs;
  }
}

// The protocol's keys may be 32 KiB long, each byte of them escaped; a form holds a value of which each byte is escaped.
const storeLimits = { maxTargetBytes: 112 * 1024, maxHeaderBytes: 128 * 1024, stallTimeoutMs: 0 };
