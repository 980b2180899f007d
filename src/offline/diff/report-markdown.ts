/** Reports differences as Markdown, for a comment on a pull request. */

import { visible } from "../../lib/text/visible.ts";
import type { ChangedGroup, ChangedMachines } from "./compare.ts";
import type { ChangedField } from "./fields.ts";
import {
  changeText,
  type DiffReport,
  effectOf,
  fieldText,
  machinesText,
  namesText,
  notesOf,
  summaryText,
} from "./report.ts";
import type { ChangedText } from "./texts.ts";

/** GitHub refuses a comment of more than 65,536 characters. Room is left for the last lines. */
const maxLength = 60_000;

const title = "### davit diff\n";

/** Returns the report. Parts beyond the limit of a comment are only counted. */
export function markdownReport(report: DiffReport): string {
  const { groups } = report.comparison;
  const head = `${title}\n${capitalised(escaped(summaryText(report)))}.\n`;
  const from = `\nBefore: ${code(report.before)}. After: ${code(report.after)}.\n`;
  const notes = notesOf(report).map((note) => `- ${escaped(note)}\n`);
  const parts = [...groups.map(rowOf), ...notes, ...groups.flatMap(detailsOf)];
  const table = groups.length === 0 ? "" : "\n| | Group | machines | effect |\n|---|---|---|---|\n";
  const shown: string[] = [];
  let length = head.length + from.length + table.length;
  for (const part of parts) {
    length += part.length;
    if (length > maxLength) break;
    shown.push(part);
  }
  const [rows, noted] = [groups.length, groups.length + notes.length];
  const texts = [
    head,
    from,
    table,
    ...shown.slice(0, rows),
    ...(notes.length === 0 ? [] : ["\n"]),
    ...shown.slice(rows, noted),
    ...shown.slice(noted),
  ];
  const missing = parts.length - shown.length;
  if (missing > 0) texts.push(`\n${missing} parts of this report are left out: it would be too long for a comment.\n`);
  return texts.join("");
}

function rowOf({ group, kind, isMoreDestructive, changes, losses }: ChangedGroup): string {
  const moved = changes.map((change) => escaped(changeText(change).split(": ")[0] ?? ""));
  const lost = [...losses].map(([to, count]) => `loses ${machinesText(count)} to Group ${to}`);
  const machines = [...moved, ...lost.map(escaped)];
  const effects = [...new Set(changes.map(({ before, after }) => effectsText(before, after)))];
  const mark = isMoreDestructive ? "**more destructive**" : "";
  const name = kind === "changed" ? code(group) : `${code(group)} (${kind})`;
  return `| ${mark} | ${name} | ${machines.join("<br>")} | ${effects.map(escaped).join("<br>")} |\n`;
}

function effectsText(before: ChangedMachines["before"], after: ChangedMachines["after"]): string {
  const [was, is] = [effectOf(before), effectOf(after)];
  return was === is ? is : `${was} -> ${is}`;
}

function detailsOf({ group, fields, changes }: ChangedGroup): readonly string[] {
  const lines = fields.map(fieldLine);
  const head = lines.length === 0 ? [] : [`\n**Group** ${code(group)}\n\n${lines.join("")}`];
  return [...head, ...changes.map((change) => changeDetails(group, change))];
}

function fieldLine(field: ChangedField): string {
  const note = field.note === undefined ? "" : ` (${escaped(field.note)})`;
  return `- ${code(field.field)}: ${code(fieldText(field))}${note}\n`;
}

function changeDetails(group: string, change: ChangedMachines): string {
  const { machines, texts, sample, profileFields } = change;
  const [first = sample ?? ""] = machines;
  const names = machines.length === 0 ? "" : `\n${code(namesText(machines))}\n`;
  const fields = profileFields.length === 0 ? "" : `\n${profileFields.map(fieldLine).join("")}`;
  const body = fields + texts.map((text) => textDetails(text, first)).join("");
  const summary = html(`Group ${group} ${changeText(change)}`);
  return `\n<details><summary>${summary}</summary>\n${names}${body}\n</details>\n`;
}

function textDetails({ endpoint, change, note, diff }: ChangedText, machine: string): string {
  const head = `\n${code(`/${endpoint}`)} is ${change}, for ${code(machine)}`;
  if (diff === undefined) return `${head}: ${escaped(note ?? "")}\n`;
  // A longer fence than any in the text: the text cannot end it.
  const longest = Math.max(2, ...[...diff.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${head}\n\n${fence}diff\n${diff.trimEnd()}\n${fence}\n`;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns a text as a code span that fits into a cell of a table. */
function code(text: string): string {
  return `\`${visible(text).replaceAll("`", "'").replaceAll("|", "\\|")}\``;
}

/** Returns a text that Markdown shows as it is. */
function escaped(text: string): string {
  return html(text).replaceAll(/[\\`*_[\]|~]/g, "\\$&");
}

function html(text: string): string {
  return visible(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll("@", "&#64;");
}
