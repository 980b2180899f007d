/**
 * The listener for machines, for HTTP and HTTPS, and the parts that answer them. It does not know where its index gets
 * documents, or where requests are recorded. Each boot thread has one.
 */

import { BootConfigs, type Permits } from "../../boot/boot-configs.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import type { SlowWork } from "../../boot/making/slow-work.ts";
import type { BootIndex, BootView } from "../../boot/selection/boot-index.ts";
import type { AssetRoute } from "../../http/assets/assets.ts";
import type { AccessLog } from "../../http/boot/access-log.ts";
import { type ReportRouteOptions, reportRoute } from "../../http/boot/report.ts";
import { bootHandler } from "../../http/boot/routes.ts";
import type { BootSigners } from "../../http/boot/signatures.ts";
import { type WatchedConfigsOptions, watchedConfigs } from "../../http/boot/watched-configs.ts";
import { withTls } from "../../http/connection-limit.ts";
import { answerError } from "../../http/errors.ts";
import { LargeBodies } from "../../http/large-bodies.ts";
import { createServer, type HttpServer, type ServerOptions } from "../../http/server.ts";
import type { UnsentAnswers } from "../../http/unsent-answers.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { type Address, authority } from "../../lib/text/address.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import { advertisedAddress } from "../core/advertise.ts";
import { connectionLimitOf } from "../core/open-files.ts";
import type { BootTls } from "./boot-tls.ts";

/** The options that decide how machines are answered. */
export type ListenerConfig = Pick<
  ServiceConfig,
  | "bootAddress"
  | "advertiseAddress"
  | "bootTlsClientCaFile"
  | "grubSeparator"
  | "grubCommands"
  | "signingKey"
  | "grubSigningKey"
  | "bootThreads"
>;

export interface BootListenerOptions
  extends Pick<ServerOptions<unknown>, "log" | "clock">,
    Pick<ReportRouteOptions, "clients" | "machineOf"> {
  readonly config: ListenerConfig;
  readonly index: BootIndex;
  readonly slowWork: SlowWork;
  readonly signers: BootSigners;
  readonly assets: AssetRoute;
  /** Without it, davit refuses installs that need a permit, and takes no reports. */
  readonly desk?: PermitDesk | undefined;
  readonly accessLog: AccessLog;
  readonly nearMisses: WatchedConfigsOptions["nearMisses"];
  readonly metrics: Pick<Metrics, "bootRefusals" | "bootConnectionsRefused">;
  readonly unsent: UnsentAnswers;
  /** Undefined: davit does not listen for HTTPS. */
  readonly tls: Pick<BootTls, "tls" | "address" | "advertised"> | undefined;
  /** True if another thread of this process already listens on the addresses. */
  readonly joins?: boolean;
  /** Called before each config. @throws {BootError} while this thread may not answer, although its index is ready. */
  readonly assertCurrent?: (() => void) | undefined;
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
  readonly #options: BootListenerOptions;
  readonly #servers: HttpServer[] = [];
  #bound: BoundAddresses | undefined;
  #configs: BootConfigs | undefined;

  constructor(options: BootListenerOptions) {
    this.#options = options;
  }

  /**
   * Begins to listen.
   * @throws {StartError} if an address cannot be used.
   */
  async listen(): Promise<MachineAddresses> {
    const { config, index, metrics, nearMisses, desk, machineOf, signers, accessLog, clients, unsent, tls } =
      this.#options;
    const large = new LargeBodies(unsent.shares);
    const render: BootConfigs["answer"] = (name, asked) => this.#ready.answer(name, asked);
    const configs = watchedConfigs({ render }, { metrics, nearMisses });
    const routes = [this.#options.assets, ...(desk === undefined ? [] : [reportRoute({ desk, clients, machineOf })])];
    const handling = { configs, ...signers, accessLog, clients, large, routes };
    const onRefused = () => metrics.bootConnectionsRefused.inc();
    const servers = config.bootThreads * (tls === undefined ? 1 : 2);
    const connections = connectionLimitOf("boot", clients, onRefused, servers);
    const { log, clock } = this.#options;
    const shared = { log, clock, answerError, connections, unsent };
    const server = createServer({ ...shared, handler: bootHandler(handling) });
    const bootAddress = await this.#listenOn(server, config.bootAddress, "--boot-address");
    const advertiseAddress = advertisedAddress(config.advertiseAddress, bootAddress);
    this.#bound = { bootAddress, advertiseAddress, bootTlsAddress: undefined, advertiseTlsAddress: undefined };
    if (tls !== undefined) {
      const asksForCertificate = config.bootTlsClientCaFile !== undefined;
      const handler = bootHandler({ ...handling, transport: "https", asksForCertificate, clock });
      const tlsConnections = connections && withTls(connections, config.bootThreads);
      const tlsServer = createServer({ ...shared, connections: tlsConnections, tls: tls.tls, handler });
      const bootTlsAddress = await this.#listenOn(tlsServer, tls.address, "--boot-tls-address");
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
    const { slowWork, assets: files } = this.#options;
    return new BootConfigs({ ...this.rendering, index, slowWork, permits, files });
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
    this.#options.assertCurrent?.();
    return this.#configs;
  }

  async #listenOn(server: HttpServer, { host, port }: Address, option: string): Promise<Address> {
    const shared = this.#options.joins === true ? "other" : "first";
    const { address, port: actualPort } = await server.listen({ host, port, option, shared });
    this.#servers.push(server);
    return { host: address, port: actualPort };
  }
}
