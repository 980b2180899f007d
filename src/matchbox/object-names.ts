/**
 * Makes object names from file names. Kubernetes allows fewer characters than a file system, so two files could get
 * the same name. Nothing is imported then, because machines of one file would boot the other file's profile.
 */

import { compareBytes } from "../lib/order.ts";
import { type ImportFindings, shown } from "./findings.ts";

// Leaves room for a file name's ending and for the suffix that some names get.
const longestName = 200;

/** The object name closest to a file's name; undefined if it is empty or too long. */
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

/** Gives each key its own name. Reports every key that cannot have one, and then returns undefined. */
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
