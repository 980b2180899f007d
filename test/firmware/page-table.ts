/**
 * The tables of docs/reference/firmware.md that `make test-firmware` writes: the suites put into them what each boot came to.
 * Otherwise nothing is written.
 *
 * A suite passes its boots one after the other, and `make test-firmware` runs one suite at a time: the page has one
 * writer.
 */

import { writeFileSync } from "node:fs";
import { readPage } from "../helpers/page-examples.ts";

type TableName = "loaders" | "outcomes";
/** Its cells, as the page has them. */
type Row = readonly string[];

const page = new URL("../../docs/reference/firmware.md", import.meta.url);

/** The rows of a table, without its head. */
export function readTable(name: TableName): readonly Row[] {
  const [table = ""] = between(name).exec(readPage("reference/firmware.md")) ?? [];
  return table
    .split("\n")
    .slice(2)
    .map((row) => row.slice("| ".length, -" |".length).split(" | "));
}

/** Gives a table other rows, if this run is to write any. */
export function updateTable(name: TableName, head: Row, update: (rows: readonly Row[]) => readonly Row[]): void {
  if (process.env.DAVIT_FIRMWARE_TABLE !== "write") return;
  const lines = [line(head), `|${"---|".repeat(head.length)}`, ...update(readTable(name)).map(line)];
  writeFileSync(
    page,
    readPage("reference/firmware.md").replace(between(name), () => lines.join("\n")),
  );
}

function between(name: TableName): RegExp {
  return new RegExp(`(?<=<!-- ${name}, written by make test-firmware -->\n).*?(?=\n<!-- end -->)`, "s");
}

function line(cells: Row): string {
  return `| ${cells.join(" | ")} |`;
}
