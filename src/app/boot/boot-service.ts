/**
 * The common part of `davit serve` and `davit boot`: the boot index, the listener for machines, and the listener for
 * operators. It does not know where the documents come from: the caller feeds the index.
 */

import type { AssetFetcher } from "../../assets/asset-fetcher.ts";
import type { AssetSource } from "../../assets/asset-source.ts";
import { NearMisses } from "../../boot/explaining/near-misses.ts";
import { RenderThread } from "../../boot/making/render-thread.ts";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import type { AssetRoute } from "../../http/assets/assets.ts";
import { requestFollower } from "../../http/boot/access-log.ts";
import { type RequestLogOptions, requestLog } from "../../http/boot/request-log.ts";
import type { FollowedStore } from "../../http/console/pages/context.ts";
import { consoleRoutes } from "../../http/console/routes.ts";
import { answerError } from "../../http/errors.ts";
import { Guard } from "../../http/guard/guard.ts";
import { type OpsGuard, opsRow } from "../../http/guard/ops-guard.ts";
import type { DocumentsRoutesOptions } from "../../http/ops/documents-routes.ts";
import type { MachineChangesOptions } from "../../http/ops/machine-changes.ts";
import { Previews } from "../../http/ops/preview.ts";
import { guardedRoutes, opsRoutes } from "../../http/ops/routes.ts";
import { createOpsServer, type OpsServer } from "../../http/ops/server.ts";
import type { HttpServer } from "../../http/server.ts";
import { UnsentAnswers } from "../../http/unsent-answers.ts";
import type { KnownLedger } from "../../installs/ledger/known-ledger.ts";
import type { Clock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import { RecentLines } from "../../lib/logging/recent-lines.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { random } from "../../lib/ports.ts";
import type { Address } from "../../lib/text/address.ts";
import type { Feed } from "../../model/feed.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import { commonDoubts, doubtText } from "../../model/refusals.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import { BootIds } from "../../records/history/boot-ids.ts";
import { HandedIntake } from "../../records/history/handed-intake.ts";
import { History, type HistoryOptions } from "../../records/history/history.ts";
import type { RecordedMachine } from "../../records/history/history-view.ts";
import { Journal } from "../../records/history/journal.ts";
import { connectionLimitOf } from "../core/open-files.ts";
import type { SecretKeys } from "../core/secret-keys.ts";
import { BootListener, type MachineAddresses } from "../listener/boot-listener.ts";
import { BootTls } from "../listener/boot-tls.ts";
import { type OpenedSigners, openSigners } from "../listener/open-signers.ts";
import { BootThreads, threadStart } from "../threads/boot-threads.ts";
import { type ThreadRequestsOptions, threadAnswers } from "../threads/thread-answers.ts";
import type { FeedName } from "../threads/wire.ts";
import { type ConsoleOptions, openConsole, type ServedConsole } from "./console.ts";
import { MissingAssets } from "./missing-assets.ts";
import { assetFetcher } from "./profile-assets.ts";

export interface BootServiceOptions {
  readonly config: ServiceConfig;
  readonly log: Log;
  /** The latest warnings and errors of the log; none unless given. */
  readonly lines?: RecentLines;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly version: string;
  /** Keys of Secrets. The caller starts them before the index gets documents. No encrypted text is served without. */
  readonly secretKeys?: SecretKeys;
  /** Where the history of boots survives a restart; only in memory unless given. */
  readonly historyDirectory?: string | undefined;
  /** What is known of the ledger: the ledger itself, or a follower's copy. */
  readonly ledger?: KnownLedger | undefined;
  /** Where installs are claimed and reported. Without it, davit refuses installs that need a permit. */
  readonly desk?: PermitDesk | undefined;
  /** Gets each request of the history, when it is recorded. */
  readonly sighted?: HistoryOptions["sighted"];
  /** Where davit keeps a certificate of its own for machines; undefined if it does not make one. */
  readonly certificateDirectory?: string | undefined;
  /** Gets each request of the history; of a follower. */
  readonly handOn?: HistoryOptions["handOn"];
  /** The feeds that further boot threads follow. Without them there is only the first thread. */
  readonly feeds?: Readonly<Record<FeedName, Feed>>;
  /** Where the assets of Profiles are fetched from; nothing is fetched unless given. */
  readonly assetSource?: AssetSource | undefined;
}

/** What the listener for operators shows of the parts that feed the boot service. */
interface Backend {
  /** Why machines are not answered yet, in a few words. */
  readonly waitingFor: string;
  /** Problems for the operator, one per line. */
  readonly attention: () => readonly string[];
  /** Monotonic time up to which the documents are known to match the source; undefined before the first contact. */
  readonly provenAtMs: () => number | undefined;
  /** Sets the metrics that are computed only for a scrape. Called before each scrape. */
  readonly measure: () => void;
  /** Machines and the ledger, for operators; absent without a ledger. */
  readonly machines?: Omit<MachineChangesOptions, "log">;
  /** Only of `davit serve`. */
  readonly console?: ServedConsole;
  /** Only of `davit serve`. */
  readonly documents?: Omit<DocumentsRoutesOptions, "version" | "index" | "clock" | "secretReader">;
  /** Only of `davit boot`. */
  readonly followed?: FollowedStore;
}

/** Idle connections close early: probes open a new connection each time, and scrapers can reconnect. */
const opsLimits = { keepAliveTimeoutMs: 10_000 };

const never = new Promise<never>(() => {});

export class BootService {
  /** Undefined without an assets directory. */
  readonly fetcher: AssetFetcher | undefined;
  /** The missing files that keep machines from an install. */
  readonly missing: MissingAssets;
  readonly #history: History;
  /** Takes what followers hand on into the history. */
  readonly handed: HandedIntake;
  readonly #renderThread: RenderThread;
  /** The first boot thread. */
  readonly #listener: BootListener;
  readonly #opsUnsent: UnsentAnswers;
  readonly #options: BootServiceOptions;
  readonly #stopping = new AbortController();
  #opsServer: HttpServer | undefined;
  #threads: BootThreads | undefined;
  #signers: OpenedSigners = {};
  #opsGuard: OpsGuard | undefined;
  #opsAddress: Address | undefined;
  #tls: BootTls | undefined;
  #nearMisses: NearMisses | undefined;

  constructor(options: BootServiceOptions) {
    this.#options = options;
    const { clock, log, metrics, historyDirectory: directory, handOn, sighted } = options;
    const ofJournal = { files: diskFiles, clock, log: log.child({ part: "history" }), metrics };
    const journal = directory === undefined ? undefined : new Journal({ ...ofJournal, directory });
    this.#history = new History({ clock, metrics, journal, handOn, sighted });
    this.handed = new HandedIntake({ history: this.#history, clock });
    this.#renderThread = new RenderThread({ clock });
    const ofAssets = { clock, log: log.child({ part: "assets" }) };
    this.fetcher = assetFetcher({
      ...options,
      ...ofAssets,
      source: options.assetSource,
      sha256: ({ fd }) => this.#listener.digests.hash(fd),
    });
    this.missing = new MissingAssets(ofAssets);
    this.#listener = new BootListener({
      ...options,
      log: log.child({ part: "http" }),
      indexLog: log.child({ part: "boot" }),
      renderThread: this.#renderThread,
      wanted: this.fetcher?.wanted,
    });
    this.#opsUnsent = new UnsentAnswers({ clients: this.#listener.clients });
  }

  get index(): BootIndex {
    return this.#listener.index;
  }

  /** Answers machines and followers. */
  get assets(): AssetRoute {
    return this.#listener.assets;
  }

  /** Follows the documents of a store. @returns a function that ends this. */
  follow(store: Feed): () => void {
    return this.#listener.follow(store);
  }

  /**
   * Listens for operators. Call this before `listenForMachines`, so that operators can see why davit does not answer
   * machines yet.
   * @throws {StartError}
   */
  async listenForOperators(behind: Backend): Promise<Address> {
    const { config, log, clock, metrics, version, secretKeys } = this.#options;
    const connections = connectionLimitOf("ops", this.#listener.clients, () => metrics.opsConnectionsRefused.inc());
    const shared = { log: log.child({ part: "ops" }), clock, answerError };
    const server = createOpsServer({ ...shared, connections, limits: opsLimits, unsent: this.#opsUnsent });
    this.#listener.freshness.provenBy(behind.provenAtMs);
    const text = async () => {
      behind.measure();
      this.#measureDoubt();
      this.#listener.unsent.measure(metrics.unsentBytes, "boot");
      this.#opsUnsent.measure(metrics.unsentBytes, "ops");
      await this.#history.measure();
      for (const signer of Object.values(this.#signers)) signer.measure();
      return metrics.text();
    };
    const readiness = {
      checks: [
        { name: "boot", check: () => (this.index.isReady ? undefined : behind.waitingFor) },
        { name: "running", check: () => (this.#stopping.signal.aborted ? "stopping" : undefined) },
      ],
      attention: () => [
        ...this.#withheld(),
        ...this.#doubt(),
        ...(secretKeys?.attention ?? []),
        ...this.index.undecryptable,
        ...Object.values(this.#signers).flatMap((signer) => signer.attention()),
        ...(this.fetcher?.attention ?? []),
        ...this.missing.attention,
        ...(this.#tls?.attention() ?? []),
        ...behind.attention(),
      ],
    };
    const scraped = { contentType: metrics.contentType, text };
    await server.app.register(opsRoutes, { version, ...readiness, metrics: scraped });
    await this.#addGuardedRoutes(server, behind, readiness);
    const { address: host, port } = await server.listen({ ...config.opsAddress, option: "--ops-address" });
    this.#opsServer = server;
    this.#opsAddress = { host, port };
    return this.#opsAddress;
  }

  /** The routes that show machines and their configs, behind a guard. */
  async #addGuardedRoutes(
    { app }: OpsServer,
    { machines, console: served, documents, followed }: Backend,
    readiness: Pick<ConsoleOptions, "checks" | "attention">,
  ): Promise<void> {
    const {
      config,
      log,
      lines = new RecentLines(this.#options.clock),
      clock,
      metrics,
      version,
      secretKeys,
    } = this.#options;
    const row = opsRow({
      tokenFile: config.opsTokenFile,
      adminTokenFile: config.opsAdminTokenFile,
      boundTo: () => this.#opsAddress?.host,
      metrics,
    });
    const guard = await Guard.open(row, { clock, log: log.child({ part: "ops" }) });
    this.#opsGuard = guard;
    const previews = new Previews({
      index: this.index,
      configsOver: (view) => this.#listener.configsOver(view, "shown"),
    });
    const bootFilesOf = (group: string) => {
      const machine = this.index.machineOf(group);
      return machine && this.#listener.configs?.bootFilesOf(machine);
    };
    await app.register(guardedRoutes, {
      guard,
      previews,
      history: { history: this.#history, bootFilesOf },
      machines: machines && { ...machines, log: log.child({ part: "ops" }) },
      documents: documents && { ...documents, version, index: this.index, clock, secretReader: secretKeys },
    });
    if (!config.opsConsole) return;
    const { index } = this;
    const shown = { index, history: this.#history, previews, bootFilesOf, machines, served, followed, ...readiness };
    const around = {
      guard,
      clients: this.#listener.clients,
      clock,
      log: log.child({ part: "ops" }),
      lines,
      metrics,
      version,
      rendering: () => this.#listener.rendering,
      signal: this.#stopping.signal,
    };
    await app.register(consoleRoutes, await openConsole({ ...shown, ...around }));
  }

  /**
   * Listens for machines.
   * @throws {StartError}
   */
  async listenForMachines(): Promise<MachineAddresses> {
    const { config, clock, metrics, certificateDirectory: ownDirectory } = this.#options;
    const log = this.#options.log.child({ part: "http" });
    const answered: RequestLogOptions["answered"] = (machine) => this.missing.saw(machine);
    const boots = new BootIds({ random });
    const follow = requestLog({ log, metrics, history: this.#history, boots, answered });
    this.#nearMisses = new NearMisses({ index: this.index, clock, log });
    await openSigners(this.#signers, this.#options);
    this.fetcher?.start();
    this.#tls = await BootTls.open({ config, ownDirectory, clock, log });
    const addresses = await this.#listener.listen({
      signers: this.#signers,
      accessLog: requestFollower({ clock, follow }),
      nearMisses: this.#nearMisses,
      tls: this.#tls,
    });
    metrics.bootThreads.inc();
    this.#threads = this.#openThreads({ follow, nearMisses: this.#nearMisses });
    if (!this.#stopping.signal.aborted) this.#threads?.start();
    return addresses;
  }

  /** Undefined if there is only the first thread. */
  #openThreads(requests: ThreadRequestsOptions): BootThreads | undefined {
    const { config, desk, feeds, ledger, log, clock, metrics } = this.#options;
    const { bound, index, freshness, digests } = this.#listener;
    if (config.bootThreads === 1 || feeds === undefined || bound === undefined) return undefined;
    const signers = this.#signers;
    const fetchesAssets = this.fetcher !== undefined;
    return new BootThreads({
      ...{ ...requests, wanted: this.fetcher?.wanted, clock, log, metrics },
      count: config.bootThreads - 1,
      feeds,
      state: () => ({
        proven: { store: freshness.provenAtMs, ledger: ledger?.provenAtMs },
        settlingSinceMs: index.settling.sinceMs,
      }),
      start: threadStart({ config, bound, desk, fetchesAssets, signers, certificate: this.#tls?.paths }),
      answers: threadAnswers({ index, desk, signers, renderThread: this.#renderThread, digests }),
    });
  }

  /** Called when the first complete list since the start is, or soon will be, in the store. */
  listed(): void {
    this.index.listed();
    this.#threads?.sendState();
  }

  /**
   * Opens the service for machines when `heard` resolves. If that takes longer than the grace time, davit serves the
   * copy on disk, if it has one. Resolves when davit can answer machines. If davit stops before that, this never
   * resolves and the service stays closed. A stop also ends the grace time, so without this rule a stopping davit would
   * begin to serve an old copy.
   */
  async openWhenHeard(heard: Promise<void>): Promise<void> {
    const { clock, config, log } = this.#options;
    const grace = clock.sleep(config.limits.sourceGraceMs, this.#stopping.signal).then(() => "grace" as const);
    const first = await Promise.race([heard, grace]);
    if (this.#stopping.signal.aborted) return await never;
    this.index.open();
    this.#threads?.open();
    // Only now, so that it does not slow the start.
    void this.#history.load();
    if (first !== "grace") return;
    if (!this.index.isReady) return await heard;
    log.warn({ waitedMs: config.limits.sourceGraceMs }, "source not heard in time, serving the copy on disk");
  }

  /** Returns every machine of the history; undefined after the stop has begun, when reading it could take too long. */
  async recordedMachines(): Promise<Iterable<RecordedMachine> | undefined> {
    return this.#stopping.signal.aborted ? undefined : (await this.#history.current()).recordedMachines();
  }

  /** Reports not ready, so that a load balancer sends no more requests. Idempotent. */
  beginStop(): void {
    this.#stopping.abort();
  }

  /** Finishes the requests in flight. Closes the listener for machines, then the one for operators. Idempotent. */
  async stop(): Promise<void> {
    this.beginStop();
    await Promise.all([this.#listener.close(), this.#threads?.stop()]);
    await this.#opsServer?.close();
    this.#nearMisses?.stop();
    await this.#history.stop();
    await this.#renderThread.stop();
    await this.fetcher?.stop();
    await this.#listener.digests.stop();
    await this.#tls?.stop();
    await Promise.all(Object.values(this.#signers).map((signer) => signer.stop()));
    this.#opsGuard?.stop();
  }

  /**
   * Returns a line for the operator while only some machines get answers
   * (docs/internals/decisions/0001-first-sync-with-a-broken-file.md).
   */
  #withheld(): readonly string[] {
    const line = "boot: only Groups that name a machine are answered, and no Install, until all of the source was read";
    return this.index.isReady && this.index.isWithholding ? [line] : [];
  }

  #doubt(): readonly string[] {
    const { doubt } = this.index;
    if (doubt === undefined || !this.index.isReady) return [];
    return [`boot: no Profile with effect Install is answered: ${doubtText(doubt, this.#listener.freshness)}`];
  }

  #measureDoubt(): void {
    const { metrics } = this.#options;
    metrics.sourceStalenessSeconds.set(this.#listener.freshness.ageSeconds);
    for (const doubt of commonDoubts) metrics.installDoubt.set({ doubt }, Number(this.index.doubt === doubt));
  }
}
