/**
 * `make bench-pages` writes the tables and plots of bench/README.md, the table of README.md, and bench/missed.md,
 * from the runs in bench/results/. A page has a comment `figures: NAME` at the place of a run. Of runs
 * with more boot threads (`NAME-threads-N`) it has only the plot. With `--check` it writes nothing, and only compares.
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { shortTableOf, tableOf } from "../benchmarks/figure-table.ts";
import { isMissed, recomputed } from "../benchmarks/figures.ts";
import { type Run, settingsOf } from "../benchmarks/run-file.ts";
import { generate, isCheck, reportOutdated, root } from "./generated-file.ts";
import { ratioPlot } from "./ratio-plot.ts";

const command = "make bench-pages";
const page = "bench/README.md";
const plots = "bench/plots";
// The load average of a minute, on two processors. After another run it is up to 3.
const quietLoad = 4;
const marked = /(?<=<!-- figures: (\S+), written by make bench-pages -->\n).*?(?=<!-- end -->)/gs;

const runs = readRuns();
const shown = new Set<Run>();
const text = readFileSync(join(root, page), "utf8").replace(marked, (_, name: string) => sectionOf(name));
const unseen = runs.filter((run) => !shown.has(run)).map(({ name }) => name);
if (unseen.length > 0)
  throw new Error(`${page} has no place for ${unseen.join(", ")}: add "<!-- figures: NAME ... -->"`);
await generate(page, text, command);
const readme = readFileSync(join(root, "README.md"), "utf8");
await generate(
  "README.md",
  readme.replace(marked, () => headlines()),
  command,
);
await generate("bench/missed.md", missedPage(), command);
await writePlots();

/** @throws {Error} if the medians and ratios of a run do not fit its samples. */
function readRuns(): readonly Run[] {
  const directory = join(root, "bench/results");
  const files = existsSync(directory) ? readdirSync(directory).filter((file) => file.endsWith(".json")) : [];
  return files.sort().map((file) => {
    const run: Run = JSON.parse(readFileSync(join(directory, file), "utf8"));
    if (run.name !== basename(file, ".json"))
      throw new Error(`bench/results/${file} has the run ${run.name}: rename it`);
    for (const figure of run.figures) {
      if (isDeepStrictEqual(recomputed(figure), figure)) continue;
      throw new Error(`bench/results/${file}: "${figure.what}" has other medians than its samples: run it again`);
    }
    return run;
  });
}

function sectionOf(name: string): string {
  const own = runs.filter((run) => run.name === name || run.name.startsWith(`${name}-threads-`));
  for (const run of own) shown.add(run);
  if (own.length === 0) return "\nNo run is committed.\n\n";
  const { whole = [], threads = [] } = Object.groupBy(own, (run) => (run.name === name ? "whole" : "threads"));
  return `\n${[...whole.map(wholeRun), ...threads.map(threadsRun)].join("\n")}\n`;
}

function wholeRun(run: Run): string {
  return `${captionOf(run)}\n${shortTableOf(run.figures).join("\n")}\n${plotLink(run)}`;
}

function threadsRun(run: Run): string {
  const samples = `[samples](results/${run.name}.json)`;
  return `With ${run.settings.threads} threads, ${run.at.slice(0, 10)}: ${samples}.\n${plotLink(run)}`;
}

function captionOf(run: Run): string {
  const { name, commit, at, machine, load } = run;
  const settings = [settingsOf(run), machine, `load average ${load.before}`].filter(Boolean).join(", ");
  return `${at.slice(0, 10)}, \`${commit}\`, ${settings}; [samples](results/${name}.json).\n`;
}

function plotLink({ name, figures }: Run): string {
  if (ratioPlot(name, figures) === undefined) return "";
  return `\n![Ratios of ${name} with quartiles and goals](plots/${name}.svg)\n`;
}

function missedPage(): string {
  const missed = runs.flatMap(({ name, figures }) =>
    figures.filter(missesGoal).map((figure) => ({ ...figure, what: `${name}: ${figure.what}` })),
  );
  const lines = missed.length === 0 ? ["None."] : tableOf(missed);
  return `# Goals that the newest runs miss\n\n\`${command}\` writes this list from bench/results/.\n\n${lines.join("\n")}\n`;
}

function missesGoal(figure: Run["figures"][number]): boolean {
  return isMissed(figure) === true || (figure.cpu !== undefined && isMissed(figure.cpu) === true);
}

/** Returns the table of README.md: named figures that reach their goals, of runs with one thread and little other work. */
function headlines(): string {
  const quiet = runs.filter(({ settings, load }) => (settings.threads ?? 1) === 1 && load.before <= quietLoad);
  const figures = quiet
    .flatMap((run) => run.figures)
    .filter((figure) => !missesGoal(figure))
    .flatMap(({ cpu: _cpu, headline, ...figure }) => (headline === undefined ? [] : [{ ...figure, what: headline }]));
  if (figures.length === 0) return "\nNo run on a quiet machine is committed.\n\n";
  const loads = quiet.map(({ load }) => load.before);
  const range = `The load average before these runs was ${Math.min(...loads)} to ${Math.max(...loads)}.`;
  return `\n${shortTableOf(figures).join("\n")}\n\n${range}\n\n`;
}

async function writePlots(): Promise<void> {
  const directory = join(root, plots);
  if (!isCheck) await mkdir(directory, { recursive: true });
  const drawn = new Map(runs.map(({ name, figures }) => [`${name}.svg`, ratioPlot(name, figures)]));
  for (const [file, svg] of drawn) if (svg !== undefined) await generate(`${plots}/${file}`, svg, command);
  const stray = existsSync(directory) ? readdirSync(directory).filter((file) => drawn.get(file) === undefined) : [];
  for (const file of stray) await (isCheck ? reportOutdated(`${plots}/${file}`, command) : rm(join(directory, file)));
}
