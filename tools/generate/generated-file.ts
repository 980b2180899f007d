/** Writes generated files. With `--check` on the command line, only compares them. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** True if nothing may be written. */
export const isCheck = process.argv.includes("--check");

/**
 * @param path the path from the root of the repository.
 * @param command the command that writes the file.
 */
export async function generate(path: string, text: string, command: string): Promise<void> {
  const file = join(root, path);
  if (!isCheck) return await writeFile(file, text);
  if ((await readFile(file, "utf8").catch(() => "")) !== text) reportOutdated(path, command);
}

export function reportOutdated(path: string, command: string): void {
  process.stderr.write(`${path} is not what it would be made to now: ${command}\n`);
  process.exitCode = 1;
}
