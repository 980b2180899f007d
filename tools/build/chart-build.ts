/**
 * `make chart-tools`: builds the programs of chart-tools.ts that are not there yet, some six minutes on two cores when Go's
 * own caches are empty; `--all` those, too, that continuous integration does without, three minutes more.
 */

import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  builtChartToolsDirectory,
  type ChartToolName,
  chartRecipes,
  chartToolNames,
  chartToolPath,
  missingChartTools,
  usualChartTools,
} from "./chart-tools.ts";
import { findGo } from "./go.ts";
import { build, lock, report } from "./go-build.ts";
import { fetchOperatorCrds, operatorCrdsDirectory } from "./operator-crds.ts";

const wanted = process.argv.includes("--all") ? chartToolNames : usualChartTools;

try {
  await buildChartTools();
} catch (error) {
  report(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function buildChartTools(): Promise<void> {
  if (!existsSync(operatorCrdsDirectory()))
    await fetchOperatorCrds(await findGo(report, join(import.meta.dirname, "chart")));
  if (!process.env.DAVIT_CHART_TOOLS) for (const name of missingChartTools(wanted)) await buildOne(name);
  for (const name of wanted) report(chartToolPath(name));
  const lost = missingChartTools(wanted);
  if (lost.length > 0) throw new Error(`Looking for ${lost.join(", ")}: DAVIT_CHART_TOOLS names a place without it`);
  const rest = missingChartTools(chartToolNames);
  if (rest.length > 0)
    report(`without ${rest.join(", ")}, which make chart-tools-all builds: its suites will be skipped`);
}

async function buildOne(name: ChartToolName): Promise<void> {
  const recipe = chartRecipes[name];
  const directory = builtChartToolsDirectory(recipe.module, process.env);
  await mkdir(directory, { recursive: true });
  using _lock = lock(directory);
  // Somebody else may have built it while this waited.
  if (missingChartTools([name]).length === 0) return;
  const module = join(import.meta.dirname, recipe.module);
  await build({ name, recipe, module, directory }, await findGo(report, module));
}
