/**
 * Where boot loaders of installed systems are on an EFI partition. Paths have `/`, as GRUB reads them; iPXE reads them
 * with backslashes. The CRD permits no character that either would take for a blank, an option, a variable or syntax.
 */

/**
 * Names below `/EFI` of distributions that install a shim. An installed system has a shim there even if it wrote no
 * `/EFI/BOOT`, which Debian does not write. Installation media usually have theirs in `/EFI/BOOT`, so they come last.
 */
const distributions = ["debian", "ubuntu", "fedora", "redhat", "centos", "rocky", "almalinux"];

/**
 * Returns the loaders to try if a Profile names none.
 * @param cpu stands for the processor in the name of a shim: `x64` or `aa64`, or a variable with one of them.
 */
export function usualLoaders(cpu: string): readonly string[] {
  return distributions.map((name) => `/EFI/${name}/shim${cpu}.efi`);
}

/** The drive that a BIOS calls its first disk. */
export const firstDrive = 0x80;
