/** Parts of the store's authentication besides users' files: its own certificate, and a cluster's tokens. */

import { join } from "node:path";
import type { OwnCertificate } from "../certificates/own-certificate.ts";
import type { ServiceAccountTokens } from "../http/store/service-account-tokens.ts";
import { isWildcard } from "../lib/address.ts";
import type { Clock } from "../lib/clock.ts";
import { diskFiles } from "../lib/files.ts";
import type { Log } from "../lib/log.ts";
import type { ClusterTrust } from "../model/cluster-trust.ts";
import type { ServeConfig } from "../options/serve.ts";

export interface StoreTrustOptions {
  readonly config: ServeConfig;
  /** Undefined unless the source is a cluster. */
  readonly trust?: ClusterTrust | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

// The names for the machine itself, and for a forwarded port.
const loopbackHosts = ["localhost", "127.0.0.1", "::1"];

/**
 * The store's own certificate, ready for use; undefined if the store has another one or none.
 * @throws {StartError} when it cannot be saved.
 */
export async function openOwnCertificate(options: StoreTrustOptions): Promise<OwnCertificate | undefined> {
  const { config, trust, clock, log } = options;
  if (!config.storeOwnCertificate) return undefined;
  // The package that makes certificates takes time and memory: davit loads it only if needed.
  const { OwnCertificate: Certificate } = await import("../certificates/own-certificate.ts");
  const certificate = new Certificate({
    files: diskFiles,
    directory: join(config.dataDir, "certificate"),
    hosts: hostsOf(config),
    clock,
    log,
    authorityChanged: (cert) => trust?.publishAuthority(cert),
  });
  await certificate.start();
  return certificate;
}

function hostsOf({ storeCertificateNames, storeAdvertiseUrl, storeAddress }: ServeConfig): readonly string[] {
  const own = isWildcard(storeAddress.host) ? [] : [storeAddress.host];
  const advertised = advertisedHost(storeAdvertiseUrl);
  return [...storeCertificateNames, ...(advertised === undefined ? [] : [advertised]), ...own, ...loopbackHosts];
}

/** The name or address that clients are given; undefined when none is configured. */
export function advertisedHost(url: URL | undefined): string | undefined {
  return url?.hostname.replace(/^\[|\]$/g, "");
}

/** Checks tokens of the cluster's ServiceAccounts; undefined when none is allowed. */
export async function openServiceAccounts(options: StoreTrustOptions): Promise<ServiceAccountTokens | undefined> {
  const { config, trust, clock, log } = options;
  const { storeServiceAccounts: allowed, storeReadingAccounts: reading } = config;
  const { storeTokenAudience: audience, dataDir: directory } = config;
  if (trust === undefined || allowed.length + reading.length === 0) return undefined;
  const { ServiceAccountTokens: Tokens } = await import("../http/store/service-account-tokens.ts");
  const fetchKeys = () => trust.tokenKeys();
  const tokens = new Tokens({ allowed, reading, audience, fetchKeys, files: diskFiles, directory, clock, log });
  await tokens.start();
  return tokens;
}
