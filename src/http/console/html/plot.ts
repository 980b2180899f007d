/** Draws a series of numbers as a small SVG. Its numbers are beside it in words, for those who cannot see it. */

import { type Html, html } from "./html.ts";

export interface PlotOptions {
  /** What the plot shows, in words: its text alternative. */
  readonly title: string;
  /** The latest value is last. Nothing is drawn for an undefined one. */
  readonly values: readonly (number | undefined)[];
  /** How many values are as wide as the plot. */
  readonly width: number;
}

const height = 60;

/** Returns a plot. The largest finite value is as high as the plot; what is not finite is drawn at its top. */
export function plotHtml({ title, values, width }: PlotOptions): Html {
  const most = largestOf(values);
  const left = width - values.length;
  let path = "";
  let isDrawing = false;
  for (const [at, value] of values.entries()) {
    if (value !== undefined) {
      const share = most === 0 ? 0 : Math.min(1, value / most);
      path += `${isDrawing ? "L" : "M"}${left + at} ${Math.round((1 - share) * height * 10) / 10}h1`;
    }
    isDrawing = value !== undefined;
  }
  return html`<svg class="plot" role="img" aria-label="${title}" viewBox="0 -2 ${width} ${height + 4}"
preserveAspectRatio="none"><path d="${path}"/></svg>`;
}

/** Returns the largest finite value; 0 without one. */
export function largestOf(values: readonly (number | undefined)[]): number {
  return Math.max(0, ...values.filter((value) => value !== undefined && Number.isFinite(value)).map(Number));
}
