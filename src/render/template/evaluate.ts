/**
 * Evaluates a parsed template. Printing an absent variable is an error, and so is printing an absent member of a value.
 * Arguments of helpers and blocks may be absent. Values are data: nothing in a value is ever parsed as a template.
 */

import { unreachable } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../model/json.ts";
import { RenderError } from "../core/render-error.ts";
import type { TextPosition } from "../core/text-position.ts";
import { isTruthy, memberOf, textOf } from "../core/values.ts";
import { countValue, RenderBudget, roundsOf, utf8Exceeds } from "./limits.ts";
import type { RequestReads } from "./request-reads.ts";
import { type Block, type LoopName, nameOf, type Path, type Program, type TemplateExpression } from "./syntax.ts";
import { type HelperTools, runHelper, type Sha256 } from "./template-helpers.ts";
import type { Trace } from "./trace.ts";

type Value = JsonValue | undefined;

/** What names mean at one place of a template. `each` and `with` open a scope, `if` and `unless` do not. */
interface Scope {
  readonly context: Value;
  /** The scope of `../`. */
  readonly outer: Scope | undefined;
  readonly loop: Loop | undefined;
  /** The values by their names in `as |value key|`. */
  readonly locals: ReadonlyMap<string, Value> | undefined;
  /** True if all of these values come from the request. */
  readonly isOfRequest: boolean;
}

/** One round of an `each`: the values of `@index` and the other loop variables. */
interface Loop extends Readonly<Record<LoopName, JsonValue>> {
  readonly outerLoop: Loop | undefined;
  readonly isOfRequest: boolean;
}

interface EvaluateOptions {
  readonly sha256: Sha256;
  /** Limits the work. Several renders can share a budget. */
  readonly budget?: RenderBudget | undefined;
  /** Receives the origin of each piece of the result. */
  readonly trace?: Trace | undefined;
  /** What the variables report of the request. It also receives the parts of the result that print it. */
  readonly reads?: RequestReads | undefined;
}

/**
 * Renders a program with its variables.
 * @throws {RenderError} for an absent variable, a helper's bad argument, or more work or text than the budget allows.
 */
export function evaluate(program: Program, variables: JsonObject, options: EvaluateOptions): string {
  const evaluation = new Evaluation(variables, options);
  const root = { context: variables, outer: undefined, loop: undefined, locals: undefined, isOfRequest: false };
  evaluation.run(program, root);
  return evaluation.result();
}

class Evaluation {
  readonly #variables: JsonObject;
  readonly #budget: RenderBudget;
  readonly #tools: HelperTools;
  readonly #trace: Trace | undefined;
  readonly #reads: RequestReads | undefined;
  #output = "";

  constructor(variables: JsonObject, { sha256, budget = new RenderBudget(), trace, reads }: EvaluateOptions) {
    this.#variables = variables;
    this.#budget = budget;
    this.#tools = { sha256, budget };
    this.#trace = trace;
    this.#reads = reads;
  }

  result(): string {
    if (utf8Exceeds(this.#output, RenderBudget.maxResultBytes)) throw new RenderError("resultTooLarge");
    return this.#output;
  }

  run(program: Program, scope: Scope): void {
    for (const statement of program) {
      switch (statement.kind) {
        case "text":
          this.#write(statement.text, statement.at, true);
          break;
        case "print": {
          const { value: text, isOfRequest } = this.#watched(() => this.#printed(statement.expression, scope));
          if (isOfRequest) this.#reads?.printed(this.#output.length, text.length);
          this.#write(text, statement.at, false);
          break;
        }
        case "block":
          this.#budget.step();
          this.#block(statement, scope);
          break;
        default:
          unreachable(statement);
      }
    }
  }

  #write(text: string, at: TextPosition, isCopy: boolean): void {
    this.#trace?.wrote(text, at, isCopy);
    // This check refuses no valid result: a text has at least as many UTF-8 bytes as UTF-16 units. `result` checks the
    // bytes.
    this.#budget.claim(this.#output.length + text.length, text.length);
    this.#output += text;
  }

  #block(block: Block, scope: Scope): void {
    const watched = this.#watched(() => this.#value(block.argument, scope));
    if (block.name === "each") {
      this.#each(block, watched, scope);
      return;
    }
    const { value, isOfRequest } = watched;
    if (!holds(block.name, block.includeZero, value)) {
      this.run(block.otherwise, scope);
      return;
    }
    switch (block.name) {
      case "if":
      case "unless":
        this.run(block.body, scope);
        break;
      case "with":
        this.run(block.body, {
          ...{ context: value, outer: scope, loop: scope.loop, locals: localsOf(block, [value]), isOfRequest },
        });
        break;
      default:
        unreachable(block.name);
    }
  }

  #each(block: Block, { value, isOfRequest: isNamed }: ReadValue<Value>, scope: Scope): void {
    // The variables themselves are a value, too: to list their values reads the request.
    const { value: rounds, isOfRequest: isListed } = this.#watched(() => roundsOf(value, this.#budget));
    const isOfRequest = isNamed || isListed;
    if (rounds.length === 0) this.run(block.otherwise, scope);
    for (const [index, [key, item]] of rounds.entries()) {
      this.#budget.step();
      const place = { key, index, first: index === 0, last: index === rounds.length - 1 };
      const loop = { ...place, outerLoop: scope.loop, isOfRequest };
      this.run(block.body, { context: item, outer: scope, loop, locals: localsOf(block, [item, key]), isOfRequest });
    }
  }

  /**
   * Returns the text that an expression prints.
   * @throws {RenderError} undefinedVariable for an absent variable.
   */
  #printed(expression: TemplateExpression, scope: Scope): string {
    const value = this.#value(expression, scope);
    if (value === undefined && expression.kind === "path") {
      throw new RenderError("undefinedVariable", expression.at, { variable: nameOf(expression) });
    }
    countValue(value, false, this.#budget);
    return textOf(value);
  }

  /** Returns the value of an expression; undefined for an absent variable. */
  #value(expression: TemplateExpression, scope: Scope): Value {
    this.#budget.work(0);
    switch (expression.kind) {
      case "literal":
        return expression.value;
      case "path":
        this.#budget.count(expression.members.length);
        return expression.members.reduce(reach, this.#start(expression, scope));
      case "call": {
        const args = expression.args.map((arg) => this.#value(arg, scope) ?? null);
        const result = runHelper(expression.helper, args, this.#tools);
        if (result === undefined) throw new RenderError("badArgument", expression.at);
        return result;
      }
      default:
        return unreachable(expression);
    }
  }

  #start({ from }: Path, scope: Scope): Value {
    switch (from.kind) {
      case "root":
        return this.#variables;
      case "context":
        return this.#noted(climb(scope, from.depth, (at) => at.outer))?.context;
      case "local":
        return this.#noted(scopeNaming(scope, from.name))?.locals?.get(from.name);
      case "loop":
        return this.#noted(climb(scope.loop, from.depth, (at) => at.outerLoop))?.[from.name];
      default:
        return unreachable(from);
    }
  }

  /** Notes the use of values that a block took from the request. */
  #noted<Level extends Scope | Loop>(level: Level | undefined): Level | undefined {
    if (level?.isOfRequest === true) this.#reads?.note();
    return level;
  }

  #watched<Result>(read: () => Result): ReadValue<Result> {
    const before = this.#reads?.textCount;
    const value = read();
    return { value, isOfRequest: this.#reads?.textCount !== before };
  }
}

/** A value, and whether the request was read for it. */
interface ReadValue<Result> {
  readonly value: Result;
  readonly isOfRequest: boolean;
}

/**
 * Returns a member of a value; undefined if it is absent. It returns null for a name that every JavaScript object
 * inherits, such as `constructor`: the name prints nothing.
 */
export function reach(value: Value, name: string): Value {
  const member = memberOf(value, name);
  if (member === undefined && isJsonObject(value) && name in Object.prototype) return null;
  return member;
}

/** True if a block renders its body, false if it renders its `else`. */
export function holds(name: Exclude<Block["name"], "each">, includeZero: boolean, value: Value): boolean {
  switch (name) {
    case "if":
      return isTruthy(value) || (includeZero && value === 0);
    case "unless":
      return !(isTruthy(value) || (includeZero && value === 0));
    case "with":
      // Zero counts as a value here, as in Handlebars.
      return isTruthy(value) || value === 0;
    default:
      return unreachable(name);
  }
}

function localsOf({ names }: Block, values: readonly Value[]): ReadonlyMap<string, Value> | undefined {
  return names.length === 0 ? undefined : new Map(names.map((name, at) => [name, values[at]]));
}

/** Returns the nearest scope whose block gave a value this name. */
function scopeNaming(scope: Scope | undefined, name: string): Scope | undefined {
  let at = scope;
  while (at !== undefined && at.locals?.has(name) !== true) at = at.outer;
  return at;
}

function climb<Level>(start: Level | undefined, depth: number, outer: (level: Level) => Level | undefined) {
  let level = start;
  for (let left = depth; left > 0 && level !== undefined; left--) level = outer(level);
  return level;
}
