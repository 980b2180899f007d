/**
 * Reads an initrd of a Profile: a location, with an optional `--name NAME` before it, which names the initrd in iPXE.
 */

import type { KernelBoot } from "../../model/objects/profile.ts";

export interface NamedInitrd {
  readonly location: string;
  /** The initrd's name in iPXE and for the kernel: the NAME of `--name`, else the location's last segment. */
  readonly name: string;
}

/**
 * True for a boot section that has initrds but no `initrd=` argument, and whose `efiInitrd` does not add one. An older
 * UEFI iPXE hands an initrd to the kernel only by such an argument.
 */
export function lacksInitrdArgument({ initrd, args, efiInitrd }: KernelBoot): boolean {
  return initrd.length > 0 && !efiInitrd && !args.some((arg) => /(^|\s)initrd=/.test(arg));
}

/** Splits an initrd's text. The name is empty for a location that ends in a slash. */
export function parseInitrd(text: string): NamedInitrd {
  const [, given, location = ""] = /^(?:--name\s+(\S+)\s+)?(.*)$/s.exec(text.trim()) ?? [];
  const path = location.replace(/[?#\s].*$/s, "");
  return { location, name: given ?? path.slice(path.lastIndexOf("/") + 1) };
}
