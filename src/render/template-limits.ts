/**
 * What keeps templates from stopping the process: limits on their text, looked at before the parser (whose time grows
 * with the square of the nesting), and a budget for each render.
 */

import { RenderError } from "./render-error.ts";

/** Longer ones are a mistake, and parsing them would hold up others. */
export const maxTemplateBytes = 1024 * 1024;
/** Parsing takes some 10 µs for each. */
const maxExpressions = 10_000;
/** Nobody reads deeper; the parser's and our own recursion stay far from the end of the stack. */
const maxDepth = 100;

/**
 * Refuses a text that would cost too much to parse. It only counts what looks like tags, so a text that hides hundreds
 * of unbalanced ones in comments is refused too.
 * @throws {RenderError} templateTooLarge or templateTooDeep.
 */
export function assertParsable(text: string): void {
  const tags = text.split("{{", maxExpressions + 2);
  if (tags.length > maxExpressions + 1 || utf8Exceeds(text, maxTemplateBytes))
    throw new RenderError("templateTooLarge");
  let depth = 0;
  const open: number[] = [];
  for (const tag of tags.slice(1)) {
    depth += nestingOf(tag, open);
    const parentheses = tag.split("}}", 1).join("").split("(").length - 1;
    if (depth + parentheses > maxDepth) throw new RenderError("templateTooDeep");
  }
}

/**
 * By how much a tag changes the nesting. The parser nests each `else` below the one before, so a block is as many levels
 * as it has of them; `open` holds that count for each open block.
 */
function nestingOf(tag: string, open: number[]): number {
  const step = blockStep(tag);
  if (step === "close") return -(open.pop() ?? 0);
  if (step === "other") return 0;
  open.push(step === "open" ? 1 : (open.pop() ?? 0) + 1);
  return 1;
}

function blockStep(tag: string): "open" | "close" | "else" | "other" {
  if (/^~?\s*(?:else\b|\^\s*~?\}\})/.test(tag)) return "else";
  if (/^~?[#^]/.test(tag)) return "open";
  return /^~?\//.test(tag) ? "close" : "other";
}

/** What one render may use up; every limit throws a RenderError. */
export class RenderBudget {
  /** Blocks entered and rounds of loops. */
  static readonly maxSteps = 100_000;
  /** UTF-8 bytes of a result. */
  static readonly maxResultBytes = 8 * 1024 * 1024;
  /** Statements, expressions, and each 16 characters a helper handles: some 0.3 s at worst. */
  static readonly maxWork = 10_000_000;

  #steps = 0;
  #work = 0;

  /** Counts a block entered or a round of a loop. */
  step(): void {
    this.#steps++;
    if (this.#steps > RenderBudget.maxSteps) throw new RenderError("budget");
    this.work(0);
  }

  /** Counts one evaluation that handles `length` characters. */
  work(length: number): void {
    this.#work += 1 + length / 16;
    if (this.#work > RenderBudget.maxWork) throw new RenderError("budget");
  }

  /**
   * Refuses a text before it is built: nothing longer than a result can be of use.
   * @param length of the whole text, of which `added` characters are handled now.
   */
  claim(length: number, added = length): void {
    if (length > RenderBudget.maxResultBytes) throw new RenderError("resultTooLarge");
    this.work(added);
  }
}

/** True when `text` takes more than `maxBytes` bytes of UTF-8. */
export function utf8Exceeds(text: string, maxBytes: number): boolean {
  if (text.length > maxBytes) return true;
  // A UTF-16 unit becomes at most three bytes.
  return text.length * 3 > maxBytes && new TextEncoder().encode(text).length > maxBytes;
}
