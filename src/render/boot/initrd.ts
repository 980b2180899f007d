/** An initrd in a Profile: a location, perhaps after `--name NAME`, which names it for iPXE. */

import type { KernelBoot } from "../../model/profile.ts";

export interface NamedInitrd {
  readonly location: string;
  /** The name under which iPXE passes it to the kernel: from `--name`, else the location's last segment. */
  readonly name: string;
}

/** True for a boot section whose kernel finds no initrd under an older UEFI iPXE, because only an argument names it. */
export function lacksInitrdArgument({ initrd, args, efiInitrd }: KernelBoot): boolean {
  return initrd.length > 0 && !efiInitrd && !args.some((arg) => /(^|\s)initrd=/.test(arg));
}

/** Splits an initrd's text. The name is empty for a location that ends in a slash. */
export function parseInitrd(text: string): NamedInitrd {
  const [, given, location = ""] = /^(?:--name\s+(\S+)\s+)?(.*)$/s.exec(text.trim()) ?? [];
  const path = location.replace(/[?#\s].*$/s, "");
  return { location, name: given ?? path.slice(path.lastIndexOf("/") + 1) };
}
