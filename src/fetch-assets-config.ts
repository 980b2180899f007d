/** The options of `davit fetch-assets`, see `config.ts`. */

import { helpOf, type Paths } from "./config.ts";
import { fileOption } from "./option-tables.ts";
import { ConfigError, type Environment, type Option, one, readTable, readText } from "./options.ts";

const fetchAssetsOptions = {
  list: fileOption("list", "what to fetch: a YAML sequence of {url, sha256, path}"),
  assetsDir: {
    flag: "assets-dir",
    value: "DIR",
    help: "where to put it; created if it is missing",
    read: one(readText),
  } satisfies Option<string>,
};

/** The options, parsed. */
export interface FetchAssetsConfig {
  readonly list: string;
  readonly assetsDir: string;
}

/**
 * Reads them.
 * @throws {ConfigError} with every problem.
 */
export function readFetchAssetsConfig(
  args: readonly string[],
  environment: Environment,
  paths: Paths,
): FetchAssetsConfig {
  const { values, problems } = readTable(fetchAssetsOptions, args, environment);
  const { list, assetsDir } = values;
  if (list === undefined) problems.push("No list of assets: give --list FILE");
  if (assetsDir === undefined) problems.push("No assets directory: give --assets-dir DIR");
  if (list !== undefined && !paths.isFile(list)) problems.push(`No file "${list}": --list needs one that exists`);
  if (problems.length > 0 || list === undefined || assetsDir === undefined) throw new ConfigError(problems);
  return Object.freeze({ list, assetsDir });
}

/** The help text. */
export function fetchAssetsHelp(): string {
  const purpose = "Downloads assets, each checked against its SHA-256; what is there already is not fetched again.";
  return helpOf("fetch-assets --list FILE --assets-dir DIR", purpose, fetchAssetsOptions);
}
