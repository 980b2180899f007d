/** Changes of bytes, by a seed: what networks, disks, editors and attackers make of what davit reads. */

import type { Pick } from "../helpers/fault-files.ts";

/** Bytes that end or begin something in most of davit's inputs. */
const oddWords = [
  "\0",
  "\r\n",
  "\n",
  "---\n",
  "{{",
  "}}",
  '"',
  "'",
  "\\",
  "%",
  "%00",
  "..",
  "/",
  "\ufeff",
  "\u2028",
  "é",
];
const numbers = ["0", "-1", "1e309", "9007199254740993", "18446744073709551616", "NaN", "null", "true", "[]", "{}"];
const longest = 64 * 1024;

/**
 * Returns other bytes made of these.
 * @param words belong to the input's language: mutants that keep its form reach further.
 * @param others further inputs, to splice with.
 */
export function mutate(bytes: Buffer, pick: Pick, words: readonly string[], others: readonly Buffer[]): Buffer {
  let changed = bytes;
  for (let rounds = 1 + pick(4); rounds > 0; rounds--) changed = mutateOnce(changed, pick, words, others);
  return changed.subarray(0, longest);
}

function mutateOnce(bytes: Buffer, pick: Pick, words: readonly string[], others: readonly Buffer[]): Buffer {
  const at = pick(bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + pick(pick(2) === 0 ? 4 : 64));
  const [before, part, after] = [bytes.subarray(0, at), bytes.subarray(at, end), bytes.subarray(end)];
  const anyOf = (texts: readonly string[]) => Buffer.from(texts[pick(texts.length)] ?? "");
  switch (pick(9)) {
    case 0:
      return Buffer.concat([before, Buffer.from(part.map((byte) => byte ^ (1 << pick(8)))), after]);
    case 1:
      return Buffer.concat([before, after]);
    case 2:
      return Buffer.concat([before, ...Array.from({ length: 2 + pick(pick(8) === 0 ? 500 : 4) }, () => part), after]);
    case 3:
      return Buffer.concat([before, anyOf(oddWords), part, after]);
    case 4:
      return Buffer.concat([before, anyOf(words), after]);
    case 5:
      return Buffer.concat([before, anyOf(words), part, after]);
    case 6:
      return Buffer.concat([before, anyOf(numbers), after]);
    case 7:
      return before;
    default: {
      const other = others[pick(others.length)] ?? bytes;
      return Buffer.concat([before, other.subarray(pick(other.length + 1))]);
    }
  }
}
