/**
 * `make chart` writes the files of chart-files.ts. With `--check` it writes nothing, prints those that are out of date, and
 * exits with 1; the suites check those whose program is not there.
 */

import { existsSync } from "node:fs";
import { chartToolPath } from "../build/chart-tools.ts";
import { type GeneratedFile, generatedFiles } from "./chart-files.ts";
import { generate, isCheck } from "./generated-file.ts";

for (const file of generatedFiles()) await (isCheck ? check(file) : write(file));

async function check({ path, tool, text }: GeneratedFile): Promise<void> {
  if (tool !== undefined && !existsSync(chartToolPath(tool))) return;
  await generate(path, await text(), "make chart");
}

async function write({ path, text }: GeneratedFile): Promise<void> {
  await generate(path, await text(), "make chart");
  process.stdout.write(`${path}\n`);
}
