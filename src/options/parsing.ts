/**
 * Reads a command line by a table of options, and makes the help from the same table. A flag overrides its environment
 * variable (`DAVIT_` and the flag's name in upper case). The variable overrides the default. All problems are reported
 * together.
 */

import { parseArgs } from "node:util";
import { nearestWord } from "../lib/text/nearest-word.ts";
import { formerNames } from "./former-names.ts";

/** The mistakes in a command line, one sentence each. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

export interface Option<Value> {
  readonly flag: string;
  /** The heading above the option in help and in docs/reference/options.md. */
  readonly heading?: string | undefined;
  /** Placeholder of the value in help; none for a switch. */
  readonly value?: string;
  readonly repeatable?: true;
  /** The default as text; undefined for an option without a default. */
  readonly preset?: string;
  /** The message if the option is not given; undefined for an option that can be left out. */
  readonly required?: string;
  /** Each path in the value must exist and be of this kind. The text in `stdin` means standard input and is no path. */
  readonly mustExist?: { readonly kind: "file" | "directory"; readonly stdin?: string };
  /** Further options that must be given, because this option is useless without them. */
  readonly needs?: readonly Need[];
  /** An option that must not be given with this one. `excess` describes both in the message, such as `Two queries`. */
  readonly excludes?: { readonly name: string; readonly excess: string };
  /** The names that an option with values NAME=VALUE has; help and docs have a row for each. */
  readonly names?: OptionTable;
  readonly help: string;
  /** Converts the given strings to the value, or returns the expected form. A repeatable option may get no strings. */
  readonly read: (texts: readonly string[]) => Value | OptionRefusal;
}

export interface Need {
  /** The name of an option in the same table. */
  readonly name: string;
  /** What is missing without the option, such as `No cluster`. */
  readonly lack?: string;
  readonly example?: string;
}

/** The refusal of a value. Its rule completes the sentence `Bad value "x" for --flag: …`. */
export class OptionRefusal {
  readonly rule: string;
  constructor(rule: string) {
    this.rule = rule;
  }
}

export type OptionTable = Readonly<Record<string, Option<unknown>>>;
export type Environment = Readonly<Record<string, string | undefined>>;

type ValueOf<Entry> = Entry extends { read: (texts: readonly string[]) => infer Value }
  ? Exclude<Value, OptionRefusal>
  : never;

/**
 * The values of a table's options. An option that is not given has its default. Without a default it is undefined, or
 * an empty list if it is repeatable.
 */
export type Values<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends
    | { preset: string }
    | { required: string }
    | { repeatable: true }
    ? ValueOf<Options[Name]>
    : ValueOf<Options[Name]> | undefined;
};

export interface ReadOptions<Options> {
  readonly values: Values<Options>;
  readonly problems: string[];
  /** Flags with a bad value or a misspelt name. A check must not report such an option as missing, too. */
  readonly faulty: ReadonlySet<string>;
}

/**
 * Reads a command line and its environment. It leaves out bad values and reports them as problems.
 * @param takesName true if the command takes a name before its options.
 */
export function readTable<Options extends OptionTable>(
  table: Options,
  args: readonly string[],
  environment: Environment,
  takesName = false,
): ReadOptions<Options> {
  const { given, problems, faulty } = readFlags(table, args, takesName);
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(table)) {
    const found = findTexts(option, given, environment);
    if (found === undefined) continue;
    const value = option.read(found.texts);
    if (value instanceof OptionRefusal) {
      problems.push(`Bad value "${shown(found.texts)}" for ${found.where}: ${value.rule}`);
      faulty.add(option.flag);
    }
    values[name] = value instanceof OptionRefusal ? option.repeatable && option.read([]) : value;
  }
  problems.push(...formerVariables(table, environment));
  return { values: values as Values<Options>, problems, faulty };
}

const ofVariables = [
  "Every option can also be set by an environment variable, such as DAVIT_BOOT_ADDRESS for --boot-address.",
  "In a variable, commas separate the values of a list. A flag overrides the variable.",
];

/** What a command says of itself. Its help, the completion in shells and the manual page are made of it. */
export interface CommandHelp {
  /** The command, and the options that it needs: `restore --input FILE --data-dir DIR`. */
  readonly usage: string;
  readonly purpose: string;
  readonly options: OptionTable;
  /** Which variables set options; by default, all do. */
  readonly notes?: readonly string[];
}

/** Returns the help text of a command, with two lines for each option. */
export function helpOf({ usage, purpose, options, notes = ofVariables }: CommandHelp): string {
  const lines = byHeading(rowsOf(options)).flatMap(([heading, part]) => [
    "",
    ...(heading === "" ? [] : [`${heading}:`]),
    ...part.map((option) => {
      const value = option.value === undefined ? "" : ` ${option.value}`;
      return `  --${option.flag}${value}\n        ${optionText(option)}`;
    }),
  ]);
  return [`Usage: davit ${usage} [options]`, "", purpose, ...notes, ...lines, ""].join("\n");
}

/** Returns the options as help and docs show them: instead of an option that has names, each of its names. */
export function rowsOf(options: OptionTable): readonly Option<unknown>[] {
  return Object.values(options).flatMap((option) =>
    option.names === undefined ? [option] : Object.values(option.names).map((named) => namedRow(option, named)),
  );
}

function namedRow({ flag, heading }: Option<unknown>, named: Option<unknown>): Option<unknown> {
  return { ...named, flag, heading, value: `${named.flag}=${named.value}` };
}

/**
 * Returns the options of each heading, in the order in which a table first has the headings. A table that has an option
 * without a heading has no headings.
 */
export function byHeading<Entry extends Pick<Option<unknown>, "heading">>(
  options: readonly Entry[],
): readonly (readonly [heading: string, options: readonly Entry[]])[] {
  const hasHeadings = options.every(({ heading }) => heading !== undefined);
  return [...Map.groupBy(options, ({ heading = "" }) => (hasHeadings ? heading : ""))];
}

/** Returns what an option is for, with its default. */
export function optionText({ help, value, preset, repeatable }: Option<unknown>): string {
  const notes = [
    ...(preset !== undefined && value !== undefined ? [`default ${preset}`] : []),
    ...(repeatable === true ? ["repeatable"] : []),
  ];
  return notes.length === 0 ? help : `${help} (${notes.join(", ")})`;
}

function readFlags(table: OptionTable, args: readonly string[], takesName: boolean) {
  const cure = takesName ? "give it before the options" : "options begin with --";
  const options = Object.values(table);
  const known = new Map(options.map((option) => [option.flag, option]));
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    tokens: true,
    options: Object.fromEntries(options.map((o) => [o.flag, { type: o.value === undefined ? "boolean" : "string" }])),
  });
  const given = new Map<string, string[]>();
  const problems: string[] = [];
  const faulty = new Set<string>();
  // The word after an unknown option is probably the option's value, and no second problem.
  const isNamed = (token: (typeof tokens)[number] | undefined) => token?.kind !== "option" || known.has(token.name);
  const found = tokens.filter(({ kind }, at) => kind !== "positional" || isNamed(tokens[at - 1]));
  for (const token of found) {
    if (token.kind === "positional") problems.push(`Unexpected argument "${token.value}": ${cure}`);
    if (token.kind !== "option") continue;
    const meant = meantOption(token, options);
    const problem = flagProblem(known.get(token.name), token, given, meant);
    if (problem === undefined) given.set(token.name, [...(given.get(token.name) ?? []), token.value ?? "true"]);
    else {
      problems.push(problem);
      faulty.add(meant?.flag ?? "");
    }
  }
  return { given, problems, faulty };
}

/** Returns the option of a token; for an unknown name, the option that was probably meant. */
function meantOption(
  { name, rawName }: { readonly name: string; readonly rawName: string },
  options: readonly Option<unknown>[],
): Meant | undefined {
  const flags = options.map(({ flag }) => flag);
  if (flags.includes(name)) return { flag: name };
  const flag = nearestWord(rawName.replace(/^-+/, ""), flags);
  return replacementOf(name, options) ?? (flag === undefined ? undefined : { flag });
}

function flagProblem(
  option: Option<unknown> | undefined,
  { rawName, value }: { readonly rawName: string; readonly value?: string | undefined },
  given: ReadonlyMap<string, readonly string[]>,
  meant: Meant | undefined,
): string | undefined {
  if (option === undefined) {
    const kind = meant?.isFormer ? "Former" : "Unknown";
    const cure = meant && `write --${meant.flag}${meant.value === undefined ? "" : ` ${meant.value}`}`;
    return `${kind} option "${rawName}": ${cure ?? "see --help"}`;
  }
  if (option.value !== undefined && value === undefined) return `No value for --${option.flag}: give ${option.value}`;
  if (option.repeatable !== true && given.has(option.flag)) return `Option --${option.flag} is given twice: keep one`;
  return undefined;
}

/** Returns the environment variable of an option. */
export function variableOf(flag: string): string {
  return `DAVIT_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/** The option that a person should write. */
interface Meant {
  readonly flag: string;
  readonly value?: string | undefined;
  readonly isFormer?: true;
}

/** Returns what replaces an option that a command had before; undefined for a name that it never had. */
function replacementOf(name: string, options: readonly Option<unknown>[]): Meant | undefined {
  // Each limit was an option of its own.
  for (const { flag, names = {} } of options) {
    const limit = Object.values(names).find((named) => named.flag === name);
    if (limit !== undefined) return { flag, value: `${name}=${limit.value}`, isFormer: true };
  }
  const former = Object.hasOwn(formerNames, name) ? formerNames[name] : undefined;
  const isOurs = former !== undefined && options.some(({ flag }) => flag === (former.of ?? former.now));
  return isOurs ? { flag: former.now, value: former.value, isFormer: true } : undefined;
}

/** Refuses variables of options that the command had before. */
function formerVariables(table: OptionTable, environment: Environment): readonly string[] {
  const options = Object.values(table);
  const names = [
    ...Object.keys(formerNames),
    ...options.flatMap(({ names = {} }) => Object.values(names).map(({ flag }) => flag)),
  ];
  return names.flatMap((name) => {
    const isGiven = (environment[variableOf(name)] ?? "") !== "";
    const now = isGiven ? replacementOf(name, options) : undefined;
    if (now === undefined) return [];
    const value = now.value === undefined ? "" : `=${now.value}`;
    return [`Former variable ${variableOf(name)}: write ${variableOf(now.flag)}${value}`];
  });
}

function findTexts(
  option: Option<unknown>,
  given: ReadonlyMap<string, readonly string[]>,
  environment: Environment,
): { texts: readonly string[]; where: string } | undefined {
  const texts = given.get(option.flag);
  if (texts !== undefined) return { texts, where: `--${option.flag}` };
  const variable = variableOf(option.flag);
  const text = environment[variable];
  if (text !== undefined && text !== "")
    return { texts: option.repeatable ? text.split(",") : [text], where: variable };
  if (option.preset !== undefined) return { texts: [option.preset], where: "the default" };
  return option.repeatable ? { texts: [], where: "the default" } : undefined;
}

/** Returns the given strings for a message. It hides the part before a URL's host, which may be a password. */
function shown(texts: readonly string[]): string {
  return texts.join(",").replaceAll(/\/\/[^/]*@/g, "//…@");
}
