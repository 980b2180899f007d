/** Reads a command's options, runs the command, and reports mistakes and failures. */

import { statSync } from "node:fs";
import { FileError } from "../../lib/files/watched-files.ts";
import { StartError } from "../../lib/start-error.ts";
import { type CommandHelp, ConfigError, type Environment, helpOf } from "../../options/parsing.ts";
import type { Paths } from "../../options/rules.ts";
import { WalError } from "../../store/core/log-port.ts";
import type { CliCommand, Host } from "./host.ts";

export interface CommandLine<Config> {
  /** The command's name, for messages. */
  readonly name: string;
  readonly help: CommandHelp;
  /** @throws {ConfigError} */
  readonly readConfig: (args: readonly string[], environment: Environment, paths: Paths) => Config;
}

interface WorkCommand<Config> extends CommandLine<Config>, Omit<CliCommand, "run" | "help"> {
  /** Returns the exit code. */
  readonly work: (config: Config, host: Host) => Promise<number>;
  /** The exit code if the work fails; by default 1. */
  readonly failureCode?: number;
}

/** Makes a command that does its work and then ends, unlike a serving command. */
export function workCommand<Config>({ work, failureCode = 1, ...command }: WorkCommand<Config>): CliCommand {
  const run: CliCommand["run"] = async (args, host) => {
    const read = readCommandLine(command, args, host);
    if (read.kind === "over") return read.exitCode;
    try {
      return await work(read.config, host);
    } catch (error) {
      const sentence = sentenceOf(error);
      if (sentence === undefined) throw error;
      host.writeError(`${sentence}\n`);
      return failureCode;
    }
  };
  return { ...command, run };
}

/** The parsed options, or the exit code if the command is over because it printed help or mistakes. */
type ReadCommandLine<Config> =
  | { readonly kind: "options"; readonly config: Config }
  | { readonly kind: "over"; readonly exitCode: number };

/** Reads a command's options, or prints its help or the mistakes in its options. */
export function readCommandLine<Config>(
  { name, help, readConfig }: CommandLine<Config>,
  args: readonly string[],
  host: Host,
): ReadCommandLine<Config> {
  if (args.includes("--help") || args.includes("-h")) {
    host.write(helpOf(help));
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

/** Returns the message for a person; undefined for an error that is a bug in davit. */
export function sentenceOf(error: unknown): string | undefined {
  const isOurs = error instanceof WalError || error instanceof StartError || error instanceof FileError;
  return isOurs ? error.message : undefined;
}
