/** `davit import`: its options. The import itself is the package packages/import-matchbox. */

import { type ImportConfig, importDirectory } from "../../../packages/import-matchbox/src/import-matchbox.ts";
import { ConfigError, type Environment, type Option } from "../../options/parsing.ts";
import { newDirectoryOption, one, readServerUrl, switchOption } from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { workCommand } from "../core/command-line.ts";

const importOptions = {
  out: {
    ...newDirectoryOption("out", "where to put the manifests; created if it is missing"),
    required: "No place for the manifests: give --out DIR",
  },
  matchboxUrl: {
    flag: "matchbox-url",
    value: "URL",
    help: "the matchbox's own URL, such as http://matchbox.example:8080: davit's replaces it",
    read: one(readServerUrl),
  } satisfies Option<URL>,
  force: switchOption("force", "replace files of an earlier import"),
};

/** Converts the data directory of matchbox, another netboot service, to manifests. */
export const importCommand = workCommand({
  name: "import",
  help: {
    usage: "import matchbox DIR --out DIR",
    purpose: "Makes Profiles and Groups of a matchbox data directory, and reports what they lack.",
    options: importOptions,
  },
  readConfig: readImportConfig,
  work: importDirectory,
});

/**
 * Reads the options and the words `matchbox DIR` before them.
 * @throws {ConfigError} with every problem.
 */
function readImportConfig(args: readonly string[], environment: Environment, paths: Paths): ImportConfig {
  const words = args.slice(0, firstOption(args));
  const [kind, from, ...more] = words;
  const { values, problems } = readOptions(importOptions, args.slice(words.length), environment, paths);
  if (kind !== "matchbox" || from === undefined || more.length > 0) {
    problems.push("Nothing to import: give matchbox DIR first, then options");
  } else if (!paths.isDirectory(from)) problems.push(`No directory "${from}": give the data directory of a matchbox`);
  if (from === undefined) throw new ConfigError(problems);
  return configWithout(problems, { ...values, from, matchboxUrl: values.matchboxUrl?.origin });
}

function firstOption(args: readonly string[]): number {
  const at = args.findIndex((arg) => arg.startsWith("-"));
  return at < 0 ? args.length : at;
}
