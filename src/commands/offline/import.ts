import { join } from "node:path";
import { diskFiles } from "../../lib/files/files.ts";
import { writeWholeFile } from "../../lib/files/whole-file.ts";
import { StartError } from "../../lib/start-error.ts";
import { admitBy } from "../../offline/matchbox/admit.ts";
import { findingText } from "../../offline/matchbox/findings.ts";
import { type Imported, importMatchbox } from "../../offline/matchbox/matchbox.ts";
import { openDirectory } from "../../offline/matchbox/open-directory.ts";
import { ConfigError, type Environment, helpOf, type Option } from "../../options/parsing.ts";
import { newDirectoryOption, one, readServerUrl, switchOption } from "../../options/readers.ts";
import { configWithout, type Paths, readOptions } from "../../options/rules.ts";
import { Admission } from "../../sources/admission/admission.ts";
import { readCrds } from "../../sources/admission/crds.ts";
import { workCommand } from "../core/command-line.ts";
import { diskFailure } from "../core/failure.ts";
import type { Host } from "../core/host.ts";

/** `davit import`: converts the data directory of matchbox, another netboot service, to manifests. */
export const importCommand = workCommand({
  name: "import",
  help: importHelp,
  readConfig: readImportConfig,
  work: importInto,
});

async function importInto(config: ImportConfig, host: Host): Promise<number> {
  if (!config.force) await refuseUnlessEmpty(config.out);
  const imported = await readMatchbox(config);
  const { findings, files } = imported;
  for (const finding of findings) {
    host.writeError(`${findingText({ ...finding, file: join(config.from, finding.file) })}\n`);
  }
  const errors = findings.filter(({ severity }) => severity === "error").length;
  if (files.length === 0) {
    host.writeError(
      errors > 0 ? "Nothing is imported\n" : `Nothing to import: no groups or profiles in "${config.from}"\n`,
    );
    return 1;
  }
  await writeFiles(imported, config);
  host.write(summaryOf(imported, config.out, errors));
  return errors === 0 ? 0 : 1;
}

async function readMatchbox({ from, matchboxUrl }: ImportConfig): Promise<Imported> {
  const admit = admitBy(new Admission(await readCrds()));
  try {
    return importMatchbox(openDirectory(from), {
      admit,
      ...(matchboxUrl !== undefined && { replaceUrl: matchboxUrl }),
    });
  } catch (error) {
    throw diskFailure("Reading", from, error);
  }
}

const folders = ["profiles", "groups"];

async function writeFiles({ files }: Imported, { out }: ImportConfig): Promise<void> {
  try {
    for (const folder of folders) await diskFiles.makeDirectory(join(out, folder));
    for (const { path, text } of files) await writeWholeFile(diskFiles, out, path, [Buffer.from(text)]);
  } catch (error) {
    throw diskFailure("Writing", out, error);
  }
}

/**
 * Checks that the folders for Profiles and Groups are empty. Otherwise files of an earlier import could remain beside
 * the new ones, and davit would serve both.
 * @throws {StartError} if a folder has files.
 */
async function refuseUnlessEmpty(out: string): Promise<void> {
  for (const folder of folders) {
    const path = join(out, folder);
    const [first] = await listed(path);
    if (first === undefined) continue;
    throw new StartError(
      `Writing "${path}": it has files already; give an empty directory, or --force to replace them`,
    );
  }
}

async function listed(path: string): Promise<readonly string[]> {
  try {
    return await diskFiles.list(path);
  } catch (error) {
    throw diskFailure("Writing", path, error);
  }
}

function summaryOf({ profiles, groups, findings }: Imported, out: string, errors: number): string {
  const counts = `${counted(profiles, "Profile")} and ${counted(groups, "Group")} are in ${out}`;
  const totals = `${counted(errors, "error")}, ${counted(findings.length - errors, "warning")}`;
  return `${counts}: ${totals}\n`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

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

/** The options, parsed. */
interface ImportConfig {
  /** The matchbox data directory. */
  readonly from: string;
  readonly out: string;
  /** The matchbox's own URL, without a slash at the end. */
  readonly matchboxUrl: string | undefined;
  readonly force: boolean;
}

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

function importHelp(): string {
  const purpose = "Makes Profiles and Groups of a matchbox data directory, and reports what they lack.";
  return helpOf("import matchbox DIR --out DIR", purpose, importOptions);
}
