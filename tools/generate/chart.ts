/**
 * `make chart` writes the files of chart-files.ts. With `--check` it writes nothing, prints those that are out of date, and
 * exits with 1; the suites check those whose program is not there.
 */

import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chartToolPath } from "../build/chart-tools.ts";
import { type GeneratedFile, generatedFiles } from "./chart-files.ts";

const root = join(import.meta.dirname, "../..");
const isCheck = process.argv.includes("--check");

for (const file of generatedFiles()) await (isCheck ? check(file) : write(file));

async function check({ path, tool, text }: GeneratedFile): Promise<void> {
  if (tool !== undefined && !existsSync(chartToolPath(tool))) return;
  const [wanted, found] = await Promise.all([text(), readFile(join(root, path), "utf8").catch(() => "")]);
  if (wanted === found) return;
  process.stderr.write(`${path} is not what it would be made to now: make chart\n`);
  process.exitCode = 1;
}

async function write({ path, text }: GeneratedFile): Promise<void> {
  await writeFile(join(root, path), await text());
  process.stdout.write(`${path}\n`);
}
