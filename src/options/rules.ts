/** Checks the values of an option table: required options, paths that must exist, and options that need each other. */

import {
  ConfigError,
  type Environment,
  type Need,
  type Option,
  type OptionTable,
  type ReadOptions,
  readTable,
} from "./parsing.ts";

/** Looks up paths, so that a wrong path is reported together with all other problems. */
export interface Paths {
  isDirectory(path: string): boolean;
  isFile(path: string): boolean;
}

/** Reads a command line and its environment, and checks the values by all rules of the table. */
export function readOptions<Options extends OptionTable>(
  table: Options,
  args: readonly string[],
  environment: Environment,
  paths: Paths,
): ReadOptions<Options> {
  const read = readTable(table, args, environment);
  read.problems.push(...ruleProblems(table, read, paths));
  return read;
}

/** Returns a command's config if there are no problems. @throws {ConfigError} with every problem. */
export function configWithout<Config extends object>(problems: readonly string[], config: Config): Readonly<Config> {
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(config);
}

/** Returns the values' problems that `readTable` did not report, in the order of the table. */
export function ruleProblems(
  table: OptionTable,
  { values, faulty }: { readonly values: Readonly<Record<string, unknown>>; readonly faulty: ReadonlySet<string> },
  paths: Paths,
): readonly string[] {
  return Object.entries(table).flatMap(([name, option]) => {
    const { flag, required, needs = [], excludes } = option;
    if (!isGiven(values[name])) return required === undefined || faulty.has(flag) ? [] : [required];
    const lacks = needs.flatMap((need) => {
      const needed = table[need.name];
      const isAbsent = needed !== undefined && !isGiven(values[need.name]) && !faulty.has(needed.flag);
      return isAbsent ? [lackOf(flag, need, needed)] : [];
    });
    const excluded = excludes !== undefined && isGiven(values[excludes.name]) ? table[excludes.name] : undefined;
    const excess = excluded && [`${excludes?.excess}: give --${flag} or --${excluded.flag}, not both`];
    return [...pathProblems(option, [values[name]].flat(), paths), ...lacks, ...(excess ?? [])];
  });
}

function lackOf(flag: string, { lack, example }: Need, needed: Option<unknown>): string {
  if (lack === undefined) return `Missing --${needed.flag}: --${flag} is of no use without it`;
  const value = needed.value === undefined ? "" : ` ${needed.value}`;
  return `${lack} for --${flag}: give --${needed.flag}${value}${example === undefined ? "" : `, such as ${example}`}`;
}

/** True unless a value is what an option has that is not given: nothing, an empty list, `false` or 0. */
export function isGiven(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false && value !== 0;
}

function pathProblems({ flag, mustExist }: Option<unknown>, values: readonly unknown[], paths: Paths): string[] {
  if (mustExist === undefined) return [];
  const { kind, stdin } = mustExist;
  const exists = kind === "file" ? paths.isFile : paths.isDirectory;
  const missing = values.map(String).filter((path) => path !== stdin && !exists(path));
  return missing.map((path) => `No ${kind} "${path}": --${flag} needs one that exists`);
}
