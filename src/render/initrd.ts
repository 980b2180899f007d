/** An initrd as a Profile writes it: a location, before which `--name NAME` may give it a name for iPXE. */

export interface NamedInitrd {
  readonly location: string;
  /** The name under which iPXE offers it to the kernel: the given one, else the location's last segment. */
  readonly name: string;
}

/** Splits an initrd's text. The name is empty for a location that ends in a slash. */
export function parseInitrd(text: string): NamedInitrd {
  const [, given, location = ""] = /^(?:--name\s+(\S+)\s+)?(.*)$/s.exec(text.trim()) ?? [];
  const path = location.replace(/[?#\s].*$/s, "");
  return { location, name: given ?? path.slice(path.lastIndexOf("/") + 1) };
}
