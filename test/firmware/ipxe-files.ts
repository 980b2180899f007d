/** The programs of Debian's package ipxe, where machines can start them. */

import { execFileSync } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = "/usr/lib/ipxe";
const plainPxe = `#!ipxe
set user-class PXE
dhcp
clear user-class
chain \${filename}
`;

/**
 * Builds iPXE, as docs/use/https.md says.
 * @param options.authority the file of the one that it trusts for HTTPS.
 * @param options.directory gets the target.
 */
export function buildIpxe({
  target,
  authority,
  directory,
}: Record<"target" | "authority" | "directory", string>): void {
  const source = process.env.IPXE_SOURCE ?? "";
  const built = `bin-x86_64-efi/${target}`;
  execFileSync("make", ["-C", source, built, `CERT=${authority}`, `TRUST=${authority}`], { stdio: "pipe" });
  copyFileSync(join(source, built), join(directory, target));
}

/** A CD, as it comes. */
export const ipxeIso = `${folder}/ipxe.iso`;

/** Puts iPXE for BIOS and UEFI where firmware looks for it by TFTP, or by HTTP. */
export function copyIpxe(directory: string, ...names: readonly ("undionly.kpxe" | "snponly.efi" | "ipxe.efi")[]): void {
  for (const name of names) copyFileSync(join(folder, name), join(directory, name));
}

/**
 * Makes a disk from which UEFI starts iPXE.
 * @returns its image.
 */
export function makeIpxeDisk(directory: string): string {
  const image = join(directory, "esp.img");
  const mtools = (program: string, ...words: readonly string[]) =>
    execFileSync(program, ["-i", image, ...words], { stdio: "pipe" });
  // 4 MiB in sectors: iPXE is one.
  mtools("mformat", "-C", "-T", "8192", "::");
  mtools("mmd", "::/EFI", "::/EFI/BOOT");
  mtools("mcopy", join(folder, "ipxe.efi"), "::/EFI/BOOT/BOOTX64.EFI");
  return image;
}

/**
 * Writes a script that plays the PXE of a card: it does not say that it is iPXE, and what it starts does not hear what
 * it said.
 * @returns its file.
 */
export function makePlainPxe(directory: string): string {
  const file = join(directory, "plain-pxe.ipxe");
  writeFileSync(file, plainPxe);
  return file;
}
