/** The options of `davit import`, see `config.ts`. */

import { helpOf, type Paths } from "./config.ts";
import {
  ConfigError,
  type Environment,
  type Option,
  one,
  readServerUrl,
  readSwitch,
  readTable,
  readText,
} from "./options.ts";

const importOptions = {
  out: {
    flag: "out",
    value: "DIR",
    help: "where to put the manifests; created if it is missing",
    read: one(readText),
  } satisfies Option<string>,
  matchboxUrl: {
    flag: "matchbox-url",
    value: "URL",
    help: "the matchbox's own URL, such as http://matchbox.example:8080: davit's replaces it",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  force: {
    flag: "force",
    preset: "false",
    help: "replace files of an earlier import",
    read: one(readSwitch),
  } satisfies Option<boolean>,
};

/** The options, parsed. */
export interface ImportConfig {
  /** The matchbox data directory. */
  readonly from: string;
  readonly out: string;
  /** Without a slash at the end. */
  readonly matchboxUrl: string | undefined;
  readonly force: boolean;
}

/**
 * Reads them: the words `matchbox DIR` first.
 * @throws {ConfigError} with every problem.
 */
export function readImportConfig(args: readonly string[], environment: Environment, paths: Paths): ImportConfig {
  const words = args.slice(0, firstOption(args));
  const [kind, from, ...more] = words;
  const { values, problems } = readTable(importOptions, args.slice(words.length), environment);
  const { out, matchboxUrl, force } = values;
  if (kind !== "matchbox" || from === undefined || more.length > 0) {
    problems.push("Nothing to import: give matchbox DIR first, then options");
  } else if (!paths.isDirectory(from)) problems.push(`No directory "${from}": give the data directory of a matchbox`);
  if (out === undefined) problems.push("No place for the manifests: give --out DIR");
  if (problems.length > 0 || from === undefined || out === undefined) throw new ConfigError(problems);
  return Object.freeze({ from, out, matchboxUrl: matchboxUrl?.origin, force });
}

function firstOption(args: readonly string[]): number {
  const at = args.findIndex((arg) => arg.startsWith("-"));
  return at < 0 ? args.length : at;
}

/** The help text. */
export function importHelp(): string {
  const purpose = "Makes Profiles and Groups of a matchbox data directory, and tells what they lack.";
  return helpOf("import matchbox DIR --out DIR", purpose, importOptions);
}
