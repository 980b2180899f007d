/** The manual page davit(1), made of the commands and of their options' declarations. */

import { commands } from "../../src/commands/commands.ts";
import { type DescribedCommand, describe } from "../../src/commands/completion.ts";

/**
 * Returns the page as roff.
 * @param date such as `2026-11-27`.
 */
export async function manPage(version: string, date: string): Promise<string> {
  const described = await describe(commands);
  const lines = [
    `.TH DAVIT 1 "${date}" "davit ${version}" "User Commands"`,
    ".SH NAME",
    "davit \\- network boot for bare metal, configured by Kubernetes objects",
    ".SH SYNOPSIS",
    ".B davit",
    ".I COMMAND",
    "[options]",
    ".SH COMMANDS",
    ...described.flatMap(({ name, summary }) => [".TP", `.B ${roff(`davit ${name}`)}`, text(summary)]),
    ".SH OPTIONS",
    "Every option of",
    ".B davit serve",
    "and",
    ".B davit boot",
    "is also an environment variable: DAVIT_ and its name in upper case, such as DAVIT_BOOT_ADDRESS. Commas separate the",
    "values of a list. An option overrides the variable.",
    ...described.filter(({ options }) => options.length > 0).flatMap(section),
    ".SH FILES",
    ...entry("/etc/davit/davit.env", "the options of davit.service, as environment variables"),
    ...entry("/etc/davit/objects", "the YAML files of Profiles and Groups that davit.service serves"),
    ...entry("/var/lib/davit", "the store, the ledger of installs, and the files below /assets/"),
    ".SH EXIT STATUS",
    "0 for success, 1 for a failure, 2 for a wrong command line.",
  ];
  return `${lines.join("\n")}\n`;
}

function section({ name, options }: DescribedCommand): readonly string[] {
  const entries = options.flatMap(({ flag, value, help }) => [
    ".TP",
    `.B ${roff(`--${flag}`)}${value === undefined ? "" : ` ${roff(value)}`}`,
    text(help),
  ]);
  return [`.SS ${roff(`davit ${name}`)}`, ...entries];
}

function entry(path: string, meaning: string): readonly string[] {
  return [".TP", `.I ${path}`, text(meaning)];
}

/** A line of text: a dot or a quote at its begin would be a request. */
function text(line: string): string {
  return `\\&${roff(line)}`;
}

function roff(words: string): string {
  return words.replaceAll("\\", "\\e").replaceAll("-", "\\-");
}
