/** What the store's door needs beside files that users give: a certificate of its own, and tokens of a cluster. */

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
  /** Undefined where the source is no cluster. */
  readonly trust?: ClusterTrust | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

// How the machine itself, and a port that is forwarded to it, are reached.
const loopbackHosts = ["localhost", "127.0.0.1", "::1"];

/**
 * The store's own certificate, ready to be used; undefined when it has another one or none.
 * @throws {StartError} when it cannot be kept.
 */
export async function openOwnCertificate(options: StoreTrustOptions): Promise<OwnCertificate | undefined> {
  const { config, trust, clock, log } = options;
  if (!config.storeOwnCertificate) return undefined;
  // The package that makes certificates takes time and memory, which nobody shall pay who has one.
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

/** The name or address by which clients are told to come; undefined when nobody said it. */
export function advertisedHost(url: URL | undefined): string | undefined {
  return url?.hostname.replace(/^\[|\]$/g, "");
}

/** Judges tokens of the cluster's ServiceAccounts; undefined when none is allowed. */
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
