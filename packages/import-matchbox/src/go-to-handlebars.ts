/**
 * Translates a Go template into a davit template that yields the same bytes from the same variables. Anything that
 * cannot be translated becomes a problem with its place. There the translation prints a variable that never exists, so
 * that machines get 500, unless a condition leaves that part out. Go and davit still print or test a few values
 * differently. So `uses` lists the variables, and a caller that knows their values can check them.
 */

import { unreachable } from "../../../src/lib/errors.ts";
import { comparePositions, type TextPosition, textStart } from "../../../src/render/core/text-position.ts";
import { parseTemplate } from "../../../src/render/template/template.ts";
import {
  type GoBlock,
  type GoExpression,
  type GoNode,
  type GoPath,
  type GoTemplate,
  type GoTemplateProblem,
  parseGoTemplate,
} from "./go-template.ts";
import { HandlebarsText, writeWithUrl } from "./handlebars-text.ts";

/** One use of a variable. */
export interface VariableUse {
  /** The names that lead from the outermost value to the variable. */
  readonly path: readonly string[];
  /** `printed` as text, or `tested` by a block or helper. */
  readonly by: "printed" | "tested";
  /** True if Go's `index` looks the variable up: then Go accepts an absent variable. */
  readonly mayBeAbsent: boolean;
  readonly at: TextPosition;
}

export type Translation =
  | {
      readonly kind: "translated";
      readonly text: string;
      readonly uses: readonly VariableUse[];
      /** The parts that were not translated. */
      readonly problems: readonly GoTemplateProblem[];
    }
  | { readonly kind: "untranslated"; readonly problems: readonly GoTemplateProblem[] };

export interface TranslateOptions {
  /** The matchbox's URL, without a slash at the end. The translation prints davit's own URL instead. */
  readonly replaceUrl?: string;
}

/** Translates a template's text. */
export function translateGoTemplate(source: string, { replaceUrl }: TranslateOptions = {}): Translation {
  const { template, problems: ofSyntax } = parseGoTemplate(source);
  const translator = new Translator(replaceUrl);
  translator.write(template ?? [], { isInner: false, names: [] });
  const problems = [...ofSyntax, ...translator.problems].toSorted((a, b) => comparePositions(a.at, b.at));
  if (template === undefined) return { kind: "untranslated", problems };
  const text = translator.output.toString();
  const refused = parseTemplate(text);
  if (refused !== undefined) {
    const problem = `davit refuses its translation (${refused.message}): write it in a simpler way`;
    return { kind: "untranslated", problems: [...problems, { at: textStart, text: problem }] };
  }
  return { kind: "translated", text, uses: translator.uses, problems };
}

/** What names mean at one place of a template. */
interface GoScope {
  /** True inside `range` or `with`, where a dot is not the outermost value. */
  readonly isInner: boolean;
  /** The variables that the blocks around this place set. */
  readonly names: readonly string[];
}

/** True where a name without a prefix means a variable of the outermost value. */
function isPlain({ isInner, names }: GoScope): boolean {
  return !isInner && names.length === 0;
}

/** Prints a variable that no machine has. */
function failingTag({ isInner }: GoScope): string {
  return isInner ? "@root.notImported" : "notImported";
}

const blockTags = { if: "if", range: "each", with: "with" } as const;

class Translator {
  readonly output = new HandlebarsText();
  readonly problems: GoTemplateProblem[] = [];
  readonly uses: VariableUse[] = [];
  readonly #replaceUrl: string | undefined;
  #at: TextPosition = textStart;

  constructor(replaceUrl: string | undefined) {
    this.#replaceUrl = replaceUrl;
  }

  write(template: GoTemplate, scope: GoScope): void {
    for (const node of template) this.#node(node, scope);
  }

  #node(node: GoNode, scope: GoScope): void {
    switch (node.kind) {
      case "text":
        writeWithUrl(this.output, node.text, this.#replaceUrl, isPlain(scope) ? "davit.url" : "@root.davit.url");
        break;
      case "comment":
        this.output.block(`!--${node.text.replaceAll("--", "- -")}--`);
        break;
      case "print":
        this.#at = node.at;
        this.#print(node.expression, scope);
        break;
      case "failed":
        this.output.print(failingTag(scope));
        break;
      case "block":
        this.#block(node, scope);
        break;
      default:
        unreachable(node);
    }
  }

  #print(expression: GoExpression, scope: GoScope): void {
    if (expression.kind === "literal") {
      if (expression.value === null) {
        this.#report("nil cannot be printed: remove it");
        this.output.print(failingTag(scope));
      } else this.output.text(String(expression.value));
      return;
    }
    const tag = this.#tried(() => {
      if (expression.kind === "path") this.#use(expression, scope, "printed", false);
      else if (expression.name === "index") this.#useIndexed(expression.args, scope, "printed");
      return expression.kind === "path" ? this.#path(expression, scope) : this.#call(expression, scope);
    });
    this.output.print(tag ?? failingTag(scope));
  }

  /** Returns a part of the translation; undefined if writing it found a problem. */
  #tried(write: () => string): string | undefined {
    const [problems, uses] = [this.problems.length, this.uses.length];
    const text = write();
    if (this.problems.length === problems) return text;
    this.uses.splice(uses);
    return undefined;
  }

  #block(block: GoBlock, scope: GoScope): void {
    this.#at = block.at;
    const { argument } = block;
    let names: readonly string[] = [];
    const head = this.#tried(() => {
      names = this.#blockNames(block);
      const as = names.length === 0 ? "" : ` as |${names.join(" ")}|`;
      return `${blockTags[block.name]} ${argument === undefined ? "" : this.#argument(argument, scope)}${as}`;
    });
    const isInner = scope.isInner || block.name !== "if";
    const inner = { isInner, names: [...names, ...scope.names] };
    if (head === undefined || argument === undefined) {
      this.#failedBlock(block, scope, inner);
      return;
    }
    this.output.block(block.isElseIf ? `else ${head}` : `#${head}`);
    this.write(block.body, inner);
    const [first, ...more] = block.otherwise;
    if (first?.kind === "block" && first.isElseIf && more.length === 0) this.#block(first, scope);
    else if (first !== undefined) {
      this.output.block("else");
      this.write(block.otherwise, scope);
    }
    if (!block.isElseIf) this.output.block(`/${blockTags[block.name]}`);
  }

  /** Writes a block whose head cannot be translated: what it encloses is kept, behind a tag that fails. */
  #failedBlock({ isElseIf, body, otherwise }: GoBlock, scope: GoScope, inner: GoScope): void {
    if (isElseIf) this.output.block("else");
    this.output.print(failingTag(scope));
    this.output.block("#with @root");
    this.write(body, inner);
    this.output.block("/with");
    this.write(
      otherwise.map((node) => (node.kind === "block" ? { ...node, isElseIf: false } : node)),
      scope,
    );
  }

  /** Returns the names of a block's variables for Handlebars, which has the value first. Go has the key first. */
  #blockNames({ name, variables }: GoBlock): readonly string[] {
    const most = { if: 0, range: 2, with: 1 }[name];
    if (variables.length > most) this.#report("a variable is set: write its value where it is used");
    for (const variable of variables) {
      if (!isPlainName(variable)) this.#report(`the variable "$${variable}" has a name that davit uses: rename it`);
    }
    return variables.toReversed();
  }

  /** Returns an expression as an argument of a tag. In an argument, davit treats an absent variable as false. */
  #argument(expression: GoExpression, scope: GoScope): string {
    switch (expression.kind) {
      case "literal":
        return this.#literal(expression.value);
      case "path":
        this.#use(expression, scope, "tested", false);
        return this.#path(expression, scope);
      case "call": {
        if (expression.name === "index") this.#useIndexed(expression.args, scope, "tested");
        const indexed = expression.name === "index" ? toPath(expression.args) : undefined;
        return indexed === undefined ? `(${this.#call(expression, scope)})` : this.#path(indexed, scope);
      }
      default:
        return unreachable(expression);
    }
  }

  #call({ name, args }: { readonly name: string; readonly args: readonly GoExpression[] }, scope: GoScope): string {
    if (name === "index") return this.#lookup(args, scope);
    const count = args.length;
    const [first, ...others] = args.map((arg) => this.#argument(arg, scope));
    if (name === "eq" && first !== undefined && count > 2) {
      return ["or", ...others.map((other) => `(eq ${first} ${other})`)].join(" ");
    }
    const [least, most] = Object.hasOwn(helperCounts, name) ? (helperCounts[name] ?? [1, 0]) : [1, 0];
    if (count >= least && count <= most) return [name, first, ...others].join(" ");
    this.#report(`"${name}" is not translated: ${cureOf(name)}`);
    return name;
  }

  #lookup(args: readonly GoExpression[], scope: GoScope): string {
    const key = args.at(-1);
    const value = args.length === 2 ? args[0] : ({ kind: "call", name: "index", args: args.slice(0, -1) } as const);
    if (args.length < 2 || key === undefined || value === undefined) {
      this.#report('"index" is not translated: name a value and a key');
      return "";
    }
    const base = value.kind === "path" ? this.#path(value, scope) : this.#argument(value, scope);
    return `lookup ${base} ${this.#argument(key, scope)}`;
  }

  #literal(value: string | number | boolean | null): string {
    if (typeof value !== "string") return String(value);
    if (!value.includes('"')) return `"${value}"`;
    if (!value.includes("'")) return `'${value}'`;
    this.#report("a text with both kinds of quotes is not translated: put it into the metadata");
    return '""';
  }

  #path({ variable, members }: GoPath, scope: GoScope): string {
    if (members.some((member) => /[\]\n]/.test(member) || member === "")) {
      this.#report("a key with such characters is not translated: rename it");
    }
    const segments = members.map((member) => (isPlainName(member) ? member : `[${member}]`));
    const isOfRoot = variable === "" || (variable === undefined && !scope.isInner);
    if (variable !== undefined && variable !== "" && !scope.names.includes(variable)) {
      this.#report(`the variable "$${variable}" is not set here: write its value where it is used`);
    }
    if (variable !== undefined && variable !== "") return [variable, ...segments].join(".");
    if (isOfRoot && scope.isInner) return ["@root", ...segments].join(".");
    const isSafe = isPlain(scope) && segments[0] !== undefined && !segments[0].startsWith("[");
    return isSafe ? segments.join(".") : ["this", ...segments].join(".");
  }

  #useIndexed(args: readonly GoExpression[], scope: GoScope, by: VariableUse["by"]): void {
    const path = toPath(args);
    if (path !== undefined) this.#use(path, scope, by, true);
  }

  #use({ variable, members }: GoPath, scope: GoScope, by: VariableUse["by"], mayBeAbsent: boolean): void {
    const isOfRoot = variable === "" || (variable === undefined && !scope.isInner);
    if (isOfRoot) this.uses.push({ path: members, by, mayBeAbsent, at: this.#at });
  }

  #report(text: string): void {
    this.problems.push({ at: this.#at, text });
  }
}

/** Returns the path that `index` follows; undefined unless all of its keys are literals. */
function toPath([value, ...keys]: readonly GoExpression[]): GoPath | undefined {
  if (value?.kind !== "path" || keys.length === 0) return undefined;
  const names = keys.flatMap((key) => (key.kind === "literal" && key.value !== null ? [String(key.value)] : []));
  return names.length === keys.length ? { ...value, members: [...value.members, ...names] } : undefined;
}

/** The functions of Go that davit has under the same name, with their numbers of arguments. */
const helperCounts: Readonly<Record<string, readonly [least: number, most: number]>> = {
  eq: [2, 2],
  ne: [2, 2],
  and: [1, 16],
  or: [1, 16],
  not: [1, 1],
};

const cures: Readonly<Record<string, string>> = {
  urlquery: "put the value into the metadata as it stands in a URL",
  html: "put the value into the metadata as it stands in HTML",
  js: "print the value by json",
  printf: "write text and variables side by side",
  print: "write text and variables side by side",
  println: "write text and variables side by side",
  len: 'print the "length" of a list, such as disks.length',
};

function cureOf(name: string): string {
  const known = Object.hasOwn(cures, name) ? cures[name] : undefined;
  return known ?? "put what it yields into the metadata";
}

// Words that Handlebars never reads as names.
const keywords: readonly string[] = ["this", "else", "as", "true", "false", "null", "undefined"];

function isPlainName(name: string): boolean {
  return /^[\p{L}_][\p{L}\p{Nd}_]*$/u.test(name) && !keywords.includes(name);
}
