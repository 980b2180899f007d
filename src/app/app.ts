/**
 * `davit serve`: builds and starts every part, and stops them in reverse order. Here the parts get access to the
 * computer's disk, network and random numbers.
 */

import { createHash, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { allowedServers } from "../assets/asset-source.ts";
import { permitAnswers } from "../boot/follower-permits.ts";
import { Controller } from "../controller/controller.ts";
import type { ControllerOptions } from "../controller/controller-options.ts";
import { Sightings } from "../controller/machines/sightings.ts";
import { sinkOfAll } from "../controller/status/status-book.ts";
import { StatusLog } from "../controller/status/status-log.ts";
import { trialThread } from "../controller/trials/trial-thread.ts";
import { DhcpService } from "../dhcp/dhcp-service.ts";
import { KnownStatuses } from "../http/console/state/objects.ts";
import type { Clock } from "../lib/clock.ts";
import { assert } from "../lib/errors.ts";
import { diskFiles } from "../lib/files/files.ts";
import { assertPrivate } from "../lib/files/private-path.ts";
import type { Log } from "../lib/log.ts";
import { RecentLines } from "../lib/logging/recent-lines.ts";
import { createMetrics, type Metrics } from "../lib/metrics/metrics.ts";
import { random } from "../lib/ports.ts";
import { Suspensions } from "../lib/suspension.ts";
import { tombstonesRoot } from "../model/objects/documents.ts";
import type { Environment } from "../options/parsing.ts";
import type { ServeConfig } from "../options/serve.ts";
import type { AuditLog } from "../records/audit/audit-log.ts";
import { parseTemplate } from "../render/template/template.ts";
import { type WalFailure, walFailures } from "../store/core/log-port.ts";
import type { SourceProof } from "../store/etcd/members.ts";
import { type OpenStoreOptions, openStore } from "../store/open-store.ts";
import type { Store } from "../store/store.ts";
import { lockDirectory } from "../store/wal/lock.ts";
import { BootService, type BootServiceOptions } from "./boot/boot-service.ts";
import { openSharedStore } from "./core/members.ts";
import { SecretKeys } from "./core/secret-keys.ts";
import { sightingOf } from "./core/sight.ts";
import { LedgerService } from "./ledger/ledger-service.ts";
import { machineBook } from "./ledger/machine-book.ts";
import type { ObjectSource } from "./objects/object-source.ts";
import { openObjects } from "./objects/open-objects.ts";
import { SourceFollower } from "./objects/source-follower.ts";
import { openAudit, seenMachines } from "./open-audit.ts";
import { type Served, served } from "./served.ts";
import { scheduleBackups } from "./store/scheduled-backups.ts";
import { StoreService } from "./store/store-service.ts";

// Enough for the records of about 20,000 deletions of single keys.
const storeReserveBytes = 4 * 1024 * 1024;
const lockCheckMs = 1_000;

interface AppOptions {
  readonly config: ServeConfig;
  readonly log: Log;
  /** Writes a line without its newline to standard output. */
  readonly writeLine: (line: string) => void;
  readonly clock: Clock;
  /** Aborts when davit must stop, even while it starts. */
  readonly stop: AbortSignal;
  readonly version: string;
  /** The process's environment, which may configure access to the cluster. */
  readonly environment: Environment;
  /** Changes the size at which the store begins a new segment, and how often it takes a snapshot. */
  readonly storeSizes?: Pick<OpenStoreOptions, "maxSegmentBytes" | "snapshotInterval">;
}

/** What the controller needs beside the source and the store. */
type ControllerSurroundings = Required<Pick<ControllerOptions, "davitUrl" | "ledger" | "audit">>;

export class App {
  #config: ServeConfig;
  readonly #lines: RecentLines;
  readonly #log: Log;
  readonly #writeLine: AppOptions["writeLine"];
  readonly #clock: Clock;
  readonly #stop: AbortSignal;
  readonly #suspensions: Suspensions;
  readonly #version: string;
  readonly #storeSizes: AppOptions["storeSizes"];
  readonly #metrics: Metrics;
  readonly #sightings = new Sightings();
  readonly #knownStatuses = new KnownStatuses();
  #opened: BootService | undefined;
  readonly #secretKeys: SecretKeys;
  readonly #environment: Environment;
  readonly #statuses: StatusLog;
  #sourceFollower: SourceFollower | undefined;
  /** Until when the store is proven to match the source, by the leader of a shared store. */
  #provenByLeaderMs: number | undefined;
  /** Resolves when the source's first list is in the store. */
  readonly #synced = Promise.withResolvers<void>();
  /** Stop functions of the started parts, the last started first. */
  readonly #stops: (() => void | Promise<void>)[] = [];

  constructor({ config, log, writeLine, clock, stop, version, environment, storeSizes }: AppOptions) {
    this.#config = config;
    this.#lines = new RecentLines(clock);
    this.#log = this.#lines.over(log);
    this.#writeLine = writeLine;
    this.#clock = clock;
    this.#stop = stop;
    this.#suspensions = new Suspensions(clock);
    this.#version = version;
    this.#storeSizes = storeSizes;
    this.#metrics = createMetrics(version);
    this.#environment = environment;
    this.#secretKeys = new SecretKeys({
      path: config.secretsKeyFile,
      clock,
      log: this.#log.child({ part: "secrets" }),
    });
    this.#secretKeys.onChange(() => this.#sourceFollower?.controller?.lookAgain());
    this.#statuses = new StatusLog({ log: log.child({ part: "status" }) });
  }

  /**
   * Starts every part and resolves when all of them listen. `ready` resolves later, when davit begins to answer
   * machines.
   * @throws {StartError | WalError} with one sentence for the operator. After an error, the caller must call `stop`,
   * which ends the parts that have started.
   */
  async start(): Promise<{ readonly ready: Promise<Served> }> {
    await assertPrivate(this.#config.dataDir);
    const dhcp = await DhcpService.open(this.#config, { ...this.#shared, random, stop: this.#stop });
    if (dhcp !== undefined) this.#config = { ...this.#config, ...dhcp.listening };
    await this.#secretKeys.start();
    this.#stops.unshift(() => this.#secretKeys.stop());
    const objects = await this.#openObjects();
    this.#stops.unshift(() => objects.stop());
    const store = await this.#openStore();
    this.#secretKeys.assertFor(store);
    this.#stops.unshift(this.#secretKeys.followAndPurge(store));
    const audit = await this.#openAudit(() => ledger);
    const ledger = await this.#openLedger(objects, audit);
    this.#secretKeys.nameBy(() => ledger.ledger.secret);
    const boot = this.#openBoot(store, ledger);
    this.#stops.unshift(boot.follow(store));
    ledger.followObjects(store, boot.index);
    const backups = scheduleBackups(store, ledger.store, this.#shared);
    if (backups !== undefined) this.#stops.unshift(() => backups.stop());
    const keys = this.#storeService(store, ledger, objects);
    // The constructor of `keys` has started a timer. `stop` must end it even if one of the next lines fails.
    this.#stops.unshift(() => keys.stop());
    this.#stops.unshift(() => boot.stop());
    const adminNamespace = () => this.#followed(objects).adminNamespace;
    const opsAddress = await boot.listenForOperators({
      waitingFor: "the source's first list is not in the store",
      provenAtMs: () => this.#provenAtMs,
      attention: () => [
        ...this.#attention(store, this.#followed(objects)),
        ...(backups?.attention ?? []),
        ...ledger.attention,
        ...(dhcp?.attention ?? []),
      ],
      measure: () => {
        keys.measure();
        backups?.measure(this.#metrics);
        ledger.measure();
        this.#followed(objects).measure();
        this.#sourceFollower?.controller?.measure();
      },
      machines: { ...this.#machines(ledger), audit },
      documents: { store, adminNamespace, machines: () => seenMachines({ boot, ledger }) },
      console: {
        statuses: this.#knownStatuses,
        callers: () => this.#followed(objects).callers,
        adminNamespace,
        view: () => this.#sourceFollower?.controller && this.#followed(objects).source.view,
        store: { store, quotaBytes: this.#config.storeQuotaBytes, followers: () => keys.followers },
      },
    });
    const storeAddress = await keys.listen();
    const machines = await boot.listenForMachines();
    const surroundings = { davitUrl: `http://${machines.advertised}`, ledger: ledger.ledger.known, audit };
    await this.#followSource(store, objects, surroundings);
    const listening = { opsAddress, storeAddress, storeTls: keys.hasTls, ...machines };
    const ready = boot.openWhenHeard(this.#synced.promise).then(() => {
      // A member that does not lead reads no source: it knows what the store has.
      const isReading = this.#sourceFollower?.controller !== undefined;
      return served(listening, this.#followed(objects), { version: this.#version, index: boot.index, isReading });
    });
    this.#stops.unshift(() => dhcp?.stop());
    // It may look for another server for seconds first. Machines that have an address get answers meanwhile.
    await dhcp?.start(machines.advertised);
    return { ready };
  }

  /** What every part needs. */
  get #shared() {
    const [config, log, clock, metrics, version] = [this.#config, this.#log, this.#clock, this.#metrics, this.#version];
    return { config, log, clock, metrics, version, secretKeys: this.#secretKeys };
  }

  /** Monotonic: the store has everything that the source reported by then. */
  get #provenAtMs(): number | undefined {
    const own = this.#sourceFollower?.controller?.provenAtMs;
    const known = [own, this.#provenByLeaderMs].filter((atMs) => atMs !== undefined);
    return known.length === 0 ? undefined : this.#suspensions.corrected(Math.max(...known));
  }

  #followed(first: ObjectSource): ObjectSource {
    return this.#sourceFollower?.objects ?? first;
  }

  /** Reports not ready. Then finishes the requests in flight, and stops every part and the store. Idempotent. */
  async stop(): Promise<void> {
    this.#opened?.beginStop();
    for (let next = this.#stops.shift(); next !== undefined; next = this.#stops.shift()) await next();
  }

  async #openObjects(): Promise<ObjectSource> {
    return await openObjects({
      ...this.#shared,
      environment: this.#environment,
      random,
      instance: hostname(),
    });
  }

  async #openStore(): Promise<Store> {
    const { storeEtcdEndpoints: endpoints, dataDir: directory, onDamage } = this.#config;
    for (const reason of walFailures) this.#metrics.storeProposalsFailed.inc({ reason }, 0);
    const shared = {
      clock: this.#clock,
      random: randomBytes,
      log: this.#log.child({ part: "store" }),
      observeSyncSeconds: (seconds: number) => this.#metrics.storeSyncSeconds.observe(seconds),
      observeFailure: (reason: WalFailure) => this.#metrics.storeProposalsFailed.inc({ reason }),
      quotaBytes: this.#config.storeQuotaBytes,
      maxWatchers: this.#config.limits.storeMaxWatchers,
      agelessRoot: tombstonesRoot,
      ...this.#storeSizes,
    };
    const inFiles = { directory, files: diskFiles, lock: lockDirectory, reserveBytes: storeReserveBytes, lockCheckMs };
    const store =
      endpoints === undefined
        ? await openStore({ ...shared, ...inFiles, onDamage })
        : await openSharedStore({ ...shared, config: this.#config, endpoints, stop: this.#stop, proof: this.#proof() });
    this.#stops.unshift(() => store.stop());
    return store;
  }

  async #openAudit(ledger: () => LedgerService): Promise<AuditLog | undefined> {
    const ground = () => ({ boot: this.#boot, ledger: ledger() });
    const opened = await openAudit({ ...this.#shared, writeLine: this.#writeLine, ground });
    if (opened !== undefined) this.#stops.unshift(opened.stop);
    return opened?.audit;
  }

  async #openLedger(first: ObjectSource, audit: AuditLog | undefined): Promise<LedgerService> {
    const { ledgerMark: mark } = first;
    const eventSink = () => this.#followed(first).eventSink;
    const rulesOf = (profile: string) => this.#opened?.index.reportRulesOf(profile);
    const ledger = await LedgerService.open({ ...this.#shared, stop: this.#stop, mark, rulesOf, eventSink, audit });
    this.#stops.unshift(() => ledger.stop());
    return ledger;
  }

  #openBoot(store: Store, { ledger, store: ledgerStore }: LedgerService): BootService {
    const sighted: BootServiceOptions["sighted"] = (seen, isOwn) => {
      const sighting = sightingOf(seen, this.#clock);
      if (sighting === undefined) return;
      this.#sightings.saw(sighting, isOwn);
    };
    const historyDirectory = join(this.#config.dataDir, "history");
    this.#opened = new BootService({
      ...this.#shared,
      lines: this.#lines,
      ledger: ledger.known,
      desk: ledger,
      sighted,
      historyDirectory,
      feeds: { store, ledger: ledgerStore },
      assetSource: allowedServers(this.#config.fetchAssetsFrom.flat(), ownPortsOf(this.#config)),
      certificateDirectory: this.#config.bootTlsOwnCertificate
        ? join(this.#config.dataDir, "boot-certificate")
        : undefined,
    });
    return this.#opened;
  }

  get #boot(): BootService {
    assert(this.#opened !== undefined, "The boot service is open after the ledger");
    return this.#opened;
  }

  #machines({ ledger }: LedgerService) {
    const { index } = this.#boot;
    const problems = () => ledger.problems;
    const pending = () => this.#sourceFollower?.controller?.pendingMachines() ?? [];
    return {
      book: machineBook({ index, known: ledger.known, problems, pending }),
      office: ledger,
    };
  }

  #proof(): SourceProof {
    return {
      own: () => this.#suspensions.corrected(this.#sourceFollower?.controller?.provenAtMs),
      heard: (provenAtMs) => {
        this.#provenByLeaderMs = Math.max(provenAtMs, this.#provenByLeaderMs ?? provenAtMs);
        this.#synced.resolve();
      },
    };
  }

  #storeService(store: Store, ledger: LedgerService, { trust }: ObjectSource): StoreService {
    const { index, handed } = this.#boot;
    const permits = permitAnswers({ index, desk: ledger.ledger });
    // Only the leader of a shared store writes statuses.
    const take = async (...batch: Parameters<typeof handed.take>) =>
      store.membership.isLeader ? await handed.take(...batch) : undefined;
    const asked = { completeAtMs: () => ledger.completeAtMs, permits, handed: { take } };
    return new StoreService({
      ...this.#shared,
      store,
      ledger: { store: ledger.store, ledger: ledger.ledger, ...asked },
      trust,
      isReady: () => index.isReady,
      assets: this.#boot.assets,
      provenAtMs: () => this.#provenAtMs,
    });
  }

  /** Follows the source whenever this davit leads the store. */
  async #followSource(store: Store, first: ObjectSource, around: ControllerSurroundings): Promise<void> {
    const log = this.#log.child({ part: "controller" });
    const follower = new SourceFollower({
      clock: this.#clock,
      log,
      first,
      open: () => this.#openObjects(),
      controllerOf: (objects) => this.#controllerOf(store, objects, { ...around, log }),
    });
    this.#sourceFollower = follower;
    this.#stops.unshift(() => follower.stop());
    await follower.follow(store);
  }

  #controllerOf(
    store: Store,
    { source, statusSink, adminNamespace, machineMaker }: ObjectSource,
    around: ControllerSurroundings & { readonly log: Log },
  ): Controller {
    this.#secretKeys.assertFor(store);
    // What another member wrote meanwhile is not known.
    this.#knownStatuses.clear();
    const sinks = [this.#statuses, this.#knownStatuses, ...(statusSink === undefined ? [] : [statusSink])];
    return new Controller({
      source,
      store,
      statusSink: sinkOfAll(sinks),
      trials: trialThread({ davitUrl: around.davitUrl, clock: this.#clock }),
      clock: this.#clock,
      ...around,
      sightings: this.#sightings,
      assets: this.#boot.fetcher,
      missing: this.#boot.missing,
      machineMaker,
      metrics: this.#metrics,
      sha256: (text) => createHash("sha256").update(text).digest("hex"),
      secretTexts: this.#secretKeys,
      checkTemplate: parseTemplate,
      adminNamespace,
      random,
      tombstoneTtlSeconds: Math.ceil(this.#config.tombstoneTtlMs / 1_000),
      onSynced: () => this.#synced.resolve(),
      onComplete: () => this.#boot.listed(),
    });
  }

  /** Problems for the operator, one per line. */
  #attention(store: Store, followed: ObjectSource): readonly string[] {
    const problems = followed.source.view.problems.map(({ origin, message }) => `${origin}: ${message}`);
    // `problems` already has each refused object, with its place and the reason.
    const objects = this.#statuses
      .attention()
      .filter(({ reason }) => reason !== "Refused")
      .map(({ name, reason, message }) => `${name.kind} ${name.namespace}/${name.name}: ${reason}: ${message}`);
    const strange = [...store.membership.strangeKeys].map(
      (key) => `store: etcd has the key ${JSON.stringify(key)}, which no davit wrote: delete it`,
    );
    const ofStore = [...(store.trouble === undefined ? [] : [`store: ${store.trouble}`]), ...strange];
    const ofController = this.#sourceFollower?.controller?.attention ?? [];
    return [...ofStore, ...problems, ...objects, ...ofController, ...followed.attention()];
  }
}

function ownPortsOf({ bootAddress, bootTlsAddress, storeAddress, opsAddress }: ServeConfig): readonly number[] {
  return [bootAddress, bootTlsAddress, storeAddress, opsAddress].flatMap((address) =>
    address === undefined || address === "none" ? [] : address.port,
  );
}
