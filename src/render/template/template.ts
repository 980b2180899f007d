/**
 * Templates: the language of Profiles' configs. It has the grammar of Handlebars with a small set of blocks and helpers
 * (docs/use/templates.md). It is made for configs: nothing is escaped, and an absent variable is an error.
 *
 * The same text and variables yield the same result. A template reaches only own members of variables. Parsing and
 * rendering have limits. An error never quotes the template or a value. A template never becomes JavaScript, reads no
 * clock, and writes nothing.
 */

import type { JsonObject } from "../../model/json.ts";
import { RenderError, type RenderReason, renderReasons } from "../core/render-error.ts";
import type { TextPosition } from "../core/text-position.ts";
import { evaluate } from "./evaluate.ts";
import type { RenderBudget } from "./limits.ts";
import { parseProgram } from "./parse.ts";
import type { RequestReads } from "./request-reads.ts";
import type { Sha256 } from "./template-helpers.ts";
import { type Piece, PieceTrace, PlaceTrace, type Trace } from "./trace.ts";

/** The variables that a template can read: `variables.ts` makes them. */
export type Variables = JsonObject;

export interface Template {
  /**
   * Renders the template.
   * @param budget the limits of this render; full limits by default.
   * @param reads what the variables report to. It also receives the parts of the result that print the request.
   * @throws {RenderError} for an absent variable, a helper's bad argument, or when the budget is used up.
   * @throws {TooLongHere} when a short budget is used up.
   */
  render(variables: Variables, budget?: RenderBudget, reads?: RequestReads): string;
  /**
   * Renders the template, and marks which parts of the result are copied from it and which are values.
   * @throws {RenderError} as `render`.
   * @throws {TooLongHere} as `render`.
   */
  pieces(variables: Variables, budget?: RenderBudget): readonly Piece[];
  /**
   * Returns the place in the template that yields a place in the result; undefined for an empty result. It renders the
   * template again.
   * @throws {RenderError} as `render`.
   */
  origin(variables: Variables, place: TextPosition): TextPosition | undefined;
}

/** The first mistake in a template's text. Safe to show to anyone. */
interface TemplateProblem {
  readonly reason: RenderReason;
  readonly message: string;
  /** Counts from 1. A mistake of the whole template has line 1, column 1. */
  readonly line: number;
  readonly column: number;
}

/** Finds the first mistake in a template's text, without variables. */
export function parseTemplate(text: string): TemplateProblem | undefined {
  try {
    parseProgram(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof RenderError)) throw error;
    const { line, column } = error.position ?? { line: 1, column: 1 };
    return { reason: error.reason, message: renderReasons[error.reason], line, column };
  }
}

/**
 * Makes a template that can be rendered any number of times.
 * @throws {RenderError} when the text has a mistake. `parseTemplate` finds the same mistake.
 */
export function compileTemplate(text: string, { sha256 }: { readonly sha256: Sha256 }): Template {
  const program = parseProgram(text);
  const run = (
    variables: Variables,
    options: { budget?: RenderBudget | undefined; trace?: Trace; reads?: RequestReads | undefined },
  ) => {
    try {
      return evaluate(program, variables, { sha256, ...options });
    } catch (error) {
      // Only extremely nested values reach the engine's own limits of stack or string length.
      if (error instanceof RangeError) throw new RenderError("budget");
      throw error;
    }
  };
  return {
    render: (variables, budget, reads) => run(variables, { budget, reads }),
    pieces: (variables, budget) => {
      const trace = new PieceTrace();
      run(variables, { budget, trace });
      return trace.pieces;
    },
    origin: (variables, place) => {
      const trace = new PlaceTrace(place);
      run(variables, { trace });
      return trace.found;
    },
  };
}
