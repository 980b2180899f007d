/** Reports differences for a terminal, in lines of text. No name and no value can command the terminal. */

import { visible } from "../../lib/text/visible.ts";
import type { ChangedGroup, ChangedMachines } from "./compare.ts";
import type { ChangedField } from "./group-fields.ts";
import type { ChangedText } from "./texts.ts";
import { changeText, type DiffReport, fieldText, machinesText, notesOf, summaryText } from "./words.ts";

/** Returns a text with a style of the terminal, or as it is. */
type Style = (style: "red" | "green" | "bold", text: string) => string;

/** More names are only counted. */
const shownNames = 10;

/** Yields the report, Group by Group. */
export function* textReport(report: DiffReport, style: Style): Iterable<string> {
  yield `before  ${visible(report.before)}\nafter   ${visible(report.after)}\n`;
  for (const group of report.comparison.groups) yield `\n${groupText(group, style)}`;
  const notes = notesOf(report);
  if (notes.length > 0) yield `\n${notes.map((note) => `note: ${visible(note)}\n`).join("")}`;
  yield `\n${summaryText(report)}\n`;
}

const kindTexts = { added: " is new", removed: " is removed", changed: "" } as const;

function groupText({ group, kind, isMoreDestructive, fields, changes, losses }: ChangedGroup, style: Style): string {
  const title = visible(`Group ${group}${kindTexts[kind]}`);
  const head = isMoreDestructive ? style("red", `!! ${title}: more destructive`) : style("bold", title);
  const fieldLines = fields.map((field) => `   ${fieldLine(field)}\n`);
  const lossLines = [...losses].map(([to, count]) => `   loses ${machinesText(count)} to Group ${visible(to)}\n`);
  return [`${head}\n`, ...fieldLines, ...lossLines, ...changes.map((change) => changeLines(change, style))].join("");
}

function fieldLine(field: ChangedField): string {
  const note = field.note === undefined ? "" : ` (${field.note})`;
  return visible(`${field.field}: ${fieldText(field)}${note}`);
}

function changeLines(change: ChangedMachines, style: Style): string {
  const { machines, texts, isMoreDestructive, sample, profileFields } = change;
  const line = `${isMoreDestructive ? "!! " : "   "}${visible(changeText(change))}`;
  const [first = sample ?? ""] = machines;
  return [
    `${isMoreDestructive ? style("red", line) : line}\n`,
    ...(machines.length === 0 ? [] : [`      ${visible(namesText(machines))}\n`]),
    ...profileFields.map((field) => `      ${fieldLine(field)}\n`),
    ...texts.map((text) => textLines(text, first, style)),
  ].join("");
}

/** Names the first machines, and counts the others. */
export function namesText(names: readonly string[]): string {
  const more = names.length - shownNames;
  return `${names.slice(0, shownNames).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function textLines({ endpoint, change, note, diff }: ChangedText, machine: string, style: Style): string {
  const head = visible(`      /${endpoint} is ${change}, for ${machine}`);
  if (diff === undefined) return `${head}: ${visible(note ?? "")}\n`;
  const lines = diff.trimEnd().split("\n");
  return `${head}\n${lines.map((line) => `        ${styled(line, style)}\n`).join("")}`;
}

function styled(line: string, style: Style): string {
  if (line.startsWith("+")) return style("green", line);
  return line.startsWith("-") ? style("red", line) : line;
}
