/**
 * GRUB as a TFTP server offers it: what `grub-mknetdir` makes of Debian's GRUB, for each firmware whose package is
 * installed, and the config that sends it to davit. docs/reference/firmware.md shows the same.
 */

import { execFileSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageCache } from "../../tools/firmware/boot-assets.ts";
import type { Firmware, Loader } from "../../tools/firmware/machine.ts";

/** The GRUB for arm64, whose package is not installed but unpacked. */
export const armModules = packageCache("arm64", "usr/lib/grub/arm64-efi");
const signedImage = "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed";

/** Ends the query, to tell davit for which processor this GRUB is: the label `arch`. */
export const archQuery = "&arch=$grub_cpu";

/**
 * GRUB's first config, which makes it ask davit for the real one. The quotes are for the `&`. It comes to its last line
 * when davit has nothing for the machine; without it GRUB would end in its shell.
 * @param authority `host:port` of davit's boot service, as machines reach it.
 * @param labels further ones that this machine shall send, as a query.
 */
export function grubConfig(authority: string, labels = ""): string {
  return `smbios --type 1 --get-uuid 8 --set uuid
configfile "(http,${authority})/grub?uuid=$uuid&mac=$net_default_mac${labels}"
exit
`;
}

/**
 * Fills a directory with GRUB for a firmware, which reads a config from there first.
 * @throws {Error} when `grub-mknetdir` fails or the firmware's GRUB is not installed.
 */
export function makeGrubLoader(directory: string, firmware: Firmware, authority: string, labels?: string): Loader {
  fillGrubDirectory(directory, firmware, grubConfig(authority, labels));
  return { kind: "tftp", directory, file: images[firmware] };
}

/** The same with the GRUB that Debian has signed. Its modules are the TFTP server's, as it has no HTTP of its own. */
export function makeSignedGrubLoader(directory: string, authority: string): Loader {
  fillGrubDirectory(directory, "uefi", grubConfig(authority));
  copyFileSync(signedImage, join(directory, "grubnetx64.efi"));
  return { kind: "tftp", directory, file: "grubnetx64.efi" };
}

/** @throws {Error} as `makeGrubLoader`. */
export function fillGrubDirectory(directory: string, firmware: Firmware, config: string): void {
  const modules = firmware === "uefi-arm64" ? [`--directory=${armModules}`] : [];
  execFileSync("grub-mknetdir", [`--net-directory=${directory}`, "--subdir=grub", ...modules], { stdio: "pipe" });
  writeFileSync(join(directory, "grub/grub.cfg"), config);
}

/** The words that make a GRUB for arm64 which finds its files on a TFTP server, whatever DHCP said. */
export function proxyGrubWords(server: string, directory: string): readonly string[] {
  const output = `--output=${directory}/grub-arm64.efi`;
  return ["--format=arm64-efi", `--prefix=(tftp,${server})/grub`, output, "efinet", "tftp", "normal"];
}

/** Makes that GRUB, in a directory that `fillGrubDirectory` filled. */
export function makeProxyGrub(server: string, directory: string): void {
  execFileSync("grub-mkimage", [`--directory=${armModules}`, ...proxyGrubWords(server, directory)], { stdio: "pipe" });
}

const images = {
  bios: "grub/i386-pc/core.0",
  uefi: "grub/x86_64-efi/core.efi",
  "uefi-arm64": "grub/arm64-efi/core.efi",
} as const satisfies Record<Firmware, string>;
