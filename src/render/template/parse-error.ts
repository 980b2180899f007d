/**
 * Converts errors of the handlebars parser into RenderErrors. The parser's messages quote the template, so davit reads
 * only the kind of an error from them.
 */

import Handlebars from "handlebars";
import { RenderError, type RenderReason } from "../core/render-error.ts";
import type { TextPosition } from "../core/text-position.ts";

const tokenReasons = new Map<string, RenderReason>([
  ["CLOSE_UNESCAPED", "tripleClose"],
  // Four braces in a row, as in `{"a": {"b":{{json x}}}}`.
  ["CLOSE_RAW_BLOCK", "tripleClose"],
  ["EOF", "notClosed"],
]);

/** Converts one error of `Handlebars.parse`. */
export function toRenderError(error: unknown): RenderError {
  if (!(error instanceof Error)) return new RenderError("syntax");
  // An error of the grammar's own checks has a line and a column.
  const { lineNumber, column } = { lineNumber: undefined, column: undefined, ...fieldsOf(error) };
  if (typeof lineNumber === "number" && typeof column === "number") {
    const reason = error.message.startsWith("Invalid path") ? "syntax" : "blockMismatch";
    return new RenderError(reason, { line: lineNumber, column: column + 1 });
  }
  if (error instanceof RangeError) return new RenderError("templateTooDeep");
  return new RenderError(syntaxReason(error.message), lexerPosition(error.message.startsWith("Lexical")));
}

function syntaxReason(message: string): RenderReason {
  // The lexer fails only in a comment or a raw block that is not closed.
  if (message.startsWith("Lexical")) return "notClosed";
  const token = /, got '([A-Z_]+)'$/.exec(message)?.[1] ?? "";
  if (token === "CLOSE" && message.includes("\nExpecting 'CLOSE_UNESCAPED'")) return "tripleOpen";
  return tokenReasons.get(token) ?? "syntax";
}

/**
 * Returns the place where the parser stopped. It is only in the lexer's internal state. If the package changes that
 * state, errors lose their place and nothing else.
 */
function lexerPosition(atEnd: boolean): TextPosition | undefined {
  const { first_line, first_column, last_line, last_column } = {
    first_line: undefined,
    first_column: undefined,
    last_line: undefined,
    last_column: undefined,
    ...fieldsOf(Handlebars, "Parser", "lexer", "yylloc"),
  };
  const [line, column] = atEnd ? [last_line, last_column] : [first_line, first_column];
  if (typeof line !== "number" || typeof column !== "number") return undefined;
  return { line, column: column + 1 };
}

/** Returns the object at a path of names that the package's types lack; an empty object if a name is missing. */
function fieldsOf(start: object, ...names: readonly string[]): object {
  let value: unknown = start;
  for (const name of names) value = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  return typeof value === "object" && value !== null ? value : {};
}
