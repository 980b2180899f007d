/** What davit asks of YAML texts beyond what the package asks, in a time that grows with their length alone. Pure. */

import { type Document, isScalar, visit } from "yaml";

/**
 * Where a key of a map stands that the map has already, in UTF-16 units; undefined where there is none. The package by
 * itself compares each key with all before it, which takes a minute for 60,000 of them.
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
