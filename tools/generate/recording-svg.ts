/** Draws what panes showed over time as one SVG that plays itself, without a script: CSS shows each row in its time. */

import type { Run } from "./terminal.ts";

/** What a pane shows from a moment on. */
export interface Frame {
  readonly atMs: number;
  readonly rows: readonly (readonly Run[])[];
}

export interface Pane {
  readonly title: string;
  /** In rows. */
  readonly height: number;
  readonly frames: readonly Frame[];
}

/** A row of a pane, for as long as it stays the same. */
interface Stay {
  readonly row: number;
  readonly runs: readonly Run[];
  readonly fromMs: number;
  readonly untilMs: number;
}

const letterWidth = 7.85;
const lineHeight = 17;
const padding = 14;
const titleHeight = 26;
const endMs = 6_000;

const styles = `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d4dae3;white-space:pre}
.title{fill:#8b96a5}.bold{font-weight:600;fill:#fff}.dim{fill:#8b96a5}.colour1{fill:#ff7b72}.colour2{fill:#7ee787}
.colour3{fill:#e3b341}.colour4{fill:#79c0ff}.colour5{fill:#d2a8ff}.colour6{fill:#76d9e6}
@media (prefers-reduced-motion){text{animation:none!important}}`;

/** @param columns of each pane. The last frames stay for six seconds, then it starts again. */
export function drawRecording(panes: readonly Pane[], columns: number): string {
  const lengthMs = Math.max(...panes.flatMap(({ frames }) => frames.map(({ atMs }) => atMs))) + endMs;
  const times = new Map<string, string>();
  const width = Math.ceil(columns * letterWidth) + 2 * padding;
  let top = 0;
  const drawn: string[] = [];
  for (const pane of panes) {
    const height = pane.height * lineHeight + titleHeight + padding;
    drawn.push(paneOf(pane, { top, width, height }));
    const y = (row: number) => top + titleHeight + (row + 1) * lineHeight;
    for (const stay of staysOf(pane.frames, lengthMs)) drawn.push(textOf(stay, y(stay.row), nameOf(stay)));
    top += height + padding / 2;
  }
  const size = `width="${width}" height="${top}" viewBox="0 0 ${width} ${top}"`;
  const label = panes.map(({ title }) => title).join("; ");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${escaped(label)}">`,
    `<style>text{animation:${lengthMs / 1000}s step-end infinite}${styles}\n${[...times.values()].join("\n")}</style>`,
    ...drawn,
    "</svg>\n",
  ].join("\n");

  /** The class of rows that come and go with this one. */
  function nameOf({ fromMs, untilMs }: Stay): string {
    const key = `${fromMs} ${untilMs}`;
    const name = `t${[...times.keys()].indexOf(key) + 1 || times.size + 1}`;
    if (!times.has(key)) times.set(key, timeRules(name, { fromMs, untilMs, lengthMs }));
    return name;
  }
}

function timeRules(name: string, { fromMs, untilMs, lengthMs }: Record<"fromMs" | "untilMs" | "lengthMs", number>) {
  const percent = (ms: number) => `${((100 * ms) / lengthMs).toFixed(2).replace(/\.?0+$/, "")}%`;
  // Where nothing moves, the last frame is seen.
  const still = untilMs < lengthMs ? "visibility:hidden;" : "";
  const before = fromMs === 0 ? "" : "0%{visibility:hidden}";
  const after = untilMs < lengthMs ? `${percent(untilMs)}{visibility:hidden}` : "";
  return `.${name}{${still}animation-name:${name}}@keyframes ${name}{${before}${percent(fromMs)}{visibility:visible}${after}}`;
}

/** Rows that come and stay, in the order in which they come. */
function staysOf(frames: readonly Frame[], lengthMs: number): readonly Stay[] {
  const stays: Stay[] = [];
  const shown = new Map<number, { readonly key: string; readonly runs: readonly Run[]; readonly fromMs: number }>();
  const end = (row: number, untilMs: number) => {
    const before = shown.get(row);
    if (before !== undefined && before.runs.length > 0) stays.push({ row, untilMs, ...before });
  };
  for (const { atMs, rows } of frames) {
    for (let row = 0; row < Math.max(rows.length, ...shown.keys()) + 1; row += 1) {
      const runs = rows[row] ?? [];
      const key = JSON.stringify(runs);
      if (shown.get(row)?.key === key) continue;
      end(row, atMs);
      shown.set(row, { key, runs, fromMs: atMs });
    }
  }
  for (const row of shown.keys()) end(row, lengthMs);
  return stays.toSorted((a, b) => a.fromMs - b.fromMs || a.row - b.row);
}

function paneOf({ title }: Pane, { top, width, height }: Record<"top" | "width" | "height", number>): string {
  const box = `<rect y="${top}" width="${width}" height="${height}" rx="8" fill="#0d1117"/>`;
  return `${box}\n<text class="title" x="${padding}" y="${top + 18}">${escaped(title)}</text>`;
}

function textOf({ runs }: Stay, y: number, name: string): string {
  const spans = runs.map(({ text, style }) =>
    style === "" ? escaped(text) : `<tspan class="${style}">${escaped(text)}</tspan>`,
  );
  return `<text class="${name}" x="${padding}" y="${y}" xml:space="preserve">${spans.join("")}</text>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
