/** Figures as a table in Markdown, for the terminal, for pages and for bench/missed.md. */

import { type Comparison, type Figure, isMissed, type Ratio } from "./figures.ts";

type Column = readonly [title: string, cell: (figure: Figure) => string];

/** Returns the lines of a table with everything that is known of the figures. */
export function tableOf(figures: readonly Figure[]): readonly string[] {
  return linesOf(figures, [
    ...sides(figures),
    ["ratio", ratioCell],
    ["CPU: davit", ({ cpu }) => (cpu ? davitCell(cpu) : "")],
    ["peer", ({ cpu }) => (cpu ? besideCell(cpu) : "")],
    ["ratio", ({ cpu }) => (cpu ? ratioCell(cpu) : "")],
    ["goal", goalsOf],
  ]);
}

/** Returns the lines of a table for readers who compare davit with its peers: without quartiles and goals. */
export function shortTableOf(figures: readonly Figure[]): readonly string[] {
  return linesOf(figures, [
    ...sides(figures),
    ["ratio", ({ ratio }) => (ratio === undefined ? "" : shown(ratio.median))],
    ["CPU: davit", ({ cpu }) => (cpu ? davitCell(cpu) : "")],
    ["peer", ({ cpu }) => (cpu ? besideCell(cpu) : "")],
  ]);
}

/** What is measured, davit, and its peer: the column has the peer's name if all figures have the same one. */
function sides(figures: readonly Figure[]): readonly Column[] {
  const [peer = "peer", ...others] = new Set(figures.flatMap((figure) => figure.peer ?? []));
  const isOnly = others.length === 0;
  return [
    ["", ({ what }) => what],
    ["davit", davitCell],
    [isOnly ? peer : "peer", (figure) => (isOnly ? besideCell(figure) : namedPeer(figure))],
  ];
}

/** Leaves out columns that no figure needs. */
function linesOf(figures: readonly Figure[], columns: readonly Column[]): readonly string[] {
  const needed = columns.filter(([, cell]) => figures.some((figure) => cell(figure) !== ""));
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    row(needed.map(([title]) => title)),
    `|${needed.map(() => "---|").join("")}`,
    ...figures.map((figure) => row(needed.map(([, cell]) => cell(figure)))),
  ];
}

function namedPeer(figure: Figure): string {
  return figure.peer === undefined ? "" : `${figure.peer}: ${besideCell(figure)}`;
}

function davitCell({ davit, unit }: Comparison): string {
  return shown(davit.median, unit);
}

function besideCell({ beside, unit }: Comparison): string {
  return beside === undefined ? "" : shown(beside.median, unit);
}

function ratioCell({ ratio, davit }: Comparison): string {
  return ratio === undefined ? "" : ratioText(ratio, davit.samples.length);
}

/** Writes a ratio, with its quartiles if it has some. */
export function ratioText({ median, low, high }: Ratio, rounds: number): string {
  return rounds < 2 ? shown(median) : `${shown(median)} (${shown(low)} to ${shown(high)})`;
}

/** Writes the goals of a figure, and marks those that davit misses. */
export function goalsOf(figure: Figure): string {
  const { cpu } = figure;
  return [goalOf(figure, ""), cpu === undefined ? "" : goalOf(cpu, "CPU ")].filter((text) => text !== "").join("; ");
}

function goalOf(comparison: Comparison, prefix: string): string {
  const { goal, unit } = comparison;
  if (goal === undefined) return "";
  const { of, atLeast, atMost } = goal;
  const [word, value = Number.NaN] = atLeast === undefined ? ["at most", atMost] : ["at least", atLeast];
  const text = `${prefix}${of === "ratio" ? "ratio " : ""}${word} ${shown(value, of === "ratio" ? "" : unit)}`;
  return isMissed(comparison) ? `${text}: **missed**` : text;
}

/** Writes a number with three digits, or without decimals from 100 on. */
export function shown(value: number, unit = ""): string {
  const text = value >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  return `${text}${unit === "" || unit.startsWith("/") ? "" : " "}${unit}`;
}
