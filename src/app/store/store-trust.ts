/** The store's authentication without files from the operator: a certificate of davit's own, and a cluster's tokens. */

import { join } from "node:path";
import type { ServiceAccountTokens } from "../../http/guard/service-account-tokens.ts";
import { isForHost, namesOf, type ServerTlsMaterial, TlsFiles } from "../../http/server-tls.ts";
import type { Clock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import { isWildcard } from "../../lib/text/address.ts";
import type { ClusterTrust } from "../../model/cluster-trust.ts";
import type { ServeConfig } from "../../options/serve.ts";
import type { OwnCertificate } from "../../trust/certificates/own-certificate.ts";

interface StoreTrustOptions {
  readonly config: ServeConfig;
  /** Undefined unless the source is a cluster. */
  readonly trust?: ClusterTrust | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

// Names for clients on the same computer and for clients that reach the store through a forwarded port.
const loopbackHosts = ["localhost", "127.0.0.1", "::1"];

/**
 * Makes the certificate files if needed and returns them; undefined if the operator did not ask for a certificate that
 * davit makes.
 * @throws {StartError} when the certificate cannot be saved.
 */
export async function openOwnCertificate(options: StoreTrustOptions): Promise<OwnCertificate | undefined> {
  const { config, trust, clock, log } = options;
  if (!config.storeOwnCertificate) return undefined;
  // The package that makes certificates takes time and memory: davit loads it only if needed.
  const { OwnCertificate: Certificate } = await import("../../trust/certificates/own-certificate.ts");
  const certificate = new Certificate({
    files: diskFiles,
    directory: join(config.dataDir, "certificate"),
    part: "store",
    keys: "ec",
    hosts: hostsOf(config),
    clock,
    log,
    authorityChanged: (cert) => trust?.publishAuthority(cert),
  });
  await certificate.start();
  return certificate;
}

function hostsOf({ storeAllowedHosts, storeAdvertiseUrl, storeAddress }: ServeConfig): readonly string[] {
  const own = storeAddress === "none" || isWildcard(storeAddress.host) ? [] : [storeAddress.host];
  const advertised = advertisedHost(storeAdvertiseUrl);
  return [...storeAllowedHosts, ...(advertised === undefined ? [] : [advertised]), ...own, ...loopbackHosts];
}

/** Returns the host of the advertised URL, without the brackets of an IPv6 address. */
export function advertisedHost(url: URL | undefined): string | undefined {
  return url?.hostname.replace(/^\[|\]$/g, "");
}

/**
 * Opens the certificate of the listener; undefined for one without TLS.
 * @param own files of a certificate that davit makes, in place of the operator's.
 * @throws {StartError} when a file cannot be used.
 */
export async function openStoreTls(
  { config, clock, log }: StoreTrustOptions,
  own: OwnCertificate["paths"] | undefined,
): Promise<TlsFiles | undefined> {
  const { certFile = config.storeCertFile, keyFile = config.storeKeyFile } = own ?? {};
  if (certFile === undefined || keyFile === undefined) return undefined;
  const host = advertisedHost(config.storeAdvertiseUrl);
  /** Logs a warning if clients will refuse the certificate. */
  const accept = ({ cert, expiresAtMs }: ServerTlsMaterial) => {
    const path = certFile;
    if (expiresAtMs <= clock.nowMs()) log.warn({ path }, "certificate has expired, clients will refuse it");
    if (host === undefined || isForHost(cert, host)) return;
    const problem = "certificate is not for the host of --store-advertise-url, clients that come by it will refuse it";
    log.warn({ path, host, names: namesOf(cert) }, problem);
  };
  const clientCaFile = config.storeClientCaFile;
  return await TlsFiles.open({ certFile, keyFile, clientCaFile, clients: "programs", accept, clock, log });
}

/** Returns the check of ServiceAccount tokens; undefined without a cluster, or if no ServiceAccount is allowed. */
export async function openServiceAccounts(options: StoreTrustOptions): Promise<ServiceAccountTokens | undefined> {
  const { config, trust, clock, log } = options;
  const { storeServiceAccounts: allowed, storeReadingAccounts: reading } = config;
  const { storeTokenAudience: audience, dataDir: directory } = config;
  if (trust === undefined || allowed.length + reading.length === 0) return undefined;
  const { ServiceAccountTokens: Tokens } = await import("../../http/guard/service-account-tokens.ts");
  const fetchKeys = () => trust.tokenKeys();
  const tokens = new Tokens({ allowed, reading, audience, fetchKeys, files: diskFiles, directory, clock, log });
  await tokens.start();
  return tokens;
}
