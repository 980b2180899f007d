/** davit's own rules for YAML texts, checked in time linear in their length. Pure. */

import { type Document, isScalar, visit } from "yaml";

/**
 * The place of the first repeated key of a map, in UTF-16 units; undefined without one. The package itself compares
 * each key with all before it, which takes a minute for 60,000 of them.
 */
export function repeatedKey(document: Document.Parsed): number | undefined {
  let found: number | undefined;
  visit(document, {
    Map(_key, map) {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) {
          found = key.range?.[0] ?? 0;
          return visit.BREAK;
        }
        seen.add(key.value);
      }
      return undefined;
    },
  });
  return found;
}

/**
 * True for a plain (unquoted) scalar that YAML 1.1 and YAML 1.2 read differently. davit reads YAML 1.2; kubectl and
 * Python read 1.1. Such a text could boot one thing from a directory and another from a cluster, or be one file mode to
 * davit and another to the machine. It is refused at any place.
 *
 * Timestamps are not among them: both readings end as text in JSON.
 */
export function isAmbiguous(plain: string): boolean {
  return forms.some((form) => form.test(plain));
}

const forms: readonly RegExp[] = [
  // Booleans of 1.1, text in 1.2 (https://yaml.org/type/bool.html).
  /^(?:y|Y|n|N|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$/,
  // 1.1 has a type of its own for it (https://yaml.org/type/value.html).
  /^=$/,
  // 1.1 reads 0123 as octal and 1.2 as decimal; 0b1 is a number in 1.1 only, 0o7 in 1.2 only, -0x1 in 1.1 only.
  /^[-+]?0[0-9_]+$/,
  /^[-+]?0b[01_]+$/,
  /^[-+]?0o[0-7_]+$/,
  /^[-+]0x[0-9a-fA-F_]+$/,
  // 1.1 allows underscores between digits.
  /^[-+]?0x[0-9a-fA-F_]*_[0-9a-fA-F_]*$/,
  /^[-+]?(?=[^_]*_)\.?[0-9][0-9_.]*(?:[eE][-+]?[0-9_]+)?$/,
  /^[-+]?\.[0-9]*_[0-9_]*(?:[eE][-+]?[0-9_]*)?$/,
  // 1.1 counts in sixties: 52:54:00:12:34:56 is a number of twelve digits.
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/,
  // An exponent without a dot or without a sign makes a number in 1.2, and text in 1.1.
  /^[-+]?[0-9]+[eE][-+]?[0-9]+$/,
  /^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)[eE][0-9]+$/,
];
