/**
 * GRUB as a TFTP server offers it: what `grub-mknetdir` makes of Debian's GRUB, for each firmware whose package is
 * installed, and the config that sends it to davit. docs/firmware.md shows the same.
 */

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Firmware, Loader } from "./machine.ts";

/**
 * GRUB's first config, which makes it ask davit for the real one. The quotes are for the `&`.
 * @param authority `host:port` of davit's boot service, as machines reach it.
 */
export function grubConfig(authority: string): string {
  return `smbios --type 1 --get-uuid 8 --set uuid
configfile "(http,${authority})/grub?uuid=$uuid&mac=$net_default_mac"
`;
}

/**
 * Fills a directory with GRUB for a firmware.
 * @throws {Error} when `grub-mknetdir` fails or the firmware's GRUB is not installed.
 */
export function makeGrubLoader(directory: string, firmware: Firmware, authority: string): Loader {
  execFileSync("grub-mknetdir", [`--net-directory=${directory}`, "--subdir=grub"], { stdio: "pipe" });
  writeFileSync(join(directory, "grub/grub.cfg"), grubConfig(authority));
  return { kind: "tftp", directory, file: images[firmware] };
}

const images = {
  bios: "grub/i386-pc/core.0",
  uefi: "grub/x86_64-efi/core.efi",
} as const satisfies Record<Firmware, string>;
