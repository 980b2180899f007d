/**
 * Parses a template's text into davit's own syntax tree. It uses only the grammar and the white-space rules of the
 * handlebars package: nothing is compiled to JavaScript. It refuses what davit's language lacks (partials, decorators,
 * unknown helpers and blocks, wrong arguments). So mistakes show before a machine boots.
 */

import Handlebars from "handlebars";
import { RenderError, type RenderReason } from "../core/render-error.ts";
import { advance, type TextPosition } from "../core/text-position.ts";
import { assertParsable } from "./limits.ts";
import { type Block, blockNames, loopNames, type PathStart, type Program, type TemplateExpression } from "./syntax.ts";
import { helperArity, isHelperName } from "./template-helpers.ts";

/**
 * Parses a template.
 * @throws {RenderError} with the place of the first mistake.
 */
export function parseProgram(text: string): Program {
  assertParsable(text);
  return toProgram(parseText(text), []);
}

type Locals = readonly string[];

function parseText(text: string): hbs.AST.Program {
  try {
    return Handlebars.parse(text);
  } catch (error) {
    const found = toRenderError(error);
    // The parser reports the text's end. The braces that nothing closes show what to correct.
    const open = text.lastIndexOf("{{");
    if (found.reason !== "notClosed" || open < text.lastIndexOf("}}")) throw found;
    throw new RenderError("notClosed", advance({ line: 1, column: 1 }, text.slice(0, open)));
  }
}

function toProgram(program: hbs.AST.Program | undefined, locals: Locals): Program {
  return (program?.body ?? []).flatMap((statement): Program => {
    if (isComment(statement)) return [];
    if (isContent(statement)) return toText(statement);
    if (isMustache(statement)) {
      return [{ kind: "print", expression: toCallOrPath(statement, locals), at: positionOf(statement) }];
    }
    if (isBlock(statement)) return [toBlock(statement, locals)];
    throw failure("unsupported", statement);
  });
}

/** Converts a text. The parser may have removed white space at the text's start: then the place is after that space. */
function toText(statement: hbs.AST.ContentStatement): Program {
  // The package's types declare `original` wrongly.
  const { value: text, original }: { readonly value: string; readonly original: unknown } = statement;
  if (text === "") return [];
  const cut = typeof original === "string" ? original.slice(0, original.indexOf(text)) : "";
  return [{ kind: "text", text, at: advance(positionOf(statement), cut) }];
}

function toBlock(block: hbs.AST.BlockStatement, locals: Locals): Block {
  const name = blockNames.find((known) => known === block.path.original);
  if (name === undefined) throw failure("unknownBlock", block);
  const [argument, ...more] = block.params;
  const names = (block.program ?? block.inverse)?.blockParams ?? [];
  const maxNames = { if: 0, unless: 0, each: 2, with: 1 }[name];
  if (argument === undefined || more.length > 0 || names.length > maxNames) throw failure("wrongArguments", block);
  return {
    kind: "block",
    name,
    argument: toExpression(argument, locals),
    includeZero: toIncludeZero(block, name),
    names,
    body: toProgram(block.program, [...names, ...locals]),
    otherwise: toProgram(block.inverse, locals),
  };
}

/** Reads the only named argument of the language: `includeZero` of `if` and `unless`. */
function toIncludeZero(block: hbs.AST.BlockStatement, name: Block["name"]): boolean {
  const [pair, ...more] = block.hash?.pairs ?? [];
  if (pair === undefined) return false;
  const fits = more.length === 0 && pair.key === "includeZero" && (name === "if" || name === "unless");
  if (!fits || !isBooleanLiteral(pair.value)) throw failure("wrongArguments", block);
  return pair.value.value;
}

/**
 * Converts a tag or a sub-expression. A name without arguments is always a variable, even if a helper has that name:
 * every helper takes arguments.
 */
function toCallOrPath(node: hbs.AST.MustacheStatement | hbs.AST.SubExpression, locals: Locals): TemplateExpression {
  const { path, params } = node;
  if (!isPath(path)) throw failure("unsupported", node);
  const hasNamed = (node.hash?.pairs ?? []).length > 0;
  if (params.length === 0 && !hasNamed) return toPath(path, locals);
  const helper = path.original;
  if (path.data || !isHelperName(helper)) throw failure("unknownHelper", node);
  const { min, max } = helperArity(helper);
  if (hasNamed || params.length < min || params.length > max) throw failure("wrongArguments", node);
  return { kind: "call", helper, args: params.map((param) => toExpression(param, locals)), at: positionOf(node) };
}

function toExpression(node: hbs.AST.Expression, locals: Locals): TemplateExpression {
  if (isPath(node)) return toPath(node, locals);
  if (isSubExpression(node)) return toCallOrPath(node, locals);
  if (isValueLiteral(node)) return { kind: "literal", value: node.value };
  // Only the literals `null` and `undefined` remain.
  return { kind: "literal", value: null };
}

function toPath(path: hbs.AST.PathExpression, locals: Locals): TemplateExpression {
  const [first, ...rest] = path.parts;
  const from = toStart(path, first, locals);
  const members = from.kind === "context" ? path.parts : rest;
  return { kind: "path", from, members, at: positionOf(path) };
}

function toStart(path: hbs.AST.PathExpression, first: string | undefined, locals: Locals): PathStart {
  const { depth } = path;
  if (path.data) {
    if (first === "root" && depth === 0) return { kind: "root" };
    const name = loopNames.find((known) => known === first);
    if (name === undefined) throw failure("unknownData", path);
    return { kind: "loop", name, depth };
  }
  // `./name` and `this.name` are members of the context, even if a block gave that name to a value.
  const isScoped = /^(?:\.|this\b)/.test(path.original);
  if (first !== undefined && depth === 0 && !isScoped && locals.includes(first)) return { kind: "local", name: first };
  return { kind: "context", depth };
}

function failure(reason: RenderReason, node: hbs.AST.Node): RenderError {
  return new RenderError(reason, positionOf(node));
}

function positionOf({ loc }: hbs.AST.Node): TextPosition {
  return { line: loc.start.line, column: loc.start.column + 1 };
}

const isComment = (node: hbs.AST.Node) => node.type === "CommentStatement";
const isContent = (node: hbs.AST.Node): node is hbs.AST.ContentStatement => node.type === "ContentStatement";
const isMustache = (node: hbs.AST.Node): node is hbs.AST.MustacheStatement => node.type === "MustacheStatement";
const isBlock = (node: hbs.AST.Node): node is hbs.AST.BlockStatement => node.type === "BlockStatement";
const isPath = (node: hbs.AST.Node): node is hbs.AST.PathExpression => node.type === "PathExpression";
const isSubExpression = (node: hbs.AST.Node): node is hbs.AST.SubExpression => node.type === "SubExpression";
const isBooleanLiteral = (node: hbs.AST.Node): node is hbs.AST.BooleanLiteral => node.type === "BooleanLiteral";
const isValueLiteral = (
  node: hbs.AST.Node,
): node is hbs.AST.StringLiteral | hbs.AST.NumberLiteral | hbs.AST.BooleanLiteral =>
  ["StringLiteral", "NumberLiteral", "BooleanLiteral"].includes(node.type);

const tokenReasons = new Map<string, RenderReason>([
  ["CLOSE_UNESCAPED", "tripleClose"],
  // Four braces in a row, as in `{"a": {"b":{{json x}}}}`.
  ["CLOSE_RAW_BLOCK", "tripleClose"],
  ["EOF", "notClosed"],
]);

/**
 * Converts one error of `Handlebars.parse`. Its message quotes the template, so davit reads only the kind of the error
 * from it.
 */
function toRenderError(error: unknown): RenderError {
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
