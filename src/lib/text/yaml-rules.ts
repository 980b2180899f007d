/** davit's own rules for YAML texts. The time of these checks grows only in proportion to the text. Pure. */

import { type Document, isScalar, visit } from "yaml";

/**
 * Returns the offset of the first repeated key of a map, in UTF-16 units; undefined if no key is repeated. The YAML
 * package's own check compares each key with all earlier ones, which takes a minute for 60,000 keys.
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
 * Python read 1.1. Such a scalar could mean one thing in a directory and another in a cluster. A file mode could be one
 * number for davit and another for the machine. So davit refuses such scalars everywhere.
 *
 * A timestamp is not such a scalar, because as JSON it is text in both versions.
 */
export function isAmbiguous(plain: string): boolean {
  return forms.some((form) => form.test(plain));
}

const forms: readonly RegExp[] = [
  // Booleans in 1.1, text in 1.2 (https://yaml.org/type/bool.html).
  /^(?:y|Y|n|N|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$/,
  // A type of its own in 1.1, text in 1.2 (https://yaml.org/type/value.html).
  /^=$/,
  // 1.1 reads 0123 as octal, 1.2 as decimal. 0b1 and -0x1 are numbers only in 1.1, 0o7 only in 1.2.
  /^[-+]?0[0-9_]+$/,
  /^[-+]?0b[01_]+$/,
  /^[-+]?0o[0-7_]+$/,
  /^[-+]0x[0-9a-fA-F_]+$/,
  // 1.1 allows underscores between digits.
  /^[-+]?0x[0-9a-fA-F_]*_[0-9a-fA-F_]*$/,
  /^[-+]?(?=[^_]*_)\.?[0-9][0-9_.]*(?:[eE][-+]?[0-9_]+)?$/,
  /^[-+]?\.[0-9]*_[0-9_]*(?:[eE][-+]?[0-9_]*)?$/,
  // Numbers to the base 60 in 1.1: 52:54:00:12:34:56 is one of them.
  /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/,
  // Numbers in 1.2, but text in 1.1, because the dot or the exponent's sign is missing.
  /^[-+]?[0-9]+[eE][-+]?[0-9]+$/,
  /^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)[eE][0-9]+$/,
];
