/** Selects what a boot thread gets at its start. */

import type { WantedAssets } from "../../assets/wanted-assets.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import type { BoundAddresses } from "../listener/boot-listener.ts";
import type { OpenedSigners } from "../listener/open-signers.ts";
import type { ThreadStart } from "./wire.ts";

export interface ThreadStartOptions {
  readonly config: ServiceConfig;
  /** Where the first thread listens. */
  readonly bound: BoundAddresses;
  readonly desk: PermitDesk | undefined;
  readonly wanted: WantedAssets | undefined;
  readonly signers: OpenedSigners;
  /** Undefined: davit does not listen for HTTPS. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined;
}

/** Selects what a thread needs. Most options are not for threads, and passphrases stay in the first thread. */
export function threadStart(options: ThreadStartOptions): ThreadStart {
  const { config, bound, desk, wanted, signers, certificate } = options;
  const { signer, grubSigner } = signers;
  return {
    config: {
      ...bound,
      bootThreads: config.bootThreads,
      bootTlsCertFile: certificate?.certFile,
      bootTlsKeyFile: certificate?.keyFile,
      bootTlsClientCaFile: config.bootTlsClientCaFile,
      grubSeparator: config.grubSeparator,
      grubCommands: config.grubCommands,
      signingKey: config.signingKey,
      grubSigningKey: config.grubSigningKey,
      maxStalenessMs: config.maxStalenessMs,
      secretsKeyFile: config.secretsKeyFile,
      assetsDir: config.assetsDir,
      assetsDotfiles: config.assetsDotfiles,
      assetsCacheBytes: config.assetsCacheBytes,
      clientLimitExempt: config.clientLimitExempt,
      trustedProxies: config.trustedProxies,
    },
    publicKeys: {
      ...(signer && { signer: signer.publicKey }),
      ...(grubSigner && { grubSigner: grubSigner.publicKey }),
    },
    hasDesk: desk !== undefined,
    fetchesAssets: wanted !== undefined,
  };
}
