/** The options of `davit lint`, see `config.ts`. */

import { helpOf, type Paths } from "./config.ts";
import { type LintFormat, lintFormats } from "./lint/report.ts";
import { manifestProblems, offlineOptions } from "./offline-config.ts";
import {
  ConfigError,
  type Environment,
  type Option,
  one,
  readChoice,
  readSwitch,
  readTable,
  readText,
  type Values,
} from "./options.ts";

const lintOptions = {
  ...offlineOptions,
  assetsDir: {
    flag: "assets-dir",
    value: "DIR",
    help: "also report kernels and initrds that are missing there",
    read: one(readText),
  } satisfies Option<string>,
  format: {
    flag: "format",
    value: "text|json|github",
    preset: "text",
    help: "a line for each finding, JSON, or annotations of a pull request on GitHub",
    read: one(readChoice(lintFormats)),
  } satisfies Option<LintFormat>,
  strict: {
    flag: "strict",
    preset: "false",
    help: "warnings fail, too",
    read: one(readSwitch),
  } satisfies Option<boolean>,
};

/** The options, parsed. */
export type LintConfig = Omit<Values<typeof lintOptions>, "manifests"> & { readonly manifests: readonly string[] };

/**
 * Reads them.
 * @throws {ConfigError} with every problem.
 */
export function readLintConfig(args: readonly string[], environment: Environment, paths: Paths): LintConfig {
  const { values, problems } = readTable(lintOptions, args, environment);
  const { manifests = [], assetsDir } = values;
  problems.push(...manifestProblems(manifests, paths));
  if (assetsDir !== undefined && !paths.isDirectory(assetsDir)) {
    problems.push(`No directory "${assetsDir}": --assets-dir needs one that exists`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze({ ...values, manifests });
}

/** The help text. */
export function lintHelp(): string {
  const purpose = [
    "Reports mistakes in Profiles and Groups, and in what they name, before a machine meets them.",
    "Exit code 0: no errors. 1: errors. 2: something could not be read. docs/findings.md has every finding.",
  ];
  return helpOf("lint --manifests DIR | kubectl get ... -o yaml | davit lint", purpose.join("\n"), lintOptions);
}
