/** Selects what a boot thread gets at its start. */

import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import { type BoundAddresses, listenerConfig } from "../listener/boot-listener.ts";
import type { OpenedSigners } from "../listener/open-signers.ts";

export interface ThreadStartOptions {
  readonly config: ServiceConfig;
  /** Where the first thread listens. */
  readonly bound: BoundAddresses;
  readonly desk: PermitDesk | undefined;
  readonly fetchesAssets: boolean;
  readonly signers: OpenedSigners;
  /** Undefined: davit does not listen for HTTPS. */
  readonly certificate: { readonly certFile: string; readonly keyFile: string } | undefined;
}

/** What a boot thread gets at its start. It contains no secret. */
export type ThreadStart = ReturnType<typeof threadStart>;

/** Selects what a thread needs. Most options are not for threads, and passphrases stay in the first thread. */
export function threadStart({ config, bound, desk, fetchesAssets, signers, certificate }: ThreadStartOptions) {
  return {
    config: {
      ...listenerConfig(config),
      // The addresses and the certificate of the first thread.
      ...bound,
      bootTlsCertFile: certificate?.certFile,
      bootTlsKeyFile: certificate?.keyFile,
      secretsKeyFile: config.secretsKeyFile,
    },
    /** The armored public key of each signer that davit has. */
    publicKeys: { signer: signers.signer?.publicKey, grubSigner: signers.grubSigner?.publicKey },
    /** False if the first thread has no desk. Then installs that need a permit are refused. */
    hasDesk: desk !== undefined,
    /** True if davit fetches the assets of Profiles. Then it serves only these under their names. */
    fetchesAssets,
  };
}
