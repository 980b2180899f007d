/**
 * The option table: from it come parsing, `--help` and docs/operations.md. A flag beats its environment variable
 * (`DAVIT_` and the flag's name in upper case), which beats the default. Every problem is found before any is told.
 */

import { parseArgs } from "node:util";
import { type LogLevel, logLevels } from "./lib/log.ts";

/** A host and a port to listen on or to be reached at. */
export interface Address {
  /** Name or IP literal, IPv6 without brackets. */
  readonly host: string;
  /** 0 to 65535; 0 lets the system choose. */
  readonly port: number;
}

/** Everything that can be wrong with a command line, one sentence each. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

interface Option<Value> {
  readonly flag: string;
  /** Placeholder of the value in help; none for a switch. */
  readonly value?: string;
  readonly repeatable?: true;
  /** The default as text; undefined leaves the option unset. */
  readonly preset?: string;
  readonly help: string;
  /** Turns all given texts (at least one) into the value, or says what they must be. */
  readonly read: (texts: readonly string[]) => Value | Refusal;
}

/** Completes the sentence "Bad value "x" for --flag: …". */
class Refusal {
  readonly rule: string;
  constructor(rule: string) {
    this.rule = rule;
  }
}

const serveOptions = {
  manifests: {
    flag: "manifests",
    value: "DIR",
    repeatable: true,
    help: "read Profile, Group, ConfigMap and Secret YAML from this directory, and follow changes",
    read: (texts) => texts.filter((text) => text !== ""),
  } satisfies Option<readonly string[]>,
  sourceGraceMs: {
    flag: "source-grace",
    value: "DURATION",
    preset: "10s",
    help: "after a restart, wait this long for the source's first list before serving the copy on disk",
    read: one(readDuration),
  } satisfies Option<number>,
  dataDir: {
    flag: "data-dir",
    value: "DIR",
    preset: "./data",
    help: "write-ahead log of the store; created with mode 0700",
    read: one((text) => text),
  } satisfies Option<string>,
  bootAddress: {
    flag: "boot-address",
    value: "HOST:PORT",
    preset: "[::]:8080",
    help: "where machines ask; open to everyone, and nothing on it changes state",
    read: one(readAddress),
  } satisfies Option<Address>,
  storeAddress: {
    flag: "store-address",
    value: "HOST:PORT",
    preset: "127.0.0.1:2379",
    help: "the key API; off loopback it needs --store-insecure",
    read: one(readAddress),
  } satisfies Option<Address>,
  storeInsecure: {
    flag: "store-insecure",
    preset: "false",
    help: "let anyone who reaches --store-address read and write keys",
    read: one(readSwitch),
  } satisfies Option<boolean>,
  storeMaxValueBytes: {
    flag: "store-max-value-bytes",
    value: "BYTES",
    preset: "1048576",
    help: "longest value that a client may write",
    read: one(readBytes),
  } satisfies Option<number>,
  opsAddress: {
    flag: "ops-address",
    value: "HOST:PORT",
    preset: "127.0.0.1:8081",
    help: "/livez /readyz /metrics /version",
    read: one(readAddress),
  } satisfies Option<Address>,
  advertiseAddress: {
    flag: "advertise-address",
    value: "HOST:PORT",
    help:
      "what machines reach the boot service by, as in {{davit.url}}; " +
      "default: the boot address, or the first global address where that is a wildcard",
    read: one(readAddress),
  } satisfies Option<Address>,
  assetsDir: {
    flag: "assets-dir",
    value: "DIR",
    help: "kernels and initrds, served below /assets/; default: none, and /assets/ is 404",
    read: one((text) => text),
  } satisfies Option<string>,
  grubSeparator: {
    flag: "grub-separator",
    value: "auto|semicolon|comma",
    preset: "auto",
    help: "between host and port in GRUB locations",
    read: one(readChoice(["auto", "semicolon", "comma"])),
  } satisfies Option<"auto" | "semicolon" | "comma">,
  grubCommands: {
    flag: "grub-commands",
    value: "auto|efi|plain",
    preset: "auto",
    help: "linuxefi and initrdefi, or linux and initrd",
    read: one(readChoice(["auto", "efi", "plain"])),
  } satisfies Option<"auto" | "efi" | "plain">,
  logLevel: {
    flag: "log-level",
    value: logLevels.join("|"),
    preset: "info",
    help: "this level and everything above it is logged",
    read: one(readChoice(logLevels)),
  } satisfies Option<LogLevel>,
  logFormat: {
    flag: "log-format",
    value: "json|pretty",
    help: "default: pretty on a terminal, else json",
    read: one(readChoice(["json", "pretty"])),
  } satisfies Option<"json" | "pretty">,
};

type Table = Readonly<Record<string, Option<unknown>>>;
type ValueOf<Entry> = Entry extends { read: (texts: readonly string[]) => infer Value }
  ? Exclude<Value, Refusal>
  : never;
type Values<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends { preset: string }
    ? ValueOf<Options[Name]>
    : ValueOf<Options[Name]> | undefined;
};

/** The options of `davit serve`, parsed; options without a default are undefined when nobody gave them. */
export type ServeConfig = Values<typeof serveOptions> & { readonly manifests: readonly string[] };

/**
 * Reads the options of `davit serve`.
 * @param isDirectory tells whether a directory is there, so that a wrong one is named with every other problem.
 * @throws {ConfigError} with every problem.
 */
export function readServeConfig(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  isDirectory: (path: string) => boolean,
): ServeConfig {
  const { values, problems } = readTable(serveOptions, args, environment);
  const config: ServeConfig = { ...values, manifests: values.manifests ?? [] };
  problems.push(...directoryProblems(config, isDirectory), ...storeDoorProblems(config));
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);
}

/** The help text of `davit serve`. */
export function serveHelp(): string {
  const rows = Object.values<Option<unknown>>(serveOptions).map((option) => {
    const left = `  --${option.flag}${option.value === undefined ? "" : ` ${option.value}`}`;
    const notes = [
      option.preset !== undefined && option.value !== undefined ? `default ${option.preset}` : "",
      option.repeatable === true ? "repeatable" : "",
    ].filter((note) => note !== "");
    return `${left}\n        ${option.help}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`;
  });
  return [
    "Usage: davit serve --manifests DIR [options]",
    "",
    "Serves boot configs to machines from Profiles and Groups. Every option can also be given as an environment",
    "variable: DAVIT_BOOT_ADDRESS for --boot-address; lists are separated by commas there. A flag wins.",
    "",
    ...rows,
    "",
  ].join("\n");
}

/** `HOST:PORT` as it stands in a URL. */
export function authority(address: Address): string {
  return `${address.host.includes(":") ? `[${address.host}]` : address.host}:${address.port}`;
}

/** True for an address that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** True for an address that stands for every address of this machine. */
export function isWildcard(host: string): boolean {
  return host === "::" || host === "0.0.0.0";
}

function readTable<Options extends Table>(
  table: Options,
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): { values: Values<Options>; problems: string[] } {
  const { given, problems } = readFlags(table, args);
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(table)) {
    const found = findTexts(option, given, environment);
    if (found === undefined) continue;
    const value = option.read(found.texts);
    if (value instanceof Refusal)
      problems.push(`Bad value "${found.texts.join(",")}" for ${found.where}: ${value.rule}`);
    else values[name] = value;
  }
  return { values: values as Values<Options>, problems };
}

function readFlags(table: Table, args: readonly string[]): { given: Map<string, string[]>; problems: string[] } {
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
  for (const token of tokens) {
    if (token.kind === "positional") problems.push(`Unexpected argument "${token.value}": options begin with --`);
    if (token.kind !== "option") continue;
    const option = known.get(token.name);
    const problem = flagProblem(option, token.rawName, token.value, given);
    if (problem !== undefined) problems.push(problem);
    else given.set(token.name, [...(given.get(token.name) ?? []), token.value ?? "true"]);
  }
  return { given, problems };
}

function flagProblem(
  option: Option<unknown> | undefined,
  rawName: string,
  value: string | undefined,
  given: ReadonlyMap<string, readonly string[]>,
): string | undefined {
  if (option === undefined) return `Unknown option "${rawName}": see --help`;
  if (option.value !== undefined && value === undefined) return `No value for --${option.flag}: give ${option.value}`;
  if (option.repeatable !== true && given.has(option.flag)) return `Option --${option.flag} is given twice: keep one`;
  return undefined;
}

function findTexts(
  option: Option<unknown>,
  given: ReadonlyMap<string, readonly string[]>,
  environment: Readonly<Record<string, string | undefined>>,
): { texts: readonly string[]; where: string } | undefined {
  const texts = given.get(option.flag);
  if (texts !== undefined) return { texts, where: `--${option.flag}` };
  const variable = `DAVIT_${option.flag.toUpperCase().replaceAll("-", "_")}`;
  const text = environment[variable];
  if (text !== undefined && text !== "")
    return { texts: option.repeatable ? text.split(",") : [text], where: variable };
  return option.preset === undefined ? undefined : { texts: [option.preset], where: "the default" };
}

function directoryProblems(config: ServeConfig, isDirectory: (path: string) => boolean): string[] {
  const problems = config.manifests
    .filter((path) => !isDirectory(path))
    .map((path) => `No directory "${path}": --manifests needs one that exists`);
  if (config.manifests.length === 0) problems.push("No source of objects: give --manifests DIR");
  if (config.assetsDir !== undefined && !isDirectory(config.assetsDir)) {
    problems.push(`No directory "${config.assetsDir}": --assets-dir needs one that exists`);
  }
  return problems;
}

function storeDoorProblems({ storeAddress, storeInsecure }: ServeConfig): string[] {
  if (storeAddress === undefined || isLoopback(storeAddress.host) || storeInsecure === true) return [];
  const cure = "anyone could write keys, so keep --store-address on loopback or say --store-insecure";
  return [`Refusing to listen on "${authority(storeAddress)}": ${cure}`];
}

function one<Value>(read: (text: string) => Value | Refusal): (texts: readonly string[]) => Value | Refusal {
  return ([text = ""]) => (text === "" ? new Refusal("must not be empty") : read(text));
}

function readChoice<Choice extends string>(choices: readonly Choice[]): (text: string) => Choice | Refusal {
  return (text) => choices.find((choice) => choice === text) ?? new Refusal(`must be one of ${choices.join(", ")}`);
}

function readSwitch(text: string): boolean | Refusal {
  return text === "true" || (text === "false" ? false : new Refusal("must be true or false"));
}

function readBytes(text: string): number | Refusal {
  const bytes = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  return bytes > 0 ? bytes : new Refusal("must be a positive number of bytes");
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

function readDuration(text: string): number | Refusal {
  const [, amount, unit] = /^(\d{1,6})(ms|s|m|h)$/.exec(text) ?? [];
  const factor = unitMs[unit ?? ""];
  return factor === undefined
    ? new Refusal("must be a whole number with ms, s, m or h, such as 10s")
    : Number(amount) * factor;
}

function readAddress(text: string): Address | Refusal {
  const [, bracketed, plain, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s/]*)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || host === "" || Number(port) > 65_535) {
    return new Refusal("must be HOST:PORT, such as 127.0.0.1:8080 or [::]:8080");
  }
  return { host, port: Number(port) };
}
