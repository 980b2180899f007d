/** Reads a command's options, and reports mistakes in them. */

import { statSync } from "node:fs";
import { ConfigError, type Environment } from "../options/parsing.ts";
import type { Paths } from "../options/rules.ts";
import type { Host } from "./host.ts";

export interface CommandLine<Config> {
  /** The command's name, for advice. */
  readonly name: string;
  readonly help: () => string;
  /** @throws {ConfigError} */
  readonly readConfig: (args: readonly string[], environment: Environment, paths: Paths) => Config;
}

/** The options; or the exit code, after help or mistakes were printed. */
export type ReadCommandLine<Config> =
  | { readonly kind: "options"; readonly config: Config }
  | { readonly kind: "over"; readonly exitCode: number };

export function readCommandLine<Config>(
  { name, help, readConfig }: CommandLine<Config>,
  args: readonly string[],
  host: Host,
): ReadCommandLine<Config> {
  if (args.includes("--help") || args.includes("-h")) {
    host.write(help());
    return { kind: "over", exitCode: 0 };
  }
  try {
    return { kind: "options", config: readConfig(args, host.environment, diskPaths) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) host.writeError(`${problem}\n`);
    host.writeError(`See davit ${name} --help\n`);
    return { kind: "over", exitCode: 2 };
  }
}

const diskPaths: Paths = {
  isDirectory: (path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true,
  isFile: (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true,
};
