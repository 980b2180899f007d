/**
 * Parses the text of a Go template into a syntax tree. A construct that davit's templates do not have becomes a problem
 * with its place. Then parsing continues, so that all problems of a file are reported together.
 */

import { type TextPosition, textStart } from "../../../src/render/core/text-position.ts";
import { cutGoTemplate, type GoPiece, GoSyntaxError, type GoToken } from "./go-tokens.ts";

export type GoExpression =
  | GoPath
  | { readonly kind: "literal"; readonly value: string | number | boolean | null }
  | { readonly kind: "call"; readonly name: string; readonly args: readonly GoExpression[] };

/** A path to a value. `variable` is undefined for a path that begins with a dot, and empty for `$`. */
export interface GoPath {
  readonly kind: "path";
  readonly variable?: string;
  readonly members: readonly string[];
}

export interface GoBlock {
  readonly kind: "block";
  readonly name: "if" | "range" | "with";
  /** The variables that the block sets: for `range` either the value, or the key and the value. */
  readonly variables: readonly string[];
  /** Undefined if it cannot be translated. */
  readonly argument: GoExpression | undefined;
  readonly body: GoTemplate;
  readonly otherwise: GoTemplate;
  /** True if the block was written as `else if`. Then it is in the `otherwise` of the block before. */
  readonly isElseIf: boolean;
  readonly at: TextPosition;
}

export type GoNode =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "comment"; readonly text: string }
  | { readonly kind: "print"; readonly expression: GoExpression; readonly at: TextPosition }
  /** What cannot be translated. A problem has the reason. */
  | { readonly kind: "failed" }
  | GoBlock;

export type GoTemplate = readonly GoNode[];

/** A reason why a template cannot be translated. */
export interface GoTemplateProblem {
  readonly at: TextPosition;
  /** The reason, and after a colon what to do. */
  readonly text: string;
}

export interface ParsedGoTemplate {
  /** Undefined if Go refuses the template. */
  readonly template: GoTemplate | undefined;
  readonly problems: readonly GoTemplateProblem[];
}

/** Parses a template. The tree has a `failed` node in the place of each part with a problem. */
export function parseGoTemplate(source: string): ParsedGoTemplate {
  const problems: GoTemplateProblem[] = [];
  try {
    const parser = new GoParser(cutGoTemplate(source), problems);
    return { template: parser.whole(), problems };
  } catch (error) {
    if (!(error instanceof GoSyntaxError)) throw error;
    return { template: undefined, problems: [...problems, syntaxProblem(error.message, error.at)] };
  }
}

function syntaxProblem(message: string, at: TextPosition): GoTemplateProblem {
  return { at, text: `not a Go template, matchbox answers 404: ${message}` };
}

/** Thrown for an expression that cannot be translated. The caller adds the place of the tag. */
class Untranslated extends Error {}

// Less than davit's own limit of 100 levels, which includes sub-expressions.
const maxNesting = 90;
const maxTokens = 200;
const templateWords: readonly string[] = ["define", "block"];
const lonelyWords: readonly string[] = ["template", "break", "continue"];

const stopWords = ["end", "else"] as const;
type Stop = (typeof stopWords)[number] | "over";

class GoParser {
  readonly #pieces: readonly GoPiece[];
  readonly #problems: GoTemplateProblem[];
  #next = 0;
  #depth = 0;

  constructor(pieces: readonly GoPiece[], problems: GoTemplateProblem[]) {
    this.#pieces = pieces;
    this.#problems = problems;
  }

  whole(): GoTemplate {
    const { nodes, stop, at } = this.#nodes();
    if (stop !== "over") throw new GoSyntaxError(`"${stop}" belongs to no block`, at);
    return nodes;
  }

  /** Reads nodes up to an `else`, an `end` or the end of the text. @returns `rest` with the tokens after `else`. */
  #nodes(): { nodes: GoNode[]; stop: Stop; at: TextPosition; rest: readonly GoToken[] } {
    const nodes: GoNode[] = [];
    let at: TextPosition = textStart;
    for (let piece = this.#pieces[this.#next]; piece !== undefined; piece = this.#pieces[this.#next]) {
      this.#next++;
      if (piece.kind !== "action") {
        nodes.push(piece);
        continue;
      }
      at = piece.at;
      const [first, ...rest] = piece.tokens;
      const stop = first?.kind === "word" ? stopWords.find((word) => word === first.name) : undefined;
      if (stop !== undefined) return { nodes, stop, at, rest };
      nodes.push(...this.#action(piece.tokens, at));
    }
    return { nodes, stop: "over", at, rest: [] };
  }

  /** Returns the nodes of an action. */
  #action(tokens: readonly GoToken[], at: TextPosition): readonly GoNode[] {
    const [first, ...rest] = tokens;
    const word = first?.kind === "word" ? first.name : "";
    if (word === "if" || word === "range" || word === "with") return [this.#block(word, rest, at, false)];
    if (templateWords.includes(word) || lonelyWords.includes(word)) {
      this.#report(at, `"${word}" is not translated: write what it stands for in its place`);
      if (templateWords.includes(word)) this.#block("if", [{ kind: "dot" }], at, false);
      return [{ kind: "failed" }];
    }
    const expression = this.#expression(tokens, at);
    return [expression === undefined ? { kind: "failed" } : { kind: "print", expression, at }];
  }

  #block(name: GoBlock["name"], tokens: readonly GoToken[], at: TextPosition, isElseIf: boolean): GoBlock {
    this.#depth++;
    if (this.#depth > maxNesting) throw new GoSyntaxError("blocks are nested too deeply", at);
    const { variables, rest } = takeVariables(tokens);
    const argument = this.#expression(rest, at);
    const { nodes: body, stop, rest: afterElse, at: elseAt } = this.#nodes();
    if (stop === "over") throw new GoSyntaxError("a block is not closed", at);
    const otherwise = stop === "else" ? this.#otherwise(afterElse, elseAt) : [];
    this.#depth--;
    return { kind: "block", name, variables, argument, body, otherwise, isElseIf, at };
  }

  #otherwise([first, ...rest]: readonly GoToken[], at: TextPosition): GoTemplate {
    if (first === undefined) {
      const { nodes, stop, at: endAt } = this.#nodes();
      if (stop !== "end") throw new GoSyntaxError("an else has no end of its own", stop === "over" ? at : endAt);
      return nodes;
    }
    if (first.kind === "word" && first.name === "if") return [this.#block("if", rest, at, true)];
    throw new GoSyntaxError('nothing but "if" may follow else', at);
  }

  #expression(tokens: readonly GoToken[], at: TextPosition): GoExpression | undefined {
    try {
      return new ExpressionParser(tokens).whole();
    } catch (error) {
      if (!(error instanceof Untranslated)) throw error;
      this.#report(at, error.message);
      return undefined;
    }
  }

  #report(at: TextPosition, text: string): void {
    this.#problems.push({ at, text });
  }
}

/** Takes the variables from `$key, $value :=` at the beginning of a block. */
function takeVariables(tokens: readonly GoToken[]): { variables: readonly string[]; rest: readonly GoToken[] } {
  const assigned = tokens.findIndex((token) => token.kind === "mark" && token.mark === ":=");
  const names = tokens
    .slice(0, Math.max(assigned, 0))
    .flatMap((token) => (token.kind === "variable" ? token.name : []));
  return { variables: names, rest: tokens.slice(assigned + 1) };
}

class ExpressionParser {
  readonly #tokens: readonly GoToken[];
  #next = 0;

  constructor(tokens: readonly GoToken[]) {
    this.#tokens = tokens;
  }

  whole(): GoExpression {
    if (this.#tokens.some((token) => token.kind === "mark" && /=$/.test(token.mark))) {
      throw new Untranslated("a variable is set: write its value where it is used");
    }
    if (this.#tokens.length > maxTokens) throw new Untranslated("this expression is too long: write it simpler");
    const expression = this.#pipeline();
    if (this.#next < this.#tokens.length) throw new Untranslated("this expression is not translated: write it simpler");
    return expression;
  }

  /** The value before a `|` is the last argument of the function after it. */
  #pipeline(): GoExpression {
    let value = this.#command(undefined);
    while (this.#takeMark("|")) value = this.#command(value);
    return value;
  }

  #command(piped: GoExpression | undefined): GoExpression {
    const first = this.#tokens[this.#next];
    const args = piped === undefined ? [] : [piped];
    if (first?.kind === "word" && !Object.hasOwn(constants, first.name)) {
      this.#next++;
      return { kind: "call", name: first.name, args: [...this.#operands(), ...args] };
    }
    const [operand, ...more] = this.#operands();
    if (operand === undefined || more.length > 0 || piped !== undefined) {
      throw new Untranslated("this expression is not translated: write it simpler");
    }
    return operand;
  }

  #operands(): readonly GoExpression[] {
    const operands: GoExpression[] = [];
    for (let operand = this.#operand(); operand !== undefined; operand = this.#operand()) operands.push(operand);
    return operands;
  }

  #operand(): GoExpression | undefined {
    const token = this.#tokens[this.#next];
    if (token === undefined || (token.kind === "mark" && token.mark !== "(")) return undefined;
    this.#next++;
    switch (token.kind) {
      case "dot":
        return { kind: "path", members: [] };
      case "field":
        return { kind: "path", members: [token.name, ...this.#chained()] };
      case "variable":
        return { kind: "path", variable: token.name, members: this.#chained() };
      case "text":
      case "number":
        return { kind: "literal", value: token.value };
      case "word":
        return constantOrCall(token.name);
      case "mark":
        return this.#inParentheses();
      case "strange":
        throw new Untranslated("this literal is not translated: write it as a plain text or number");
    }
  }

  #inParentheses(): GoExpression {
    const inner = this.#pipeline();
    if (!this.#takeMark(")")) throw new Untranslated("a parenthesis is not closed");
    if (this.#chained().length > 0) throw new Untranslated("a member of a result is not translated: write it simpler");
    return inner;
  }

  #chained(): readonly string[] {
    const names: string[] = [];
    for (let token = this.#tokens[this.#next]; token?.kind === "field" && token.isChained; ) {
      names.push(token.name);
      this.#next++;
      token = this.#tokens[this.#next];
    }
    return names;
  }

  #takeMark(mark: string): boolean {
    const token = this.#tokens[this.#next];
    const isThere = token?.kind === "mark" && token.mark === mark;
    if (isThere) this.#next++;
    return isThere;
  }
}

const constants: Readonly<Record<string, boolean | null>> = { true: true, false: false, nil: null };

function constantOrCall(name: string): GoExpression {
  const value = Object.hasOwn(constants, name) ? constants[name] : undefined;
  return value === undefined ? { kind: "call", name, args: [] } : { kind: "literal", value };
}
