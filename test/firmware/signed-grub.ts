/**
 * A GRUB that loads nothing without a good signature, as docs/use/signing.md builds it: one image with the public key, with
 * every module that it needs, and with the config that sends it to davit.
 */

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Firmware, Loader } from "../../tools/firmware/machine.ts";

/** All modules are in the image: one that GRUB fetched would have to be signed itself. */
export const signedGrubModules =
  "tftp http normal configfile eval regexp test true smbios linux echo cat sleep reboot pgp gcry_rsa gcry_sha256 " +
  "gcry_sha512";

/**
 * The config in the image. GRUB does not say why it refuses a config, but why it does not show one: hence `cat`. Then the
 * machine tries again: the image's config knows no loops, but `eval` does.
 * @param authority `host:port` of davit's boot service, as machines reach it.
 * @param pauseSeconds between two attempts.
 */
export function signedGrubConfig(authority: string, pauseSeconds = 5): string {
  return `set check_signatures=enforce
smbios --type 1 --get-uuid 8 --set uuid
set config="(http,${authority})/grub?uuid=$uuid&mac=$net_default_mac"
eval 'while true; do configfile "$config"; cat "$config"; sleep ${pauseSeconds}; done'
`;
}

const images = {
  bios: { format: "i386-pc-pxe", file: "core.0", modules: "pxe" },
  uefi: { format: "x86_64-efi", file: "core.efi", modules: "efinet" },
} as const satisfies Partial<Record<Firmware, object>>;

/** Firmware that such an image is built for here. */
export type SignedFirmware = keyof typeof images;

export interface SignedGrubOptions {
  readonly directory: string;
  readonly firmware: SignedFirmware;
  readonly authority: string;
  /** The public key as packets, not armored. */
  readonly publicKeyFile: string;
  /** Between two attempts; as docs/use/signing.md has it unless given. */
  readonly pauseSeconds?: number;
}

/** Builds the image into a directory that TFTP serves. */
export function makeSignedGrubLoader(options: SignedGrubOptions): Loader {
  const { directory, firmware, authority, publicKeyFile, pauseSeconds } = options;
  const { format, file, modules } = images[firmware];
  const configFile = join(directory, "early.cfg");
  writeFileSync(configFile, signedGrubConfig(authority, pauseSeconds));
  const what = ["--format", format, "--prefix", "/grub", "--config", configFile, "--pubkey", publicKeyFile];
  const words = [...what, "--output", join(directory, file), modules, ...signedGrubModules.split(" ")];
  execFileSync("grub-mkimage", words, { stdio: "pipe" });
  return { kind: "tftp", directory, file };
}
