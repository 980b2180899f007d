/**
 * Makes and renews the certificates of a listener: an authority of davit's own, and a server certificate that this
 * authority signs. Clients trust the authority only after operators have given them its certificate.
 *
 * A folder holds `ca.pem`, `ca-key.pem`, `cert.pem` and `key.pem`, all of mode 0600. davit keeps good files and
 * replaces those that are missing, unusable, out of date or for other hosts. A new authority locks out every client
 * until the client trusts it. So a read error never leads to a new authority: davit refuses to start, or
 * retries in an hour if it has started.
 */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { join } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import type { Files } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import type { Ports } from "../../lib/ports.ts";
import { StartError } from "../../lib/start-error.ts";
import { type Issued, issueAuthority, issueServer, type KeyKind, type Validity } from "./issue.ts";

interface OwnCertificateOptions extends Pick<Ports, "clock" | "log"> {
  readonly files: Files;
  readonly directory: string;
  /** What the listener serves, for people. */
  readonly part: "store" | "boot service";
  readonly keys: KeyKind;
  /** DNS names and addresses of the listener, at least one. */
  readonly hosts: readonly string[];
  /** Called with the authority's certificate (PEM) at the start and after each change. */
  readonly authorityChanged: (cert: string) => void;
}

const dayMs = 24 * 60 * 60_000;
const authorityLifeMs = 3_650 * dayMs;
const serverLifeMs = 90 * dayMs;
/** davit renews a certificate when less than this is left of its lifetime. */
const renewal = { serverMs: 30 * dayMs, authorityMs: 730 * dayMs };
/** A certificate is valid from this long before it is made, because a client's clock may be slow. */
const backdatedMs = 60 * 60_000;
const lookMs = 60 * 60_000;

export class OwnCertificate {
  readonly #options: OwnCertificateOptions;
  readonly #stopping = new AbortController();
  readonly #hosts: readonly string[];
  #authority: Issued = { cert: "", key: "" };
  #keeping: Promise<void> | undefined;

  constructor(options: OwnCertificateOptions) {
    this.#options = options;
    this.#hosts = [...new Set(options.hosts)];
  }

  /** The server certificate's files, for a listener that watches them. */
  get paths(): { readonly certFile: string; readonly keyFile: string } {
    return { certFile: this.#at("cert.pem"), keyFile: this.#at("key.pem") };
  }

  /** The authority's certificate in PEM. */
  get authority(): string {
    return this.#authority.cert;
  }

  /**
   * Makes missing or bad files, and then renews them in time until `stop`.
   * @throws {StartError} when they cannot be read or written.
   */
  async start(): Promise<void> {
    try {
      await this.#options.files.makeDirectory(this.#options.directory);
      await this.#look();
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      throw new StartError(this.#failed(code), { cause: error });
    }
    this.#keeping = this.#keep();
  }

  /** Ends the renewals. Resolves when the last write has ended. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#keeping;
  }

  #failed(code: string): string {
    const { part, directory } = this.#options;
    return `Cannot keep the certificate of the ${part} in "${directory}" (${code}): let davit read and write there`;
  }

  async #keep(): Promise<void> {
    const { clock, log } = this.#options;
    for (;;) {
      await clock.sleep(lookMs, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return;
      try {
        await this.#look();
      } catch (error) {
        log.error({ code: codeOf(error) }, "certificate cannot be renewed, it is tried again in an hour");
      }
    }
  }

  async #look(): Promise<void> {
    const authority = await this.#currentAuthority();
    if (authority.cert !== this.#authority.cert) {
      this.#authority = authority;
      this.#options.authorityChanged(authority.cert);
    }
    const server = await this.#read("cert.pem", "key.pem");
    if (server !== undefined && this.#isGood(server)) return;
    const made = await issueServer({
      authority,
      name: `davit ${this.#options.part}`,
      hosts: this.#hosts,
      validity: this.#validity(serverLifeMs),
    });
    // Between the two writes the files do not fit together. A listener that reads them at that moment keeps the pair
    // that it has.
    await this.#write("key.pem", made.key);
    await this.#write("cert.pem", made.cert);
    this.#options.log.info({ hosts: this.#hosts }, `certificate of the ${this.#options.part} is made`);
  }

  async #currentAuthority(): Promise<Issued> {
    const old = await this.#read("ca.pem", "ca-key.pem");
    if (old !== undefined && this.#lastsMs(old) > renewal.authorityMs && this.#hasBegun(old)) return old;
    // With the old key, old and new certificates of the authority both verify server certificates. So clients need the
    // new one only before the old one expires.
    const key = old === undefined ? {} : { key: old.key };
    const made = await issueAuthority({
      name: `davit ${this.#options.part} authority`,
      kind: this.#options.keys,
      validity: this.#validity(authorityLifeMs),
      ...key,
    });
    await this.#write("ca-key.pem", made.key);
    await this.#write("ca.pem", made.cert);
    this.#options.log.info({ isRenewed: old !== undefined }, `authority of the ${this.#options.part} is made`);
    return made;
  }

  #isGood(server: Issued): boolean {
    const certificate = new X509Certificate(server.cert);
    return (
      this.#lastsMs(server) > renewal.serverMs &&
      this.#hasBegun(server) &&
      certificate.verify(new X509Certificate(this.#authority.cert).publicKey) &&
      isFor(certificate, this.#hosts)
    );
  }

  #lastsMs({ cert }: Issued): number {
    return new X509Certificate(cert).validToDate.getTime() - this.#options.clock.nowMs();
  }

  /** False if the clock was far ahead when davit made the certificate. No client would trust the certificate yet. */
  #hasBegun({ cert }: Issued): boolean {
    return new X509Certificate(cert).validFromDate.getTime() <= this.#options.clock.nowMs();
  }

  #validity(lifeMs: number): Validity {
    const nowMs = this.#options.clock.nowMs();
    return { fromMs: nowMs - backdatedMs, untilMs: nowMs + lifeMs };
  }

  /** Reads a certificate and its key; undefined if one is missing, or the key is not the certificate's. */
  async #read(certName: string, keyName: string): Promise<Issued | undefined> {
    const [cert, key] = await Promise.all([this.#text(certName), this.#text(keyName)]);
    if (cert === undefined || key === undefined) return undefined;
    try {
      return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)) ? { cert, key } : undefined;
    } catch {
      return undefined;
    }
  }

  async #text(name: string): Promise<string | undefined> {
    try {
      return (await this.#options.files.read(this.#at(name))).toString("utf8");
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }

  #write(name: string, text: string): Promise<void> {
    return writeWholeFile(this.#options.files, this.#options.directory, name, [Buffer.from(text)]);
  }

  #at(name: string): string {
    return join(this.#options.directory, name);
  }
}

/** True for a certificate that names exactly these hosts. */
function isFor(certificate: X509Certificate, hosts: readonly string[]): boolean {
  const names = certificate.subjectAltName?.split(", ") ?? [];
  return names.length === hosts.length && hosts.every((host) => namesHost(certificate, host));
}

function namesHost(certificate: X509Certificate, host: string): boolean {
  if (isIP(host) !== 0) return certificate.checkIP(host) !== undefined;
  return certificate.checkHost(host, { subject: "never", wildcards: false }) !== undefined;
}
