/**
 * Makes object names from file names. Kubernetes allows fewer characters than a file system, so two files could get the
 * same name. In this case nothing is imported, because machines could boot the wrong one of two profiles.
 */

import { compareBytes } from "../../../src/lib/order.ts";
import { type ImportFindings, shown } from "./findings.ts";

// Less than Kubernetes allows: files get an ending, and some names get a suffix.
const longestName = 200;

/** Returns an object name that is close to a file's name; undefined if it would be empty or too long. */
export function toObjectName(text: string): string | undefined {
  const parts = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, "-")
    .split(".")
    .map((part) => part.replaceAll(/^-+|-+$/g, ""))
    .filter((part) => part !== "");
  const name = parts.join(".");
  return name === "" || name.length > longestName ? undefined : name;
}

/** Returns a different object name for each key. If a key cannot get a name, it reports this and returns undefined. */
export function giveNames(
  keys: ReadonlySet<string>,
  folder: string,
  findings: ImportFindings,
): ReadonlyMap<string, string> | undefined {
  const keyOf = new Map<string, string>();
  for (const key of [...keys].toSorted(compareBytes)) {
    const file = `${folder}/${key}.json`;
    const name = toObjectName(key);
    const why = whyNot(name, name === undefined ? undefined : keyOf.get(name));
    if (why !== undefined) {
      findings.error(file, `no name for an object: ${why}: rename the file, and where it is named`);
    } else if (name !== undefined) {
      keyOf.set(name, key);
      if (name !== key) findings.warn(file, `is named ${shown(name)}: Kubernetes does not allow ${shown(key)}`);
    }
  }
  return keyOf.size === keys.size ? new Map([...keyOf].map(([name, key]) => [key, name])) : undefined;
}

function whyNot(name: string | undefined, other: string | undefined): string | undefined {
  if (name === undefined) return "nothing can be made of it";
  return other === undefined ? undefined : `${shown(other)} comes to ${shown(name)}, too`;
}
