/**
 * Prevents a template from blocking the process. Limits on its text are checked before the parser runs, whose time
 * grows with the square of the nesting. A budget limits each render.
 */

import { isJsonObject, type JsonValue } from "../../model/json.ts";
import { RenderError } from "../core/render-error.ts";
import { isList, sortedEntries } from "../core/values.ts";

/** Longer ones are a mistake, and parsing them would delay others: about 1 s per MiB in the worst case. */
export const maxTemplateBytes = 1024 * 1024;
/** Parsing takes about 10 µs for each. */
const maxExpressions = 10_000;
/** People cannot read deeper nesting, and the recursion of parser and evaluator stays far from the stack's limit. */
const maxDepth = 100;

/**
 * Refuses a text that would cost too much to parse. It counts everything that looks like a tag, so hundreds of
 * unbalanced tags in comments are refused too.
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
 * The change of nesting at a tag. The parser nests each `else` one level deeper than the one before; `open` counts the
 * levels of each open block.
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

/**
 * The work is correct, but too long for the thread that answers all machines. The caller granted a short budget, and
 * starts the work again in another thread.
 */
export class TooLongHere extends Error {
  override readonly name = "TooLongHere";

  constructor() {
    super("longer than it may take on this thread");
  }
}

/** The limits of one render; every limit throws a RenderError. Texts of one config may share a budget. */
export class RenderBudget {
  /** Entered blocks and rounds of loops. */
  static readonly maxSteps = 100_000;
  /** UTF-8 bytes of a result. */
  static readonly maxResultBytes = 8 * 1024 * 1024;
  /** Statements, expressions, walked values, and each 16 processed characters: about 0.3 s at worst. */
  static readonly maxWork = 10_000_000;

  readonly #granted: number;
  #steps = 0;
  #work = 0;

  /** @param granted below `maxWork` if the render must end sooner: more work then throws TooLongHere. */
  constructor(granted = RenderBudget.maxWork) {
    this.#granted = granted;
  }

  /** True if long work should not begin here. */
  get isShort(): boolean {
    return this.#granted < RenderBudget.maxWork;
  }

  /** True until something is counted. */
  get isUnused(): boolean {
    return this.#work === 0;
  }

  /** Counts an entered block or a round of a loop. */
  step(): void {
    this.#steps++;
    if (this.#steps > RenderBudget.maxSteps) throw new RenderError("budget");
    this.count(1);
  }

  /** Counts one evaluation that processes `length` characters. */
  work(length: number): void {
    this.count(1 + length / 16);
  }

  /** Counts values or pieces of text before a caller visits them one by one. */
  count(values: number): void {
    this.#work += values;
    if (this.#work <= this.#granted) return;
    throw this.isShort ? new TooLongHere() : new RenderError("budget");
  }

  /** Counts the cost of sorting this many strings. */
  sort(length: number): void {
    this.count(length * (2 + Math.log2(length + 1)));
  }

  /**
   * Refuses a text before it is built, if it is longer than any result can be.
   * @param length of the whole text. @param added how many of its characters are processed now.
   */
  claim(length: number, added = length): void {
    if (length > RenderBudget.maxResultBytes) throw new RenderError("resultTooLarge");
    this.work(added);
  }
}

/**
 * Counts the values that are visited when a value is written as text, including the elements of nested lists.
 * @param whole true for JSON, which includes the members of objects.
 */
export function countValue(value: JsonValue | undefined, whole: boolean, budget: RenderBudget): void {
  if (typeof value === "string") {
    budget.work(value.length);
  } else if (isList(value)) {
    budget.count(1);
    for (const item of value) countValue(item, whole, budget);
  } else if (whole && isJsonObject(value)) {
    const entries = Object.entries(value);
    budget.sort(entries.length);
    for (const [key, item] of entries) {
      budget.work(key.length);
      countValue(item, true, budget);
    }
  } else {
    budget.count(1);
  }
}

/**
 * The rounds of a loop over a value: members in the order of their names, or elements; none for any other value.
 * @throws {RenderError} budget, before it makes a list that is too long for any loop: `split` can make millions.
 */
export function roundsOf(
  value: JsonValue | undefined,
  budget: RenderBudget,
): readonly (readonly [key: JsonValue, item: JsonValue])[] {
  if (isJsonObject(value)) {
    budget.sort(Object.keys(value).length);
    return sortedEntries(value);
  }
  if (!isList(value)) return [];
  if (value.length > RenderBudget.maxSteps) throw new RenderError("budget");
  budget.count(value.length);
  return value.map((item, index) => [index, item]);
}

/** True when `text` takes more than `maxBytes` bytes of UTF-8. */
export function utf8Exceeds(text: string, maxBytes: number): boolean {
  if (text.length > maxBytes) return true;
  // A UTF-16 unit becomes at most three bytes.
  return text.length * 3 > maxBytes && new TextEncoder().encode(text).length > maxBytes;
}
