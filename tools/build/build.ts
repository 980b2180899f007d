/**
 * `make cluster-tools`: builds the programs of tools.ts, those that are not there yet. It takes about eight minutes on
 * two cores when Go's own caches are empty. Whoever comes second waits for the first; a program appears when it is whole.
 */

import { mkdir } from "node:fs/promises";
import { findGo } from "./go.ts";
import { build, lock, report } from "./go-build.ts";
import { builtToolsDirectory, givenPath, missingTools, recipes, type ToolName, toolNames, toolPath } from "./tools.ts";

try {
  await buildTools();
} catch (error) {
  report(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function buildTools(): Promise<void> {
  if (toBuild().length > 0) {
    const directory = builtToolsDirectory(process.env);
    await mkdir(directory, { recursive: true });
    using _lock = lock(directory);
    await buildAll(toBuild(), directory);
  }
  for (const name of toolNames) report(toolPath(name));
  const lost = missingTools();
  if (lost.length > 0) throw new Error(`Looking for ${lost.join(", ")}: the environment names a place without it`);
}

function toBuild(): readonly ToolName[] {
  return missingTools().filter((name) => givenPath(name, process.env) === undefined);
}

async function buildAll(names: readonly ToolName[], directory: string): Promise<void> {
  if (names.length === 0) return;
  const module = import.meta.dirname;
  const go = await findGo(report, module);
  for (const name of names) await build({ name, recipe: recipes[name], module, directory }, go);
}
