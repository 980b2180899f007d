/**
 * Converts the handlebars parser's errors into our own catalogue. Its messages quote the template, so only the kind and
 * the place of an error are read from them.
 */

import Handlebars from "handlebars";
import { RenderError, type RenderReason } from "../core/render-error.ts";
import type { TextPosition } from "../core/text-position.ts";

const tokenReasons = new Map<string, RenderReason>([
  ["CLOSE_UNESCAPED", "tripleClose"],
  // Four braces in a row: `{"a": {"b":{{json x}}}}`.
  ["CLOSE_RAW_BLOCK", "tripleClose"],
  ["EOF", "notClosed"],
]);

/** Translates one error of `Handlebars.parse`. */
export function toRenderError(error: unknown): RenderError {
  if (!(error instanceof Error)) return new RenderError("syntax");
  // The grammar's own checks include the place.
  const { lineNumber, column } = { lineNumber: undefined, column: undefined, ...fieldsOf(error) };
  if (typeof lineNumber === "number" && typeof column === "number") {
    const reason = error.message.startsWith("Invalid path") ? "syntax" : "blockMismatch";
    return new RenderError(reason, { line: lineNumber, column: column + 1 });
  }
  if (error instanceof RangeError) return new RenderError("templateTooDeep");
  return new RenderError(syntaxReason(error.message), lexerPosition(error.message.startsWith("Lexical")));
}

function syntaxReason(message: string): RenderReason {
  // The lexer finds no rule only in a comment or a raw block that never ends.
  if (message.startsWith("Lexical")) return "notClosed";
  const token = /, got '([A-Z_]+)'$/.exec(message)?.[1] ?? "";
  if (token === "CLOSE" && message.includes("\nExpecting 'CLOSE_UNESCAPED'")) return "tripleOpen";
  return tokenReasons.get(token) ?? "syntax";
}

/** Where the parser stopped. Only the lexer's state has it; if the package changes, only the place is lost. */
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

/** Follows names that the package's types lack; an empty object for a missing one. */
function fieldsOf(start: object, ...names: readonly string[]): object {
  let value: unknown = start;
  for (const name of names) value = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  return typeof value === "object" && value !== null ? value : {};
}
