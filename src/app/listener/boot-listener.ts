/**
 * What answers machines in a thread: the index, the assets, and the listener for HTTP and HTTPS. It does not know where
 * its documents come from, or where requests are recorded. Each boot thread has one.
 */

import type { ProfileAssetIndex } from "../../assets/profile-asset-index.ts";
import { BootConfigs, type Permits } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import { SlowWork, type SlowWorkOptions } from "../../boot/making/slow-work.ts";
import { BootIndex, type BootView } from "../../boot/selection/boot-index.ts";
import { Freshness } from "../../boot/selection/freshness.ts";
import type { DhcpListening } from "../../dhcp/dhcp-service.ts";
import { type AssetRoute, type AssetsOptions, assetRoute } from "../../http/assets/assets.ts";
import { AssetDigests, type AssetDigestsOptions } from "../../http/assets/digests.ts";
import type { AccessLog } from "../../http/boot/access-log.ts";
import { type RefusalCounterOptions, refusalCounter } from "../../http/boot/answer.ts";
import { loaderRoutes } from "../../http/boot/loader-routes.ts";
import { reportRoute } from "../../http/boot/report.ts";
import { bootHandler } from "../../http/boot/routes.ts";
import type { BootSigners } from "../../http/boot/signatures.ts";
import { Clients } from "../../http/client-shares.ts";
import { withTls } from "../../http/connection-limit.ts";
import { answerError } from "../../http/errors.ts";
import { LargeBodies } from "../../http/large-bodies.ts";
import { createServer, type HttpServer } from "../../http/server.ts";
import { UnsentAnswers, unsentLimitOf } from "../../http/unsent-answers.ts";
import type { KnownLedger } from "../../installs/ledger/known-ledger.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { type Address, authority } from "../../lib/text/address.ts";
import type { Feed } from "../../model/feed.ts";
import { davitRoot } from "../../model/objects/documents.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import { advertisedAddress } from "../core/advertise.ts";
import { connectionLimitOf, maxAssetFiles } from "../core/open-files.ts";
import type { SecretKeys } from "../core/secret-keys.ts";
import { reportingMachine } from "../ledger/machine-book.ts";
import type { BootTls } from "./boot-tls.ts";

/** Picks the options that decide how machines are answered. Boot threads get them, so none of them is a secret. */
export function listenerConfig(config: ServiceConfig & Partial<Pick<DhcpListening, "loaderFiles">>) {
  return {
    bootAddress: config.bootAddress,
    advertiseAddress: config.advertiseAddress,
    bootTlsClientCaFile: config.bootTlsClientCaFile,
    grubSeparator: config.grubSeparator,
    grubCommands: config.grubCommands,
    signingKey: config.signingKey,
    grubSigningKey: config.grubSigningKey,
    bootThreads: config.bootThreads,
    installMaxSourceAgeMs: config.installMaxSourceAgeMs,
    assetsDir: config.assetsDir,
    assetsDotfiles: config.assetsDotfiles,
    limits: { assetsCacheBytes: config.limits.assetsCacheBytes },
    clientLimitExempt: config.clientLimitExempt,
    trustedProxies: config.trustedProxies,
    // Only `davit serve --dhcp` has them.
    ...(config.loaderFiles && { loaderFiles: config.loaderFiles }),
  };
}

interface BootListenerOptions extends Pick<AssetDigestsOptions, "hash"> {
  readonly config: ReturnType<typeof listenerConfig>;
  readonly clock: Clock;
  readonly log: Log;
  readonly indexLog: Log;
  readonly metrics: Pick<Metrics, "bootRefusals" | "bootConnectionsRefused"> &
    AssetsOptions["metrics"] &
    AssetDigestsOptions["metrics"];
  /** The ledger itself, or a copy. Without it, no machine has reported labels. */
  readonly ledger?: KnownLedger | undefined;
  readonly secretKeys?: SecretKeys | undefined;
  readonly renderThread: SlowWorkOptions["thread"];
  /** Without it, davit refuses installs that need a permit, and takes no reports. */
  readonly desk?: PermitDesk | undefined;
  /** The assets that Profiles list; undefined if davit fetches none. */
  readonly wanted: ProfileAssetIndex | undefined;
}

interface BootListening {
  readonly signers: BootSigners;
  readonly accessLog: AccessLog;
  readonly nearMisses: RefusalCounterOptions["nearMisses"];
  /** Undefined: davit does not listen for HTTPS. */
  readonly tls: Pick<BootTls, "tls" | "address" | "advertised"> | undefined;
  /** True if another thread of this process already listens on the addresses. */
  readonly joins?: boolean;
  /** Called before each config. @throws {BootError} while this thread may not answer, although its index is ready. */
  readonly assertCurrent?: () => void;
}

/** Where machines reach davit. */
export interface MachineAddresses {
  /** The listening address for HTTP. */
  readonly bootAddress: Address;
  /** `HOST:PORT` by HTTP. */
  readonly advertised: string;
  /** `HOST:PORT` by HTTPS; absent if davit does not listen for it. */
  readonly advertisedTls?: string;
}

/** The addresses that the first thread has bound, and those in URLs. Further boot threads use the same ones. */
export interface BoundAddresses {
  readonly bootAddress: Address;
  readonly advertiseAddress: Address;
  readonly bootTlsAddress: Address | undefined;
  readonly advertiseTlsAddress: Address | undefined;
}

export class BootListener {
  readonly index: BootIndex;
  readonly freshness: Freshness;
  readonly clients: Clients;
  readonly unsent: UnsentAnswers;
  readonly digests: AssetDigests;
  readonly assets: AssetRoute;
  readonly #options: BootListenerOptions;
  readonly #slowWork: SlowWork;
  readonly #servers: HttpServer[] = [];
  #bound: BoundAddresses | undefined;
  #configs: BootConfigs | undefined;

  constructor(options: BootListenerOptions) {
    this.#options = options;
    const { config, clock, log, metrics, ledger, secretKeys, desk, wanted, hash } = options;
    const { assetsDir: root, assetsDotfiles: serveDotfiles, bootThreads } = config;
    this.freshness = new Freshness({ clock, installMaxSourceAgeMs: config.installMaxSourceAgeMs });
    const ofIndex = { clock, freshness: this.freshness, ledger, ...(secretKeys && { secretReader: secretKeys }) };
    this.index = new BootIndex({ ...ofIndex, log: options.indexLog });
    secretKeys?.onChange(() => this.index.keysChanged());
    this.clients = new Clients({ exempt: config.clientLimitExempt, trustedProxies: config.trustedProxies });
    this.unsent = new UnsentAnswers({ clients: this.clients, limitBytes: unsentLimitOf(bootThreads) });
    this.digests = new AssetDigests({ clock, log, metrics, ...(hash && { hash }) });
    this.assets = assetRoute({
      ...{ root, serveDotfiles, clock, log, metrics, desk, wanted, clients: this.clients, digests: this.digests },
      cacheBytes: Math.floor(config.limits.assetsCacheBytes / bootThreads),
      maxOpen: maxAssetFiles(bootThreads),
    });
    this.#slowWork = new SlowWork({ thread: options.renderThread, clock });
  }

  /** Follows the documents. @returns a function that ends this. */
  follow(feed: Feed): () => void {
    const { wanted } = this.#options;
    const ends = [this.index, ...(wanted === undefined ? [] : [wanted])].map((each) => feed.follow(davitRoot, each));
    return () => {
      for (const end of ends) end();
    };
  }

  /**
   * Begins to listen.
   * @throws {StartError} if an address cannot be used.
   */
  async listen(options: BootListening): Promise<MachineAddresses> {
    const { config, clock, log, metrics, desk, ledger } = this.#options;
    const { signers, accessLog, nearMisses, tls, joins = false, assertCurrent } = options;
    const { index, clients, unsent } = this;
    const large = new LargeBodies(unsent.shares);
    const render: BootConfigs["answer"] = (name, asked) => {
      const ready = this.#ready;
      assertCurrent?.();
      return ready.answer(name, asked);
    };
    const onRefusal = refusalCounter({ metrics, nearMisses });
    const machineOf = ledger && ((token: string) => reportingMachine(ledger, token));
    const routes = [
      this.assets,
      ...(desk === undefined ? [] : [reportRoute({ desk, clients, machineOf })]),
      ...(config.loaderFiles === undefined ? [] : await loaderRoutes(config.loaderFiles)),
    ];
    const handling = { configs: { render }, onRefusal, ...signers, accessLog, clients, large, routes };
    const onRefused = () => metrics.bootConnectionsRefused.inc();
    const servers = config.bootThreads * (tls === undefined ? 1 : 2);
    const connections = connectionLimitOf("boot", clients, onRefused, servers);
    const shared = { log, clock, answerError, connections, unsent };
    const listenOn = (server: HttpServer, address: Address, option: string) =>
      this.#listenOn(server, { ...address, option, shared: joins ? "other" : "first" });
    const bootAddress = await listenOn(
      createServer({ ...shared, handler: bootHandler(handling) }),
      config.bootAddress,
      "--boot-address",
    );
    const advertiseAddress = advertisedAddress(config.advertiseAddress, bootAddress);
    this.#bound = { bootAddress, advertiseAddress, bootTlsAddress: undefined, advertiseTlsAddress: undefined };
    if (tls !== undefined) {
      const asksForCertificate = config.bootTlsClientCaFile !== undefined;
      const handler = bootHandler({ ...handling, transport: "https", asksForCertificate, clock });
      const tlsConnections = connections && withTls(connections, config.bootThreads);
      const tlsServer = createServer({ ...shared, connections: tlsConnections, tls: tls.tls, handler });
      const bootTlsAddress = await listenOn(tlsServer, tls.address, "--boot-tls-address");
      this.#bound = { ...this.#bound, bootTlsAddress, advertiseTlsAddress: tls.advertised(bootTlsAddress) };
    }
    this.#configs = this.configsOver(index, desk);
    const advertised = authority(advertiseAddress);
    const advertisedTls = this.#tlsAuthority;
    return { bootAddress, advertised, ...(advertisedTls !== undefined && { advertisedTls }) };
  }

  /** Where it listens; undefined until it does. */
  get bound(): BoundAddresses | undefined {
    return this.#bound;
  }

  /** The configs that machines get; undefined until it listens. */
  get configs(): BootConfigs | undefined {
    return this.#configs;
  }

  /** Finishes the requests in flight, and closes. Idempotent. */
  async close(): Promise<void> {
    await Promise.all(this.#servers.splice(0).map((server) => server.close()));
  }

  /** @throws {BootError} with the reason `notReady` while davit's address for machines is unknown. */
  configsOver(index: BootView, permits: Permits | undefined): BootConfigs {
    return new BootConfigs({ ...this.rendering, index, slowWork: this.#slowWork, permits, files: this.assets });
  }

  /**
   * What all configs depend on: the addresses of davit, the syntax for GRUB, and whether davit signs.
   * @throws {BootError} as `configsOver`.
   */
  get rendering() {
    const { grubSeparator: separator, grubCommands: commands, signingKey, grubSigningKey } = this.#options.config;
    const isSigned = (grubSigningKey ?? signingKey) !== undefined;
    if (this.#bound === undefined) throw new BootError("notReady");
    const own = authority(this.#bound.advertiseAddress);
    return { authority: own, tlsAuthority: this.#tlsAuthority, grub: { separator, commands }, isSigned };
  }

  get #tlsAuthority(): string | undefined {
    const address = this.#bound?.advertiseTlsAddress;
    return address && authority(address);
  }

  /** A request may arrive after the server has opened and before its address is known. */
  get #ready(): BootConfigs {
    if (this.#configs === undefined) throw new BootError("notReady");
    return this.#configs;
  }

  async #listenOn(server: HttpServer, options: Parameters<HttpServer["listen"]>[0]): Promise<Address> {
    const { address: host, port } = await server.listen(options);
    this.#servers.push(server);
    return { host, port };
  }
}
