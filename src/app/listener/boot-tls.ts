/**
 * HTTPS of the boot service: the certificate, and the hosts that it must be for. davit checks each new certificate and
 * reports problems to the operator, because firmware does not say why it refuses one.
 */

import { isForHost, namesOf, type ServerTls, type ServerTlsMaterial, TlsFiles } from "../../http/server-tls.ts";
import { type Clock, toRfc3339 } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import { FileError } from "../../lib/files/watched-files.ts";
import type { Log } from "../../lib/log.ts";
import { type Address, isWildcard } from "../../lib/text/address.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import type { OwnCertificate } from "../../trust/certificates/own-certificate.ts";
import { advertisedTlsAddress } from "../core/advertise.ts";

type TlsConfig = Pick<
  ServiceConfig,
  | "bootTlsAddress"
  | "bootTlsCertFile"
  | "bootTlsKeyFile"
  | "bootTlsClientCaFile"
  | "advertiseAddress"
  | "advertiseTlsAddress"
>;

interface BootTlsOptions {
  readonly config: TlsConfig;
  /** Where davit keeps a certificate of its own; undefined if the operator gives one. */
  readonly ownDirectory: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export class BootTls {
  /** Where davit listens for HTTPS, as configured. */
  readonly address: Address;
  readonly #options: BootTlsOptions;
  #own: OwnCertificate | undefined;
  #files: TlsFiles | undefined;

  private constructor(options: BootTlsOptions, address: Address) {
    this.#options = options;
    this.address = address;
  }

  /**
   * Opens the certificate; undefined if davit does not listen for HTTPS.
   * @throws {StartError} if the files cannot be used, or the certificate is for other hosts.
   */
  static async open(options: BootTlsOptions): Promise<BootTls | undefined> {
    const { bootTlsAddress } = options.config;
    if (bootTlsAddress === undefined) return undefined;
    const opened = new BootTls(options, bootTlsAddress);
    await opened.#open(options);
    return opened;
  }

  /** @throws {TypeError} before `open` has ended. */
  get tls(): ServerTls {
    if (this.#files === undefined) throw new TypeError("The certificate is not open");
    return this.#files.tls;
  }

  /** The files of certificate and key. Further boot threads read them. */
  get paths(): { readonly certFile: string; readonly keyFile: string } {
    const { bootTlsCertFile, bootTlsKeyFile } = this.#options.config;
    const { certFile = bootTlsCertFile, keyFile = bootTlsKeyFile } = this.#own?.paths ?? {};
    if (certFile === undefined || keyFile === undefined) throw new TypeError("The options demand a certificate");
    return { certFile, keyFile };
  }

  /** Returns the address for machines. @param listening the address with its actual port. */
  advertised(listening: Address): Address {
    return advertisedTlsAddress(this.#options.config, listening);
  }

  /** Problems of the certificate for the operator, one per line. */
  attention(): readonly string[] {
    const files = this.#files;
    if (files === undefined) return [];
    const problem = this.#outOfDate(files.tls.material);
    return [
      ...(problem === undefined ? [] : [`boot: machines refuse the certificate for HTTPS: ${problem}`]),
      ...(files.problem === "" ? [] : [`boot: HTTPS keeps the certificate that it has: ${files.problem}`]),
    ];
  }

  /** Stops following files and renewing the own certificate. Idempotent. */
  async stop(): Promise<void> {
    this.#files?.stop();
    await this.#own?.stop();
  }

  async #open({ config, ownDirectory, clock, log }: BootTlsOptions): Promise<void> {
    const { bootTlsClientCaFile: clientCaFile } = config;
    if (ownDirectory !== undefined) this.#own = await this.#makeOwn(ownDirectory);
    const accept = (material: ServerTlsMaterial, isFirst: boolean) => this.#judge(material, isFirst);
    this.#files = await TlsFiles.open({ ...this.paths, clientCaFile, clients: "machines", accept, clock, log });
  }

  async #makeOwn(directory: string): Promise<OwnCertificate> {
    const { clock, log } = this.#options;
    // The package that makes certificates takes time and memory: davit loads it only if needed.
    const { OwnCertificate: Certificate } = await import("../../trust/certificates/own-certificate.ts");
    const hosts = [...(isWildcard(this.address.host) ? [] : [this.address.host]), this.#host, "localhost", "127.0.0.1"];
    const files = { files: diskFiles, directory, hosts };
    const own = new Certificate({
      ...files,
      part: "boot service",
      keys: "rsa",
      clock,
      log,
      authorityChanged: () => undefined,
    });
    await own.start();
    return own;
  }

  /** The host in the URLs of machines. */
  get #host(): string {
    return advertisedTlsAddress(this.#options.config, this.address).host;
  }

  /**
   * Refuses a certificate for other hosts. It refuses one out of date only if that would replace another one: at the
   * start davit reports it, because machines must still boot by HTTP.
   */
  #judge(material: ServerTlsMaterial, isFirst: boolean): void {
    const { cert } = material;
    if (!isForHost(cert, this.#host)) {
      const names = namesOf(cert).join(", ");
      throw new FileError(
        `the certificate is for ${names || "no host"}, and machines ask for "${this.#host}": get one for that host, ` +
          "or correct --advertise-tls-address",
      );
    }
    const problem = this.#outOfDate(material);
    if (problem === undefined) return;
    if (!isFirst) throw new FileError(problem);
    this.#options.log.error({ problem }, "machines refuse the certificate for HTTPS");
  }

  #outOfDate({ validFromMs, expiresAtMs }: ServerTlsMaterial): string | undefined {
    const nowMs = this.#options.clock.nowMs();
    if (expiresAtMs <= nowMs) return "the certificate has expired: renew it";
    if (validFromMs <= nowMs) return undefined;
    return `the certificate is not valid before ${toRfc3339(validFromMs)}: wait, or correct the clock of this computer`;
  }
}
