/**
 * Option tables: they read a command line and make its help. A flag beats its environment variable (`DAVIT_` and the
 * flag's name in upper case), which beats the default. All problems are reported together.
 */

import { BlockList, isIP } from "node:net";
import { parseArgs } from "node:util";
import type { Address } from "../lib/address.ts";

/** Everything that can be wrong with a command line, one sentence each. */
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
  /** Placeholder of the value in help; none for a switch. */
  readonly value?: string;
  readonly repeatable?: true;
  /** The default as text; undefined leaves the option unset. */
  readonly preset?: string;
  readonly help: string;
  /** Turns all given texts (at least one) into the value, or says what they must be. */
  readonly read: (texts: readonly string[]) => Value | OptionRefusal;
}

/** Completes the sentence "Bad value "x" for --flag: …". */
class OptionRefusal {
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

/** What a table reads: options without a default are undefined when nobody gave them. */
export type Values<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends { preset: string }
    ? ValueOf<Options[Name]>
    : ValueOf<Options[Name]> | undefined;
};

/** Reads a command line and its environment; a refused value is left out, and its problem is reported. */
export function readTable<Options extends OptionTable>(
  table: Options,
  args: readonly string[],
  environment: Environment,
): { values: Values<Options>; problems: string[] } {
  const { given, problems } = readFlags(table, args);
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(table)) {
    const found = findTexts(option, given, environment);
    if (found === undefined) continue;
    const value = option.read(found.texts);
    if (value instanceof OptionRefusal)
      problems.push(`Bad value "${shown(found.texts)}" for ${found.where}: ${value.rule}`);
    else values[name] = value;
  }
  return { values: values as Values<Options>, problems };
}

/** Two lines of help for each option. */
export function tableHelp(table: OptionTable): readonly string[] {
  return Object.values(table).map((option) => {
    const left = `  --${option.flag}${option.value === undefined ? "" : ` ${option.value}`}`;
    const notes = [
      option.preset !== undefined && option.value !== undefined ? `default ${option.preset}` : "",
      option.repeatable === true ? "repeatable" : "",
    ].filter((note) => note !== "");
    return `${left}\n        ${option.help}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`;
  });
}

function readFlags(table: OptionTable, args: readonly string[]): { given: Map<string, string[]>; problems: string[] } {
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
  // The word behind an option that does not exist was meant as its value.
  const isNamed = (token: (typeof tokens)[number] | undefined) => token?.kind !== "option" || known.has(token.name);
  const meant = tokens.filter(({ kind }, at) => kind !== "positional" || isNamed(tokens[at - 1]));
  for (const token of meant) {
    if (token.kind === "positional") problems.push(`Unexpected argument "${token.value}": options begin with --`);
    if (token.kind !== "option") continue;
    const problem = flagProblem(known, token, given);
    if (problem !== undefined) problems.push(problem);
    else given.set(token.name, [...(given.get(token.name) ?? []), token.value ?? "true"]);
  }
  return { given, problems };
}

const unknown = "Unknown option";

function unknownOption(rawName: string, flags: readonly string[]): string {
  const name = rawName.replace(/^-+/, "");
  const meant = flags.find((flag) => name.length > 3 && (flag.startsWith(name) || name.startsWith(flag)));
  return `${unknown} "${rawName}": ${meant === undefined ? "see --help" : `write --${meant}`}`;
}

/** True where this option is mistyped: it only seems to be missing. */
export function isMistyped(flag: string, problems: readonly string[]): boolean {
  return problems.some((problem) => problem.startsWith(unknown) && problem.endsWith(`write --${flag}`));
}

function flagProblem(
  known: ReadonlyMap<string, Option<unknown>>,
  { name, rawName, value }: { readonly name: string; readonly rawName: string; readonly value?: string | undefined },
  given: ReadonlyMap<string, readonly string[]>,
): string | undefined {
  const option = known.get(name);
  if (option === undefined) return unknownOption(rawName, [...known.keys()]);
  if (option.value !== undefined && value === undefined) return `No value for --${option.flag}: give ${option.value}`;
  if (option.repeatable !== true && given.has(option.flag)) return `Option --${option.flag} is given twice: keep one`;
  return undefined;
}

function findTexts(
  option: Option<unknown>,
  given: ReadonlyMap<string, readonly string[]>,
  environment: Environment,
): { texts: readonly string[]; where: string } | undefined {
  const texts = given.get(option.flag);
  if (texts !== undefined) return { texts, where: `--${option.flag}` };
  const variable = `DAVIT_${option.flag.toUpperCase().replaceAll("-", "_")}`;
  const text = environment[variable];
  if (text !== undefined && text !== "")
    return { texts: option.repeatable ? text.split(",") : [text], where: variable };
  return option.preset === undefined ? undefined : { texts: [option.preset], where: "the default" };
}

/** Given texts as a message may quote them: what stands before the host of a URL may be a password. */
function shown(texts: readonly string[]): string {
  return texts.join(",").replaceAll(/\/\/[^/]*@/g, "//…@");
}

/** For an option that takes one value, which must not be empty. */
export function one<Value>(
  read: (text: string) => Value | OptionRefusal,
): (texts: readonly string[]) => Value | OptionRefusal {
  return ([text = ""]) => (text === "" ? new OptionRefusal("must not be empty") : read(text));
}

/** For an option that takes any number of values; empty ones count as none. */
export function each<Value>(
  read: (text: string) => Value | OptionRefusal,
): (texts: readonly string[]) => readonly Value[] | OptionRefusal {
  return (texts) => {
    const values: Value[] = [];
    for (const text of texts.filter((given) => given !== "")) {
      const value = read(text);
      if (value instanceof OptionRefusal) return value;
      values.push(value);
    }
    return values;
  };
}

export function readText(text: string): string {
  return text;
}

/** A name as Kubernetes gives to namespaces: RFC 1123, 2.1, in lower case. */
export function readNamespace(text: string): string | OptionRefusal {
  const rule = "must be a namespace: 1 to 63 lower-case letters, digits and hyphens";
  return /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text) ? text : new OptionRefusal(rule);
}

/** A name as Kubernetes gives to most objects: RFC 1123, 2.1, in lower case, with dots. */
export function readObjectName(text: string): string | OptionRefusal {
  const rule = "must be the name of an object: lower-case letters, digits, hyphens and dots, 253 at most";
  return /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text) ? text : new OptionRefusal(rule);
}

/** A label, as `NAME=VALUE`; the value may be empty. */
export function readLabel(text: string): readonly [name: string, value: string] | OptionRefusal {
  const equals = text.indexOf("=");
  return equals > 0 ? [text.slice(0, equals), text.slice(equals + 1)] : new OptionRefusal("must be NAME=VALUE");
}

/** A ServiceAccount, as `NAMESPACE/NAME`. */
export function readServiceAccount(text: string): string | OptionRefusal {
  const [namespace = "", name = "", ...rest] = text.split("/");
  const isNamed = [readNamespace(namespace), readObjectName(name)].every((part) => typeof part === "string");
  return isNamed && rest.length === 0 ? text : new OptionRefusal("must be NAMESPACE/NAME of a ServiceAccount");
}

/** Networks of addresses. A list of them is one value. */
export function readNetworks(texts: readonly string[]): BlockList | OptionRefusal {
  const list = new BlockList();
  for (const text of texts) {
    const [address = "", prefix = "", ...rest] = text.split("/");
    const bits = isIP(address) === 6 ? 128 : 32;
    const isNetwork = isIP(address) !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits && rest.length === 0;
    if (!isNetwork) return new OptionRefusal("must be a network, such as 192.0.2.0/24 or 2001:db8::/32");
    list.addSubnet(address, Number(prefix), bits === 128 ? "ipv6" : "ipv4");
  }
  return list;
}

/** A DNS name or an IP address, without a port. */
export function readHost(text: string): string | OptionRefusal {
  const isName =
    /^(?=.{1,253}$)[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$/.test(text);
  return isName || isIP(text) !== 0 ? text : new OptionRefusal("must be a DNS name or an IP address, without a port");
}

/** @param others further choices of the option, which are read elsewhere; help and problems name them, too. */
export function readChoice<Choice extends string>(
  choices: readonly Choice[],
  others: readonly string[] = [],
): (text: string) => Choice | OptionRefusal {
  const rule = `must be one of ${[...choices, ...others].join(", ")}`;
  return (text) => choices.find((choice) => choice === text) ?? new OptionRefusal(rule);
}

export function readSwitch(text: string): boolean | OptionRefusal {
  return text === "true" || (text === "false" ? false : new OptionRefusal("must be true or false"));
}

export function readBytes(text: string): number | OptionRefusal {
  const bytes = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  return bytes > 0 ? bytes : new OptionRefusal("must be a positive number of bytes");
}

/** As `readBytes`, with 0 for none. */
export function readBytesOrNone(text: string): number | OptionRefusal {
  return /^\d{1,11}$/.test(text) ? Number(text) : new OptionRefusal("must be a number of bytes; 0 is none");
}

export function readCount(text: string): number | OptionRefusal {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  return count > 0 ? count : new OptionRefusal("must be a positive number");
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** @returns milliseconds. */
export function readDuration(text: string): number | OptionRefusal {
  const [, amount, unit] = /^(\d{1,6})(ms|s|m|h)$/.exec(text) ?? [];
  const factor = unitMs[unit ?? ""];
  return factor === undefined
    ? new OptionRefusal("must be a whole number with ms, s, m or h, such as 10s")
    : Number(amount) * factor;
}

/** @returns milliseconds, a second or more. */
export function readWait(text: string): number | OptionRefusal {
  const durationMs = readDuration(text);
  return typeof durationMs === "number" && durationMs < 1_000 ? new OptionRefusal("must be 1s or longer") : durationMs;
}

/** @returns milliseconds, a second or more; 0 for no limit. */
export function readLimit(text: string): number | OptionRefusal {
  return readWaitOrNone(text, "for no limit");
}

/** @returns milliseconds, a second or more; 0 for never. */
export function readInterval(text: string): number | OptionRefusal {
  return readWaitOrNone(text, "for never");
}

function readWaitOrNone(text: string, meaning: string): number | OptionRefusal {
  const durationMs = readDuration(text);
  const isTooShort = typeof durationMs === "number" && durationMs > 0 && durationMs < 1_000;
  return isTooShort ? new OptionRefusal(`must be 1s or longer, or 0s ${meaning}`) : durationMs;
}

export function readAddress(text: string): Address | OptionRefusal {
  const [, bracketed, plain, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s/]*)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || host === "" || Number(port) > 65_535) {
    return new OptionRefusal("must be HOST:PORT, such as 127.0.0.1:8080 or [::]:8080");
  }
  return { host, port: Number(port) };
}

/** A server's URL: a scheme, a host, perhaps a port, and nothing else, least of all a password. */
export function readServerUrl(text: string): URL | OptionRefusal {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isServer =
    (url?.protocol === "http:" || url?.protocol === "https:") && `${url.pathname}${url.search}${url.hash}` === "/";
  return url !== undefined && isServer && `${url.username}${url.password}` === ""
    ? url
    : new OptionRefusal("must be http://HOST:PORT or https://HOST:PORT, without path or password");
}
