/** Opens the keys that sign configs. */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import type { Signer, SignerOptions } from "../../trust/sign/signer.ts";

/** A signer is undefined if the operator gave no key for it. */
export interface OpenedSigners {
  signer?: Signer;
  /** Signs only GRUB's configs, in place of `signer`. */
  grubSigner?: Signer;
}

interface SignersOptions {
  readonly config: ServiceConfig;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/**
 * Opens the signers of the options.
 * @param opened gets each of them as soon as it is open, so that a stop after an error ends those that are.
 * @throws {StartError} if a key cannot be used.
 */
export async function openSigners(opened: OpenedSigners, options: SignersOptions): Promise<void> {
  const { signingKey, signingPassphraseFile, signingPassphrase } = options.config;
  const { grubSigningKey, grubSigningPassphraseFile, grubSigningPassphrase } = options.config;
  if (signingKey !== undefined) {
    const passphrases = { passphraseFile: signingPassphraseFile, passphrase: signingPassphrase };
    opened.signer = await openSigner({ option: "signing", keyFile: signingKey, ...passphrases }, options);
  }
  if (grubSigningKey !== undefined) {
    const passphrases = { passphraseFile: grubSigningPassphraseFile, passphrase: grubSigningPassphrase };
    opened.grubSigner = await openSigner({ option: "grub-signing", keyFile: grubSigningKey, ...passphrases }, options);
  }
}

async function openSigner(
  key: Omit<SignerOptions, "clock" | "log" | "metrics">,
  { clock, log, metrics }: SignersOptions,
): Promise<Signer> {
  // The OpenPGP package takes time and memory: davit loads it only if there is a key.
  const { Signer: LoadedSigner } = await import("../../trust/sign/signer.ts");
  const part = key.option === "grub-signing" ? "grub-sign" : "sign";
  return await LoadedSigner.open({ ...key, clock, log: log.child({ part }), metrics });
}
