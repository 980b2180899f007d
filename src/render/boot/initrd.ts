/**
 * Reads a kernel or an initrd of a Profile: a location, with an optional `--name NAME` before it, which names the file
 * in iPXE. Words after a kernel are its arguments. Words after an initrd are the path and mode of a file that iPXE
 * makes of it.
 */

import type { KernelBoot } from "../../model/objects/profile.ts";

interface NamedInitrd {
  /** Without white space. */
  readonly location: string;
  /** The words after the location; nearly always empty. */
  readonly rest: string;
  /** The initrd's name in iPXE and for the kernel: the NAME of `--name`, else the location's last segment. */
  readonly name: string;
}

/**
 * True for a boot section that has initrds but no `initrd=` argument, and whose `efiInitrd` does not add one. An older
 * UEFI iPXE hands an initrd to the kernel only by such an argument.
 */
export function lacksInitrdArgument({ kernel, initrd, args, efiInitrd }: KernelBoot): boolean {
  return initrd.length > 0 && !efiInitrd && ![kernel, ...args].some((arg) => /(^|\s)initrd=/.test(arg));
}

/**
 * Splits the text of a kernel or an initrd. The name is empty for a location that ends in a slash. Blanks inside a tag
 * of a template separate no words.
 */
export function parseInitrd(text: string): NamedInitrd {
  const [, given, location = "", rest = ""] = parts.exec(text.trim()) ?? [];
  const path = location.replace(/[?#].*$/s, "");
  return { location, rest, name: given ?? path.slice(path.lastIndexOf("/") + 1) };
}

const parts = /^(?:--name\s+(\S+)\s+)?((?:\{\{.*?\}\}|\S)*)\s*(.*)$/s;
