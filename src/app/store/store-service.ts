/** The store's listener: its guard, the key API, and the routes for followers and backups. */

import type { AssetRoute } from "../../http/assets/assets.ts";
import { Clients } from "../../http/client-shares.ts";
import type { ConnectedFollower } from "../../http/console/pages/context.ts";
import { Guard } from "../../http/guard/guard.ts";
import { type SecretsGuard, type StoreGuard, secretsGuard, storeRow } from "../../http/guard/store-guard.ts";
import { keysErrors } from "../../http/keys/reply.ts";
import { keysHandler, keysLimits } from "../../http/keys/routes.ts";
import { createServer, type HttpServer } from "../../http/server.ts";
import type { TlsFiles } from "../../http/server-tls.ts";
import { BackupStreams, backupAnswer } from "../../http/store/backups.ts";
import { followAnswer } from "../../http/store/follow-routes.ts";
import { FollowStreams } from "../../http/store/follow-streams.ts";
import { type PermitRoutesOptions, permitRoutes } from "../../http/store/permit-routes.ts";
import { type LedgerAnswers, storeHandler } from "../../http/store/routes.ts";
import { UnsentAnswers } from "../../http/unsent-answers.ts";
import { ledgerRootPath } from "../../installs/ledger/ledger-documents.ts";
import type { Clock } from "../../lib/clock.ts";
import { diskSentence } from "../../lib/files/disk-sentence.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { localTokenFile, openLocalToken } from "../../lib/files/token-file.ts";
import { FileError } from "../../lib/files/watched-files.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { StartError } from "../../lib/start-error.ts";
import { type Address, isLoopback } from "../../lib/text/address.ts";
import type { ClusterTrust } from "../../model/cluster-trust.ts";
import type { ServeConfig } from "../../options/serve.ts";
import type { Store } from "../../store/store.ts";
import { advertisedAuthority } from "../core/advertise.ts";
import { connectionLimitOf } from "../core/open-files.ts";
import { signsOfLife } from "../core/signs-of-life.ts";
import type { LedgerService } from "../ledger/ledger-service.ts";
import { advertisedHost, openOwnCertificate, openServiceAccounts, openStoreTls } from "./store-trust.ts";

interface StoreServiceOptions {
  readonly config: ServeConfig;
  readonly store: Store;
  /** Absent without a ledger: then followers serve no install that needs a permit. */
  readonly ledger?: SharedLedger;
  /** Undefined unless the source is a cluster. */
  readonly trust?: ClusterTrust | undefined;
  /** Sends assets to followers; they get none unless given. */
  readonly assets?: Pick<AssetRoute, "answer">;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** True when followers may get the store's content. */
  readonly isReady: () => boolean;
  /** Monotonic time up to which the store is known to match its source; undefined before the first contact. */
  readonly provenAtMs: () => number | undefined;
}

/** The ledger for followers. */
interface SharedLedger
  extends Pick<LedgerService, "store" | "ledger">,
    Pick<PermitRoutesOptions, "permits" | "handed"> {
  /** See `LedgerService`. */
  readonly completeAtMs: () => number;
}

/** davit disconnects a client that reads nothing of its answer for this long. */
const unreadLimitMs = 30_000;

export class StoreService {
  readonly #options: StoreServiceOptions;
  readonly #streams: FollowStreams;
  readonly #ledgerStreams: FollowStreams | undefined;
  readonly #backups: BackupStreams;
  #trusted: readonly ({ stop(): void | Promise<void> } | undefined)[] = [];
  #tls: TlsFiles | undefined;
  #guard: StoreGuard | undefined;
  #unsent: UnsentAnswers | undefined;
  #server: HttpServer | undefined;
  /** The store's URL for clients; empty until it listens. */
  #url = "";
  /** The term of the store at the last measurement. */
  #term: number;

  constructor(options: StoreServiceOptions) {
    this.#options = options;
    this.#term = options.store.indexes.raftTerm;
    const { beatMs } = signsOfLife(options.config.installMaxSourceAgeMs);
    this.#streams = new FollowStreams({ ...options, beatMs });
    const { clock, ledger } = options;
    this.#ledgerStreams =
      ledger && new FollowStreams({ store: ledger.store, clock, provenAtMs: ledger.completeAtMs, beatMs });
    this.#backups = new BackupStreams({
      store: options.store,
      ...(ledger && { beside: ledger.store.partAt(ledgerRootPath) }),
      clock,
      log: options.log.child({ part: "backup" }),
    });
  }

  /** True if clients must use TLS. */
  get hasTls(): boolean {
    return this.#tls !== undefined;
  }

  /**
   * @returns the address; undefined if davit must not listen.
   * @throws {StartError} when its files cannot be used, or the address is taken.
   */
  async listen(): Promise<Address | undefined> {
    const { config, store, clock, metrics, isReady } = this.#options;
    const { storeAddress } = config;
    if (storeAddress === "none") return undefined;
    const log = this.#options.log.child({ part: "keys" });
    const guard = await this.#openGuard(log);
    this.#guard = guard;
    const clients = new Clients({ exempt: config.clientLimitExempt, trustedProxies: config.trustedProxies });
    const unsent = new UnsentAnswers({ clients, stallMs: unreadLimitMs });
    this.#unsent = unsent;
    const secrets = secretsGuard({
      asksForCredentials: guard.asksForCredentials,
      isLoopback: isLoopback(storeAddress.host),
      localToken: await this.#localToken(),
    });
    const handler = storeHandler({
      store,
      guard,
      keys: keysHandler({
        ...{ store, clients, unsent, clock, maxValueBytes: config.limits.storeMaxValueBytes },
        advertiseUrl: () => this.#url,
      }),
      follow: followAnswer({ store, streams: this.#streams, log, guard: secrets, isReady }),
      backup: backupAnswer({ store, streams: this.#backups, guard: secrets }),
      assets: this.#options.assets,
      ledger: this.#ledgerAnswers(secrets, log),
    });
    const server = createServer({
      log,
      clock,
      answerError: keysErrors(store),
      unsent,
      connections: connectionLimitOf("store", clients, () => metrics.storeConnectionsRefused.inc()),
      limits: keysLimits,
      tls: this.#tls?.tls,
      handler,
    });
    const { address: host, port } = await server.listen({ ...storeAddress, option: "--store-address" });
    this.#server = server;
    const own = `${this.hasTls ? "https" : "http"}://${advertisedAuthority(undefined, { host, port })}`;
    this.#url = config.storeAdvertiseUrl?.origin ?? own;
    return { host, port };
  }

  #ledgerAnswers(guard: SecretsGuard, log: Log): LedgerAnswers | undefined {
    const streams = this.#ledgerStreams;
    if (this.#options.ledger === undefined || streams === undefined) return undefined;
    const { clock } = this.#options;
    const { store, ledger, permits, handed } = this.#options.ledger;
    // A copy of a ledger that has not begun would say less than what a follower has.
    const isReady = () => ledger.known.meta !== undefined;
    const followLog = log.child({ part: "ledger" });
    return {
      follow: followAnswer({ store, streams, log: followLog, guard, isReady }),
      asked: permitRoutes({ store: this.#options.store, guard, permits, handed, clock }),
    };
  }

  /** @throws {StartError} */
  async #localToken(): Promise<string> {
    const { dataDir } = this.#options.config;
    try {
      return await openLocalToken(diskFiles, dataDir);
    } catch (error) {
      const problem =
        error instanceof FileError ? error.message : (diskSentence(error) ?? "it cannot be read or written");
      throw new StartError(`Cannot use "${localTokenFile(dataDir)}": ${problem}`, { cause: error });
    }
  }

  async #openGuard(log: Log): Promise<StoreGuard> {
    const { config, clock, metrics } = this.#options;
    const trusting = { ...this.#options, log };
    const ownCertificate = await openOwnCertificate(trusting);
    const serviceAccounts = await openServiceAccounts(trusting);
    this.#trusted = [ownCertificate, serviceAccounts];
    this.#tls = await openStoreTls(trusting, ownCertificate?.paths);
    const row = storeRow({
      tokenFile: config.storeTokenFile,
      clientCaFile: config.storeClientCaFile,
      host: advertisedHost(config.storeAdvertiseUrl),
      allowedHosts: config.storeAllowedHosts,
      serviceAccounts,
      clock,
      log,
      metrics,
    });
    return await Guard.open(row, { clock, log });
  }

  /** The followers that are connected now. */
  get followers(): readonly ConnectedFollower[] {
    return this.#streams.followers;
  }

  /** Sets the metrics that are computed only for a scrape. */
  measure(): void {
    const { store, metrics } = this.#options;
    metrics.storeWritable.set(store.status === "writable" ? 1 : 0);
    metrics.storeFull.set(store.status === "full" ? 1 : 0);
    metrics.storeIndex.set(store.indexes.storeIndex);
    metrics.storeBytes.set(store.bytes);
    metrics.storeWatchers.set(store.watcherCount);
    metrics.storeFollowers.set(this.#streams.count);
    metrics.unsentBytes.set({ listener: "store" }, this.#unsent?.bytes ?? 0);
    this.#measureMembers();
  }

  /** A davit that is the only one on its log is no member. */
  #measureMembers(): void {
    const { store, metrics, clock } = this.#options;
    const { isLeader, members, completeAtMs } = store.membership;
    if (completeAtMs === undefined) return;
    metrics.storeIsLeader.set(isLeader ? 1 : 0);
    metrics.storeMembers.set(members.length);
    metrics.storeLagSeconds.set((clock.monotonicMs() - completeAtMs) / 1_000);
    // Each leader begins a term, which all members count alike.
    const { raftTerm } = store.indexes;
    metrics.storeLeaderChanges.inc(raftTerm - this.#term);
    this.#term = raftTerm;
  }

  /**
   * Ends watches, backups and the streams to followers. Then finishes the other requests in flight and closes the
   * listener. Idempotent.
   */
  async stop(): Promise<void> {
    for (const part of this.#trusted) await part?.stop();
    this.#tls?.stop();
    this.#guard?.stop();
    this.#streams.stop();
    this.#ledgerStreams?.stop();
    this.#backups.endAll();
    await this.#server?.close();
    this.#server = undefined;
  }
}
