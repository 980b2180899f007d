/**
 * Prevents a template from blocking the process. The text is limited before the parser runs, because the time of
 * parsing grows with the square of the nesting. A budget limits each render.
 */

import { isJsonObject, type JsonValue } from "../../model/json.ts";
import { RenderError } from "../core/render-error.ts";
import { isList, sortedEntries } from "../core/values.ts";

/**
 * Longer templates are a mistake. Parsing them would delay other machines: it takes about 1 s per MiB in the worst
 * case.
 */
export const maxTemplateBytes = 1024 * 1024;
/** Parsing takes about 10 µs for each expression. */
const maxExpressions = 10_000;
/**
 * People cannot read deeper nesting. With this limit, the recursion of parser and evaluator stays far from the limit of
 * the stack.
 */
const maxDepth = 100;

/**
 * Refuses a text that would cost too much to parse. It counts everything that looks like a tag. So it also refuses a
 * text with hundreds of unbalanced tags in comments.
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

// Parsing more takes too long for the thread that answers machines.
const shortTemplate = { length: 256 * 1024, expressions: 1_000 };

/** True for a template that must not be parsed on the thread that answers machines. */
export function isLongTemplate(text: string): boolean {
  const { length, expressions } = shortTemplate;
  return text.length > length || text.split("{{", expressions + 2).length > expressions + 1;
}

/**
 * Returns how much a tag changes the nesting. The parser nests each `else` one level deeper than the one before. `open`
 * has the number of levels of each open block.
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
 * Thrown when correct work takes too long for the thread that answers all machines. The caller granted a short budget,
 * and starts the work again in another thread.
 */
export class TooLongHere extends Error {
  override readonly name = "TooLongHere";

  constructor() {
    super("longer than it may take on this thread");
  }
}

/**
 * The limits of one render. Work beyond a limit throws a RenderError. Work beyond a short budget throws TooLongHere.
 * Texts of one config may share a budget.
 */
export class RenderBudget {
  /** The most entered blocks and rounds of loops, together. */
  static readonly maxSteps = 100_000;
  /** The most UTF-8 bytes of a result. */
  static readonly maxResultBytes = 8 * 1024 * 1024;
  /**
   * The most units of work, which take 0.3 s at worst. A unit is a statement, an expression, a visited value, or 16
   * processed characters.
   */
  static readonly maxWork = 10_000_000;

  readonly #granted: number;
  #steps = 0;
  #work = 0;

  /** @param granted the units of work that are allowed. A budget with fewer than `maxWork` is a short budget. */
  constructor(granted = RenderBudget.maxWork) {
    this.#granted = granted;
  }

  /** True for a short budget: long work must not begin on this thread. */
  get isShort(): boolean {
    return this.#granted < RenderBudget.maxWork;
  }

  /** True until work is counted. */
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

  /** Counts values or pieces of text, before the caller visits each of them. */
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
   * Refuses a text before it is built, if it is longer than any result may be.
   * @param length the length of the whole text.
   * @param added how many of its characters are processed now.
   */
  claim(length: number, added = length): void {
    if (length > RenderBudget.maxResultBytes) throw new RenderError("resultTooLarge");
    this.work(added);
  }
}

/**
 * Counts a value that is about to be written as text, with the elements of nested lists.
 * @param whole true for JSON, which also writes the members of objects.
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
 * Returns the rounds of a loop over a value: members in the order of their names, or elements. A value of another type
 * has none.
 * @throws {RenderError} budget, before it copies a list that is too long for any loop: `split` can make millions of
 * elements.
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
