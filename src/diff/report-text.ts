/** Reports differences for a terminal, in lines of text. */

import type { ChangedGroup, ChangedMachines } from "./compare.ts";
import type { ChangedText } from "./texts.ts";
import { changeText, type DiffReport, fieldText, machinesText, notesOf, summaryText } from "./words.ts";

/** Returns a text with a style of the terminal, or as it is. */
type Style = (style: "red" | "green" | "bold", text: string) => string;

/** More names are only counted. */
const shownNames = 10;

/** Yields the report, Group by Group. */
export function* textReport(report: DiffReport, style: Style): Iterable<string> {
  yield `before  ${report.before}\nafter   ${report.after}\n`;
  for (const group of report.comparison.groups) yield `\n${groupText(group, style)}`;
  const notes = notesOf(report);
  if (notes.length > 0) yield `\n${notes.map((note) => `note: ${note}\n`).join("")}`;
  yield `\n${summaryText(report)}\n`;
}

const kindTexts = { added: " is new", removed: " is removed", changed: "" } as const;

function groupText({ group, kind, isMoreDestructive, fields, changes, losses }: ChangedGroup, style: Style): string {
  const title = `Group ${group}${kindTexts[kind]}`;
  const head = isMoreDestructive ? style("red", `!! ${title}: more destructive`) : style("bold", title);
  const fieldLines = fields.map((field) => {
    const note = field.note === undefined ? "" : ` (${field.note})`;
    return `   ${field.field}: ${fieldText(field)}${note}\n`;
  });
  const lossLines = [...losses].map(([to, count]) => `   loses ${machinesText(count)} to Group ${to}\n`);
  return [`${head}\n`, ...fieldLines, ...lossLines, ...changes.map((change) => changeLines(change, style))].join("");
}

function changeLines(change: ChangedMachines, style: Style): string {
  const { machines, texts, isMoreDestructive, sample } = change;
  const line = `${isMoreDestructive ? "!! " : "   "}${changeText(change)}`;
  const [first = sample ?? ""] = machines;
  return [
    `${isMoreDestructive ? style("red", line) : line}\n`,
    ...(machines.length === 0 ? [] : [`      ${namesText(machines)}\n`]),
    ...texts.map((text) => textLines(text, first, style)),
  ].join("");
}

/** Names the first machines, and counts the others. */
export function namesText(names: readonly string[]): string {
  const more = names.length - shownNames;
  return `${names.slice(0, shownNames).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function textLines({ endpoint, change, note, diff }: ChangedText, machine: string, style: Style): string {
  const head = `      /${endpoint} is ${change}, for ${machine}`;
  if (diff === undefined) return `${head}: ${note}\n`;
  const lines = diff.trimEnd().split("\n");
  return `${head}\n${lines.map((line) => `        ${styled(line, style)}\n`).join("")}`;
}

function styled(line: string, style: Style): string {
  if (line.startsWith("+")) return style("green", line);
  return line.startsWith("-") ? style("red", line) : line;
}
