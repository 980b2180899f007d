/**
 * Finds a variable that a template prints for every request, although nothing defines it: then every request fails. The
 * search walks the template as the evaluator does, but the values of `request` are unknown. It skips a block or a name
 * that depends on them. So it reports only failures that every request would meet.
 */

import { unreachable } from "../../lib/errors.ts";
import type { JsonValue } from "../../model/json.ts";
import { RenderError } from "../core/render-error.ts";
import type { TextPosition } from "../core/text-position.ts";
import { holds, reach } from "./evaluate.ts";
import { type RenderBudget, roundsOf } from "./limits.ts";
import { parseProgram } from "./parse.ts";
import { type Block, nameOf, type Path, type Program, type TemplateExpression } from "./syntax.ts";
import { runHelper, type Sha256 } from "./template-helpers.ts";

/** A variable that a template prints, although nothing defines it. */
interface AbsentVariable {
  readonly name: string;
  readonly at: TextPosition;
}

/**
 * Looks up a variable; undefined if it is absent, `unknown` if it depends on the machine. Never called for `request` if
 * the template sees `request`.
 */
export type VariableLookup = (name: string) => JsonValue | undefined | typeof unknown;

interface NeedsOptions {
  readonly sha256: Sha256;
  /** True if the template has the variable `request`. Texts of a boot section do not have it. */
  readonly seesRequest: boolean;
}

/** A value that is unknown because it depends on the request or on the machine. */
export const unknown: unique symbol = Symbol("unknown");
/** The variable `request`. Its two members always exist, but their values are unknown. */
const request = Symbol("request");
/** The object that contains all variables. */
const root = Symbol("root");

type KnownValue = JsonValue | undefined | typeof unknown | typeof request | typeof root;

interface NeedsScope {
  readonly context: KnownValue;
  readonly outer: NeedsScope | undefined;
  readonly isInLoop: boolean;
  readonly locals: ReadonlyMap<string, KnownValue> | undefined;
}

export class TemplateNeeds {
  readonly #program: Program;
  readonly #options: NeedsOptions;

  /** @throws {RenderError} when the text has a mistake. */
  constructor(text: string, options: NeedsOptions) {
    this.#program = printing(parseProgram(text));
    this.#options = options;
  }

  /**
   * Returns the first variable that is absent for every request; undefined if there is none.
   * @param budget limits the walk.
   * @throws {TooLongHere} when a short budget is used up.
   */
  absent(variables: VariableLookup, budget: RenderBudget): AbsentVariable | undefined {
    const walk = new NeedsWalk(variables, budget, this.#options);
    try {
      return walk.absent(this.#program, { context: root, outer: undefined, isInLoop: false, locals: undefined });
    } catch (error) {
      // The work exceeds the limits. Rendering reports the same error.
      if (error instanceof RenderError) return undefined;
      throw error;
    }
  }
}

/** Keeps only the statements that may print an absent variable. A helper's result is never absent. */
function printing(program: Program): Program {
  return program.flatMap((statement): Program => {
    if (statement.kind === "text") return [];
    if (statement.kind === "print") return statement.expression.kind === "path" ? [statement] : [];
    const [body, otherwise] = [printing(statement.body), printing(statement.otherwise)];
    return body.length + otherwise.length === 0 ? [] : [{ ...statement, body, otherwise }];
  });
}

class NeedsWalk {
  readonly #variables: VariableLookup;
  readonly #budget: RenderBudget;
  readonly #options: NeedsOptions;

  constructor(variables: VariableLookup, budget: RenderBudget, options: NeedsOptions) {
    this.#variables = variables;
    this.#budget = budget;
    this.#options = options;
  }

  absent(program: Program, scope: NeedsScope): AbsentVariable | undefined {
    for (const statement of program) {
      this.#budget.work(0);
      const found = statement.kind === "block" ? this.#inBlock(statement, scope) : this.#printed(statement, scope);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #printed(statement: Program[number], scope: NeedsScope): AbsentVariable | undefined {
    if (statement.kind !== "print" || statement.expression.kind !== "path") return undefined;
    const path = statement.expression;
    return this.#valueOf(path, scope) === undefined ? { name: nameOf(path), at: path.at } : undefined;
  }

  #inBlock(block: Block, scope: NeedsScope): AbsentVariable | undefined {
    const value = this.#value(block.argument, scope);
    if (isOpen(value)) return undefined;
    if (block.name === "each") return this.#inRounds(block, value, scope);
    if (!holds(block.name, block.includeZero, value)) return this.absent(block.otherwise, scope);
    if (block.name !== "with") return this.absent(block.body, scope);
    return this.absent(block.body, { ...scope, context: value, outer: scope, locals: localsOf(block, [value]) });
  }

  #inRounds(block: Block, value: JsonValue | undefined, scope: NeedsScope): AbsentVariable | undefined {
    const rounds = roundsOf(value, this.#budget);
    if (rounds.length === 0) return this.absent(block.otherwise, scope);
    for (const [key, item] of rounds) {
      this.#budget.step();
      const locals = localsOf(block, [item, key]);
      const found = this.absent(block.body, { context: item, outer: scope, isInLoop: true, locals });
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #value(expression: TemplateExpression, scope: NeedsScope): KnownValue {
    this.#budget.work(0);
    switch (expression.kind) {
      case "literal":
        return expression.value;
      case "path":
        return this.#valueOf(expression, scope);
      case "call": {
        const args: JsonValue[] = [];
        for (const each of expression.args) {
          const value = this.#value(each, scope);
          if (isOpen(value)) return unknown;
          args.push(value ?? null);
        }
        // If a helper cannot use its arguments, rendering reports that error.
        return runHelper(expression.helper, args, { ...this.#options, budget: this.#budget }) ?? unknown;
      }
      default:
        return unreachable(expression);
    }
  }

  #valueOf(path: Path, scope: NeedsScope): KnownValue {
    this.#budget.count(path.members.length);
    let value = startOf(path, scope);
    for (const name of path.members) value = this.#member(value, name);
    return value;
  }

  #member(value: KnownValue, name: string): KnownValue {
    if (value === unknown) return unknown;
    if (value === request) return name === "query" || name === "raw_query" ? unknown : reach({}, name);
    if (value !== root) return reach(value, name);
    if (name === "request" && this.#options.seesRequest) return request;
    const found = this.#variables(name);
    return found === undefined ? reach({}, name) : found;
  }
}

/** True for a value that is not known here, so that a block or a helper cannot use it. */
function isOpen(value: KnownValue): value is typeof unknown | typeof request | typeof root {
  return typeof value === "symbol";
}

function startOf({ from }: Path, scope: NeedsScope): KnownValue {
  switch (from.kind) {
    case "root":
      return root;
    case "context":
      return climb(scope, from.depth)?.context;
    case "local":
      return localOf(scope, from.name);
    case "loop":
      // Few templates depend on loop variables, so their values count as unknown.
      return scope.isInLoop ? unknown : undefined;
    default:
      return unreachable(from);
  }
}

function climb(scope: NeedsScope, depth: number): NeedsScope | undefined {
  let level: NeedsScope | undefined = scope;
  for (let left = depth; left > 0 && level !== undefined; left--) level = level.outer;
  return level;
}

function localOf(scope: NeedsScope, name: string): KnownValue {
  for (let at: NeedsScope | undefined = scope; at !== undefined; at = at.outer) {
    if (at.locals?.has(name) === true) return at.locals.get(name);
  }
  return undefined;
}

function localsOf({ names }: Block, values: readonly KnownValue[]): ReadonlyMap<string, KnownValue> | undefined {
  return names.length === 0 ? undefined : new Map(names.map((name, at) => [name, values[at]]));
}
