/** The boots of one Profile by every firmware and boot loader that a suite has: a table of docs/reference/firmware.md. */

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { packageCache } from "../../tools/firmware/boot-assets.ts";
import type { Firmware } from "../../tools/firmware/machine.ts";
import { readTable, updateTable } from "./page-table.ts";

/** What is booted, and how. */
export interface Boot {
  readonly firmware: Firmware;
  readonly loader: Loader;
  readonly how: string;
}

type Loader = keyof typeof loaders;

interface Part {
  readonly title: string;
  /** The Debian package that it is from. */
  readonly package: string;
  /** Unpacked by boot-assets.sh, although another version may be installed. */
  readonly isForeign?: true;
}

const firmwares = {
  bios: { title: "BIOS", package: "seabios" },
  uefi: { title: "UEFI", package: "ovmf" },
  "uefi-arm64": { title: "UEFI, arm64", package: "qemu-efi-aarch64" },
} as const satisfies Record<Firmware, Part>;

const loaders = {
  "ipxe-rom": { title: "iPXE", package: "ipxe-qemu" },
  ipxe: { title: "iPXE", package: "ipxe" },
  "grub-bios": { title: "GRUB", package: "grub-pc-bin" },
  "grub-uefi": { title: "GRUB", package: "grub-efi-amd64-bin" },
  "grub-signed": { title: "GRUB", package: "grub-efi-amd64-signed" },
  shim: { title: "shim, GRUB", package: "shim-signed" },
  "grub-arm64": { title: "GRUB", package: "grub-efi-arm64-bin" },
  "ipxe-arm64": { title: "iPXE", package: "ipxe", isForeign: true },
} as const satisfies Record<string, Part>;

/** Every boot that a suite has, in the order of the table. */
export const boots = {
  biosIpxeRom: { firmware: "bios", loader: "ipxe-rom", how: "card's ROM; the DHCP boot file is davit's URL" },
  biosIpxeIso: { firmware: "bios", loader: "ipxe", how: "`ipxe.iso` as a CD; the DHCP boot file is davit's URL" },
  biosIpxeTftp: { firmware: "bios", loader: "ipxe", how: "`undionly.kpxe` by TFTP; dnsmasq as DHCP server" },
  biosIpxeRom6: { firmware: "bios", loader: "ipxe-rom", how: "card's ROM, by IPv6 only" },
  biosIpxeProxy: { firmware: "bios", loader: "ipxe-rom", how: "card's ROM; dnsmasq as proxy-DHCP" },
  biosGrub: { firmware: "bios", loader: "grub-bios", how: "`core.0` by TFTP" },
  uefiIpxeRom: { firmware: "uefi", loader: "ipxe-rom", how: "card's ROM; the DHCP boot file is davit's URL" },
  uefiIpxeEsp: { firmware: "uefi", loader: "ipxe", how: "`ipxe.efi` on a disk; the DHCP boot file is davit's URL" },
  uefiIpxeTftp: { firmware: "uefi", loader: "ipxe", how: "`snponly.efi` by TFTP; dnsmasq as DHCP server" },
  uefiIpxeProxy: { firmware: "uefi", loader: "ipxe", how: "`snponly.efi` by TFTP; dnsmasq as proxy-DHCP" },
  uefiIpxeHttp: { firmware: "uefi", loader: "ipxe", how: "`ipxe.efi` by UEFI HTTP Boot from `/assets/`" },
  uefiIpxeHttps: { firmware: "uefi", loader: "ipxe", how: "`ipxe.efi` by UEFI HTTP Boot over HTTPS from `/assets/`" },
  uefiIpxeTftp6: { firmware: "uefi", loader: "ipxe", how: "`snponly.efi` by TFTP, by IPv6 only" },
  uefiIpxeHttp6: { firmware: "uefi", loader: "ipxe", how: "`ipxe.efi` by UEFI HTTP Boot, by IPv6 only" },
  uefiGrubTftp6: { firmware: "uefi", loader: "grub-uefi", how: "`core.efi` by TFTP, by IPv6 only" },
  uefiGrub: { firmware: "uefi", loader: "grub-uefi", how: "`core.efi` by TFTP" },
  uefiGrubSigned: { firmware: "uefi", loader: "grub-signed", how: "`grubnetx64.efi` by TFTP, Secure Boot off" },
  secureHttp: {
    firmware: "uefi",
    loader: "shim",
    how: "`shimx64.efi` by UEFI HTTP Boot from `/assets/`, Secure Boot on",
  },
  secureTftp: { firmware: "uefi", loader: "shim", how: "`shimx64.efi` by TFTP, Secure Boot on, certificate in `db`" },
  secureMok: { firmware: "uefi", loader: "shim", how: "`shimx64.efi` by TFTP, Secure Boot on, certificate as MOK" },
  biosServe: { firmware: "bios", loader: "ipxe", how: "`undionly.kpxe` by TFTP; `davit serve --dhcp` with a range" },
  uefiServe: { firmware: "uefi", loader: "ipxe", how: "`snponly.efi` by TFTP; `davit serve --dhcp` with a range" },
  uefiServeHttp: {
    firmware: "uefi",
    loader: "ipxe",
    how: "`ipxe.efi` by UEFI HTTP Boot; `davit serve --dhcp` with a range",
  },
  biosServeProxy: {
    firmware: "bios",
    loader: "ipxe-rom",
    how: "card's ROM; `davit serve --dhcp proxy` beside Kea",
  },
  uefiServeProxy: {
    firmware: "uefi",
    loader: "ipxe",
    how: "`snponly.efi` by TFTP; `davit serve --dhcp proxy` beside Kea",
  },
  arm64Serve: {
    firmware: "uefi-arm64",
    loader: "ipxe-arm64",
    how: "`ipxe-arm64.efi` by TFTP; `davit serve --dhcp` with a range",
  },
  arm64IpxeTftp: {
    firmware: "uefi-arm64",
    loader: "ipxe-arm64",
    how: "`ipxe-arm64.efi` by TFTP; dnsmasq as DHCP server",
  },
  arm64IpxeProxy: {
    firmware: "uefi-arm64",
    loader: "ipxe-arm64",
    how: "`ipxe-arm64.efi` by TFTP; dnsmasq as proxy-DHCP",
  },
  arm64Grub: { firmware: "uefi-arm64", loader: "grub-arm64", how: "`core.efi` by TFTP; dnsmasq as DHCP server" },
  arm64GrubProxy: {
    firmware: "uefi-arm64",
    loader: "grub-arm64",
    how: "`grub-arm64.efi` by TFTP; dnsmasq as proxy-DHCP",
  },
  arm64GrubPod: {
    firmware: "uefi-arm64",
    loader: "grub-arm64",
    how: "`grub-arm64.efi` of the chart by TFTP; dnsmasq as proxy-DHCP",
  },
} as const satisfies Record<string, Boot>;

const head = ["firmware", "boot loader", "how it is loaded", "versions"];

/**
 * Puts a boot that reached Linux into the table, in the place of its last one; rows of boots that no suite has any more go.
 * @throws {Error} when `boots` does not have it.
 */
export function recordBoot(record: Boot): void {
  const known: readonly Boot[] = Object.values(boots);
  if (!known.some((boot) => key(boot) === key(record))) throw new Error(`Not in the table of boots: ${key(record)}`);
  updateTable("loaders", head, (rows) => {
    const rowByKey = new Map(rows.map((row) => [keyOf(row), row]));
    rowByKey.set(key(record), rowOf(record));
    return known.map((boot) => rowByKey.get(key(boot))).filter((row) => row !== undefined);
  });
}

/** The first cells of a boot's row, which tell it from others. */
export function key({ firmware, loader, how }: Boot): string {
  return keyOf([firmwares[firmware].title, loaders[loader].title, how]);
}

export function loaderTitle({ loader }: Boot): (typeof loaders)[Loader]["title"] {
  return loaders[loader].title;
}

/** The first cells of each row of the page. */
export function keysOfPage(): readonly string[] {
  return readTable("loaders").map(keyOf);
}

function keyOf(row: readonly string[]): string {
  return row.slice(0, 3).join(" | ");
}

function rowOf({ firmware, loader, how }: Boot): readonly string[] {
  const parts: readonly Part[] = [firmwares[firmware], loaders[loader]];
  const versions = parts.map((part) => `${part.package} ${versionOf(part)}`).join(", ");
  return [firmwares[firmware].title, loaders[loader].title, how, versions];
}

/** Of another architecture's package, which is not installed but unpacked, the file beside it tells. */
function versionOf({ package: name, isForeign }: Part): string {
  const { status, stdout } = spawnSync("dpkg-query", ["--show", `--showformat=\${Version}`, name], {
    encoding: "utf8",
  });
  if (status === 0 && isForeign !== true) return stdout;
  const unpacked = packageCache("arm64", "versions");
  const text = existsSync(unpacked) ? readFileSync(unpacked, "utf8") : "";
  const [, version = "of unknown version"] = new RegExp(`^${name} (.*)$`, "m").exec(text) ?? [];
  return version;
}
