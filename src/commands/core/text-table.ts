/** Lays out rows below a heading, for a terminal. */

import type { Paint } from "./paint.ts";

interface TextTableOptions {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly paint: Paint;
  /** Colours a cell after it was padded. */
  readonly paintCell?: (column: string, cell: string) => string;
}

/** Returns the table. Cells must not move the cursor. */
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
