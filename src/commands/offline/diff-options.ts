/** The options of `davit diff`. */

import type { Environment, Option, Values } from "../../options/parsing.ts";
import { one, readChoice, readText, switchOption } from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { offlineOptions } from "../core/offline-options.ts";
import { machineHelp, operationsOptions, tokenProblems, variablesOf } from "../machine/options.ts";

const formats = ["text", "json", "markdown"] as const;

const diffOptions = {
  ...offlineOptions,
  from: {
    flag: "from",
    value: "PATH",
    help: "compare with this directory of manifests, or with this file of davit backup; default: a running davit",
    read: one(readText),
  } satisfies Option<string>,
  ...operationsOptions,
  partial: switchOption(
    "partial",
    "objects that the manifests do not define stay, as with kubectl apply; default: they are removed",
  ),
  output: {
    flag: "output",
    value: formats.join("|"),
    preset: "text",
    help: "how to print the differences; markdown: a summary for a pull request",
    read: one(readChoice(formats)),
  } satisfies Option<(typeof formats)[number]>,
  exitCode: switchOption("exit-code", "exit with 1 if something differs, as git diff does"),
};

/** The options, parsed. */
export type DiffConfig = Values<typeof diffOptions>;

/**
 * Reads the options of `davit diff`.
 * @throws {ConfigError} with every problem.
 */
export function readDiffConfig(args: readonly string[], environment: Environment, paths: Paths): DiffConfig {
  const { values, problems } = readOptions(diffOptions, args, variablesOf(environment), paths);
  const { from } = values;
  if (from === undefined) problems.push(...tokenProblems(values));
  else if (!paths.isFile(from) && !paths.isDirectory(from))
    problems.push(`No file or directory "${from}": --from needs one that exists`);
  return configWithout(problems, values);
}

export const diffHelp = machineHelp(
  "diff --manifests DIR",
  "Shows what manifests would change, and for which machines. It changes nothing, and prints no text of a Secret.\n" +
    "Exit code 0: compared. 1: something differs, with --exit-code. 2: not compared.",
  diffOptions,
);
