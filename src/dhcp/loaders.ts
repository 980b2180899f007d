/**
 * The loaders that machines get before davit can answer them: iPXE, GRUB and shim. davit copies them into the TFTP
 * directory, so TFTP has these files and nothing else.
 */

import { constants } from "node:fs";
import { chmod, copyFile, mkdir, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { StartError } from "../lib/start-error.ts";

/** Every file that TFTP may offer, and where Debian's packages have it; undefined: only `--loaders-dir` can have it. */
const knownLoaders: Readonly<Record<string, string | undefined>> = {
  "undionly.kpxe": "/usr/lib/ipxe/undionly.kpxe",
  "snponly.efi": "/usr/lib/ipxe/snponly.efi",
  "ipxe.efi": "/boot/ipxe.efi",
  // Debian 13 and later.
  "ipxe-arm64.efi": "/usr/lib/ipxe/ipxe-arm64.efi",
  "grub-i386.0": undefined,
  "grub-x86_64.efi": undefined,
  "grub-arm64.efi": undefined,
  "shimx64.efi": "/usr/lib/shim/shimx64.efi.signed",
  "mmx64.efi": "/usr/lib/shim/mmx64.efi.signed",
  // What shim loads. Debian's own cannot reach davit by HTTP (docs/use/secure-boot.md).
  "grubx64.efi": undefined,
};

/** Of no use without a GRUB. */
const ofSecureBoot = new Set(["shimx64.efi", "mmx64.efi"]);

const uefi = ["snponly.efi", "ipxe.efi", "grub-x86_64.efi"];

/** What each kind of firmware gets, by dnsmasq's name of the kind: the first of these files that is there. */
const loadersOf: Readonly<Record<string, readonly string[]>> = {
  x86PC: ["undionly.kpxe", "grub-i386.0"],
  "x86-64_EFI": uefi,
  BC_EFI: uefi,
  ARM64_EFI: ["ipxe-arm64.efi", "grub-arm64.efi"],
};

/** DHCP option 93 of UEFI HTTP Boot (IANA, Processor Architecture Types), and the loader for it. */
const httpLoaders: Readonly<Record<number, string>> = { 16: "ipxe.efi", 19: "ipxe-arm64.efi" };

/** A loader that was found. */
export interface FoundLoader {
  readonly name: string;
  readonly path: string;
  /** True if it is of `--loaders-dir`. */
  readonly isGiven: boolean;
}

/** The largest loader. GRUB with all of its modules has less than half of it. */
const maxLoaderBytes = 32 * 1024 * 1024;

/**
 * Finds the loaders: those of the directory first, then those of Debian's packages.
 * @param directory the value of `--loaders-dir`.
 * @throws {StartError} if a file of the directory leads out of it, is no regular file or is too large, or if no
 * firmware would get a loader.
 */
export async function findLoaders(directory: string | undefined): Promise<readonly FoundLoader[]> {
  const found: FoundLoader[] = [];
  for (const [name, debian] of Object.entries(knownLoaders)) {
    const given = directory === undefined ? undefined : await givenLoader(directory, name);
    const path = given ?? (debian !== undefined && (await isRegular(debian)) ? debian : undefined);
    if (path !== undefined) found.push({ name, path, isGiven: given !== undefined });
  }
  const hasGrub = found.some(({ name }) => name === "grubx64.efi");
  const useful = found.filter(({ name, isGiven }) => hasGrub || isGiven || !ofSecureBoot.has(name));
  if (Object.keys(loaderByFirmware(useful, false)).length === 0) {
    const cure = "apt-get install ipxe, or give --loaders-dir with undionly.kpxe and snponly.efi";
    throw new StartError(`No loader for any firmware: ${cure}`);
  }
  return useful;
}

/**
 * Returns the loader of each kind of firmware, by dnsmasq's name of the kind.
 * @param givesAddresses true if dnsmasq is no proxy-DHCP: shim finds its second file only beside the whole offer.
 */
export function loaderByFirmware(
  found: readonly FoundLoader[],
  givesAddresses: boolean,
): Readonly<Record<string, string>> {
  const given = new Set(found.filter(({ isGiven }) => isGiven).map(({ name }) => name));
  const all = new Set(found.map(({ name }) => name));
  const hasShim = givesAddresses && all.has("shimx64.efi") && given.has("grubx64.efi");
  const chosen = Object.entries(loadersOf).flatMap(([firmware, names]) => {
    const file = names.find((name) => given.has(name)) ?? names.find((name) => all.has(name));
    const own = hasShim && names === uefi ? "shimx64.efi" : file;
    return own === undefined ? [] : [[firmware, own] as const];
  });
  return Object.fromEntries(chosen);
}

/** Returns the loaders for UEFI HTTP Boot, each with its number of DHCP option 93. */
export function httpLoadersOf(found: readonly FoundLoader[]): readonly (FoundLoader & { readonly number: string })[] {
  return Object.entries(httpLoaders).flatMap(([number, name]) =>
    found.filter((loader) => loader.name === name).map((loader) => ({ ...loader, number })),
  );
}

/** Copies the loaders into a new directory. Everyone who reaches the directory may read it. */
export async function copyLoaders(found: readonly FoundLoader[], directory: string): Promise<void> {
  await mkdir(directory);
  // Whatever the umask is.
  await chmod(directory, 0o755);
  for (const { name, path } of found) {
    try {
      await copyFile(path, join(directory, name), constants.COPYFILE_EXCL);
      await chmod(join(directory, name), 0o644);
    } catch (error) {
      throw new StartError(`Cannot copy the loader "${path}": check its mode and the room in "${directory}"`, {
        cause: error,
      });
    }
  }
}

async function givenLoader(directory: string, name: string): Promise<string | undefined> {
  const path = join(directory, name);
  const target = await realpath(path).catch(() => undefined);
  if (target === undefined) return undefined;
  const isInside = target.startsWith(`${await realpath(directory)}${sep}`);
  if (!isInside) throw new StartError(`Cannot use "${path}": it leads out of --loaders-dir: copy the file there`);
  if (!(await isRegular(target))) {
    throw new StartError(`Cannot use "${path}": a loader is a regular file of 1 byte to 32 MiB: replace it`);
  }
  return target;
}

async function isRegular(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() === true && found.size > 0 && found.size <= maxLoaderBytes;
}
