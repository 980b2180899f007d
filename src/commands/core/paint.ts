/** Colours words on a terminal, and lays out tables. The words say everything, so nothing is lost without colours. */

import { styleText } from "node:util";
import type { Host } from "./host.ts";

/** Returns a text with a colour, or as it is. */
export type Paint = (style: PaintStyle, text: string) => string;
type PaintStyle = "red" | "yellow" | "green" | "magenta" | "dim" | "bold";

/** Returns how a command may colour its output: not in a pipe, not with `NO_COLOR`, and not on a dumb terminal. */
export function paintOf({ outputIsTerminal, environment }: Pick<Host, "outputIsTerminal" | "environment">): Paint {
  const { NO_COLOR: noColor = "", TERM: terminal } = environment;
  if (!outputIsTerminal || noColor !== "" || terminal === "dumb") return (_style, text) => text;
  return (style, text) => styleText(style, text, { validateStream: false });
}

const phaseStyles: Readonly<Record<string, PaintStyle>> = {
  Failed: "red",
  Unconfirmed: "red",
  Waiting: "yellow",
  Held: "yellow",
  Permitted: "magenta",
  Installing: "magenta",
  Installed: "green",
  Booted: "green",
};

/** Colours the phase of a machine. @param shown the phase with blanks around it. */
export function paintPhase(paint: Paint, shown: string): string {
  const style = phaseStyles[shown.trim()];
  return style === undefined ? shown : paint(style, shown);
}

interface TextTableOptions {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly paint: Paint;
  /** Colours a cell after it was padded. */
  readonly paintCell?: (column: string, cell: string) => string;
}

/** Lays out rows below a heading. Cells must not move the cursor. */
export function textTable({ columns, rows, paint, paintCell = (_column, cell) => cell }: TextTableOptions): string {
  const widths = columns.map((name, at) =>
    rows.reduce((width, row) => Math.max(width, row[at]?.length ?? 0), name.length),
  );
  const padded = (row: readonly string[], at: number) => (row[at] ?? "").padEnd(widths[at] ?? 0);
  const lineOf = (row: readonly string[]) =>
    columns
      .map((column, at) => paintCell(column, padded(row, at)))
      .join("  ")
      .trimEnd();
  const heading = columns
    .map((_, at) => padded(columns, at))
    .join("  ")
    .trimEnd();
  return [paint("bold", heading), ...rows.map(lineOf)].map((line) => `${line}\n`).join("");
}
