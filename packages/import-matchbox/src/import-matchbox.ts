/**
 * Imports a matchbox data directory: reads it, converts it, and writes the manifests. It is the work of `davit import`,
 * whose options are in src/commands/offline/import.ts.
 */

import { join } from "node:path";
import { diskFailure } from "../../../src/lib/files/disk-sentence.ts";
import { diskFiles } from "../../../src/lib/files/files.ts";
import { writeWholeFile } from "../../../src/lib/files/whole-file.ts";
import { StartError } from "../../../src/lib/start-error.ts";
import { Admission } from "../../../src/sources/admission/admission.ts";
import { readCrds } from "../../../src/sources/admission/crds.ts";
import { admitBy } from "./admit.ts";
import { type Imported, importMatchbox } from "./convert.ts";
import { openDirectory } from "./data-directory.ts";
import { findingText } from "./findings.ts";

export interface ImportConfig {
  /** The matchbox data directory. */
  readonly from: string;
  readonly out: string;
  /** The matchbox's own URL, without a slash at the end. */
  readonly matchboxUrl: string | undefined;
  /** True to replace files of an earlier import. */
  readonly force: boolean;
}

/** Where the import reports to. */
export interface ImportOutput {
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
}

/**
 * Imports a directory. Returns the exit code: 1 if something was not imported.
 * @throws {StartError} if a directory cannot be read or written, or if `out` has files.
 */
export async function importDirectory(config: ImportConfig, output: ImportOutput): Promise<number> {
  if (!config.force) await refuseUnlessEmpty(config.out);
  const imported = await readMatchbox(config);
  const { findings, files } = imported;
  for (const finding of findings) {
    output.writeError(`${findingText({ ...finding, file: join(config.from, finding.file) })}\n`);
  }
  const errors = findings.filter(({ severity }) => severity === "error").length;
  if (files.length === 0) {
    output.writeError(
      errors > 0 ? "Nothing is imported\n" : `Nothing to import: no groups or profiles in "${config.from}"\n`,
    );
    return 1;
  }
  await writeFiles(imported, config);
  output.write(summaryOf(imported, config.out, errors));
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
