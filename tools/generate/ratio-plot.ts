/** Draws the ratios of a run as one SVG: a line for each figure, with quartiles, goals and processor time. */

import { goalsOf, ratioText, shown } from "../benchmarks/figure-table.ts";
import { type Comparison, type Figure, isMissed, type Ratio } from "../benchmarks/figures.ts";

const width = 900;
const labelWidth = 380;
const valueWidth = 150;
const rowHeight = 24;
const headHeight = 56;
const plotWidth = width - labelWidth - valueWidth;

// The picture has its own background, so that it is readable on a dark page, too.
const styles = `text{font:13px system-ui,sans-serif;fill:#1f2328}.back{fill:#fff}.grid{stroke:#d1d9e0}.even{stroke:#59636e}
.quartiles{stroke:#0969da;stroke-width:3}.median{fill:#0969da}.cpu{fill:none;stroke:#bc4c00;stroke-width:2}
.goal{stroke:#1a7f37;stroke-width:3}.missed{stroke:#cf222e;stroke-width:3;stroke-dasharray:4 2}.small{font-size:11px}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.back{fill:#0d1117}.grid{stroke:#3d444d}.even{stroke:#9198a1}
.quartiles{stroke:#4493f8}.median{fill:#4493f8}.cpu{stroke:#f0883e}.goal{stroke:#3fb950}.missed{stroke:#f85149}}`;

type Compared = Figure & { readonly ratio: Ratio };

/** Returns undefined if no figure has a ratio. The scale is logarithmic: 0.5 is as far from 1 as 2. */
export function ratioPlot(name: string, all: readonly Figure[]): string | undefined {
  const figures = all.filter((figure): figure is Compared => figure.ratio !== undefined);
  if (figures.length === 0) return undefined;
  const values = figures.flatMap(valuesOf);
  const [from, to] = [2 ** Math.floor(Math.log2(Math.min(...values))), 2 ** Math.ceil(Math.log2(Math.max(...values)))];
  const x = (value: number) => {
    const part = from === to ? 0.5 : Math.log2(value / from) / Math.log2(to / from);
    return Number((labelWidth + part * plotWidth).toFixed(1));
  };
  const height = headHeight + figures.length * rowHeight + 12;
  const ticks = Array.from({ length: Math.log2(to / from) + 1 }, (_, at) => from * 2 ** at);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title text">`,
    `<title id="title">${name}: davit divided by its peer</title>`,
    `<desc id="text">${escaped(figures.map(sentenceOf).join(" "))}</desc>`,
    `<style>${styles}</style>`,
    `<rect class="back" width="${width}" height="${height}"/>`,
    ...legend(),
    ...ticks.map((tick) => tickOf(x(tick), tick, height)),
    ...figures.map((figure, at) => rowOf(figure, headHeight + (at + 0.5) * rowHeight, x)),
    "</svg>\n",
  ].join("\n");
}

function valuesOf({ ratio, goal, cpu }: Compared): readonly number[] {
  const goals = goal?.of === "ratio" ? [goal.atLeast ?? goal.atMost ?? 1] : [];
  // 0.9 and 1.1, so that the plot has both sides of 1.
  return [ratio.low, ratio.high, ...goals, ...(cpu?.ratio ? [cpu.ratio.median] : []), 0.9, 1.1].filter((v) => v > 0);
}

function legend(): readonly string[] {
  const y = 20;
  const text = (left: number, words: string) => `<text class="small" x="${left}" y="${y + 4}">${words}</text>`;
  return [
    `<line class="quartiles" x1="12" x2="36" y1="${y}" y2="${y}"/><circle class="median" cx="24" cy="${y}" r="5"/>`,
    text(44, "ratio to the peer, with quartiles"),
    `<circle class="cpu" cx="250" cy="${y}" r="4"/>${text(262, "of processor time (less is better)")}`,
    `<line class="goal" x1="480" x2="480" y1="${y - 8}" y2="${y + 8}"/>${text(488, "goal")}`,
    `<line class="missed" x1="530" x2="530" y1="${y - 8}" y2="${y + 8}"/>${text(538, "missed goal")}`,
  ];
}

function tickOf(x: number, value: number, height: number): string {
  const line = `<line class="${value === 1 ? "even" : "grid"}" x1="${x}" x2="${x}" y1="${headHeight}" y2="${height - 8}"/>`;
  return `${line}<text class="small" x="${x}" y="${headHeight - 6}" text-anchor="middle">${value}</text>`;
}

function rowOf(figure: Compared, y: number, x: (value: number) => number): string {
  const { ratio, cpu, peer, what } = figure;
  const label = escaped(plain(`${what}, beside ${peer}`));
  const squeezed = label.length > 58 ? ` textLength="${labelWidth - 20}" lengthAdjust="spacingAndGlyphs"` : "";
  return [
    `<text x="10" y="${y + 4}"${squeezed}>${label}</text>`,
    `<line class="quartiles" x1="${x(ratio.low)}" x2="${x(ratio.high)}" y1="${y}" y2="${y}"/>`,
    goalMark(figure, y, x),
    cpu?.ratio === undefined ? "" : `<circle class="cpu" cx="${x(cpu.ratio.median)}" cy="${y}" r="4"/>`,
    `<circle class="median" cx="${x(ratio.median)}" cy="${y}" r="5"/>`,
    `<text class="small" x="${width - valueWidth + 16}" y="${y + 4}">${valueText(figure)}</text>`,
  ].join("");
}

function goalMark(comparison: Comparison, y: number, x: (value: number) => number): string {
  const { goal } = comparison;
  const value = goal?.atLeast ?? goal?.atMost;
  if (goal?.of !== "ratio" || value === undefined) return "";
  const at = x(value);
  return `<line class="${isMissed(comparison) ? "missed" : "goal"}" x1="${at}" x2="${at}" y1="${y - 8}" y2="${y + 8}"/>`;
}

function valueText({ ratio, cpu }: Compared): string {
  return cpu?.ratio === undefined ? shown(ratio.median) : `${shown(ratio.median)}, CPU ${shown(cpu.ratio.median)}`;
}

function sentenceOf(figure: Compared): string {
  const { what, peer, ratio, davit, cpu } = figure;
  const time = cpu?.ratio === undefined ? "" : `, processor time ${ratioText(cpu.ratio, davit.samples.length)}`;
  const goals = goalsOf(figure);
  const aim = goals === "" ? "" : `; goal: ${goals}`;
  return plain(`${what}, beside ${peer}: ${ratioText(ratio, davit.samples.length)}${time}${aim}.`);
}

/** Removes the marks of Markdown. */
function plain(text: string): string {
  return text.replaceAll(/[`*]/g, "");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
