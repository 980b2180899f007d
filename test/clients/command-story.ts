/**
 * Stories of a command line client: what is typed, and what it prints. Each is told from an empty store.
 *
 *   # what it shows
 *   $ set /a b                the words behind the client's name and the server's address, as a shell reads them
 *   | b                       its output, of both kinds
 *   = 4                       its exit code, unless that is 0
 *
 * A command that begins with `&$` runs while the next ones do, and is watching before they begin; a later `&` awaits
 * it. With `= stopped` it would go on for ever, and is stopped when its output is there.
 *
 * Placeholders and indexes are those of the conformance files, see test/conformance/exchange.ts.
 */

import { fillIndexes } from "../conformance/exchange.ts";

export interface CommandStory {
  readonly title: string;
  readonly steps: readonly CommandStep[];
}

export type CommandStep =
  | { readonly kind: "run"; readonly words: string; readonly printed: Printed }
  | { readonly kind: "begin"; readonly words: string }
  | { readonly kind: "await"; readonly printed: Printed };

export interface Printed {
  readonly output: string;
  readonly exit: number | "stopped";
}

/** Reads a story, with its indexes counted from `base`, the store's index before it. */
export function parseCommandStory(text: string, base: number): CommandStory {
  const [first = "", ...rest] = text.split("\n");
  if (!first.startsWith("# ")) throw new Error(`Bad first line "${first}"`);
  const paragraphs = rest
    .join("\n")
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.split("\n").filter((line) => line !== ""))
    .filter((lines) => lines.length > 0);
  return { title: first.slice(2), steps: paragraphs.map((lines) => parseStep(lines, base)) };
}

function parseStep([first = "", ...rest]: readonly string[], base: number): CommandStep {
  const printed = parsePrinted(rest, base);
  if (first === "&") return { kind: "await", printed };
  const [, isBegun = "", words] = /^(&?)\$ (.+)$/.exec(fillIndexes(first, base)) ?? [];
  if (words === undefined) throw new Error(`Bad line "${first}"`);
  return isBegun === "&" ? { kind: "begin", words } : { kind: "run", words, printed };
}

function parsePrinted(lines: readonly string[], base: number): Printed {
  const output = lines.filter((line) => line.startsWith("|")).map((line) => fillIndexes(line.slice(2), base));
  const [exit = "= 0", ...more] = lines.filter((line) => !line.startsWith("|"));
  if (!/^= (stopped|\d+)$/.test(exit) || more.length > 0) throw new Error(`Bad lines:\n${lines.join("\n")}`);
  return { output: output.join("\n"), exit: exit === "= stopped" ? "stopped" : Number(exit.slice(2)) };
}
