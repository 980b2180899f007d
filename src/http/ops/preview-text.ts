/**
 * Formats a preview as text for a terminal. Foreign text in it cannot move the cursor or begin a line at the margin.
 */

import type { Loser, NamedGroup, NearMiss } from "../../boot/explaining/explain.ts";
import { shown, visible } from "../../lib/text/visible.ts";
import type { Preview, Rendering } from "./preview.ts";

/** Returns the whole preview. Every line ends in LF. */
export function previewText(preview: Preview): string {
  const { losers, moreLosers, nearest, moreOthers, warnings } = preview;
  const sections = [
    headOf(preview),
    section(groupsTitle("match, and do not win", losers.length, moreLosers), losers.flatMap(loserLines)),
    section(groupsTitle("do not match, the nearest first", nearest.length, moreOthers), nearest.flatMap(missLines)),
    section(
      "warnings:",
      warnings.map(({ text }) => `  - ${text}`),
    ),
    ...preview.renderings.map(renderingLines),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines];
}

function groupsTitle(title: string, shown: number, more: number): string {
  return `Groups that ${title}${more === 0 ? "" : ` (${shown} of ${shown + more})`}:`;
}

function headOf({ labels, chosen, effect, refused, permit, ...known }: Preview): readonly string[] {
  const asked = Object.entries(labels).map(([name, value]) => `${shown(name)}=${shown(value)}`);
  return [
    `request  ${asked.length === 0 ? "(no labels)" : asked.join("\n         ")}`,
    ...machineLines(known),
    `group    ${chosen === undefined ? "(none)" : groupText(chosen)}`,
    ...(chosen === undefined ? [] : [`profile  ${chosen.profile}`, `effect   ${effect ?? "none: as Boot"}`]),
    ...(refused === undefined ? [] : [`refused  ${refused.meaning} (${refused.reason})`]),
    ...(refused?.doubt === undefined ? [] : [`doubt    ${refused.doubt}`]),
    ...(permit === undefined ? [] : [`permit   ${permit}`]),
  ];
}

const origins = { query: "of the request", machine: "of the Machine", reported: "reported by the machine" } as const;

function machineLines({ machines = [], selectedBy = [] }: Pick<Preview, "machines" | "selectedBy">): readonly string[] {
  const labels = selectedBy.map(({ name, value, origin }) => `${shown(name)}=${shown(value)}  ${origins[origin]}`);
  return [
    ...machines.map((each) => `machine  ${each.machine}  ${stateOf(each)}`),
    ...(labels.length === 0 ? [] : [`labels   ${labels.join("\n         ")}`]),
  ];
}

function stateOf({ approved, hold, refused }: NonNullable<Preview["machines"]>[number]): string {
  const words = [approved ? "approved" : "not approved", ...(hold ? ["held"] : []), ...(refused ? ["refused"] : [])];
  return words.join(", ");
}

function groupText({ group, selector, priority }: NamedGroup): string {
  return `${group}  ${selector}${priority === 0 ? "" : `  priority ${priority}`}`;
}

function loserLines({ lost, ...group }: Loser): readonly string[] {
  return [`  ${groupText(group)}`, `      ${lost}`];
}

function missLines({ misses, ...group }: NearMiss): readonly string[] {
  return [`  ${groupText(group)}`, ...misses.map((miss) => `      ${miss}`)];
}

function renderingLines(rendering: Rendering): readonly string[] {
  const { path, status, contentType, bytes, body = "", isCut, isSecret, problem } = rendering;
  const head = [path, String(status), contentType, `${bytes} bytes`].join("  ");
  if (isSecret) return [`${head}, from a Secret: not shown`];
  const lines = body.replace(/\n$/, "").split("\n").map(bodyLine);
  return [
    head,
    ...(problem === undefined ? [] : [`    problem: ${visible(problem)}`]),
    ...(body === "" ? [] : lines),
    ...(isCut ? ["    ... and more"] : []),
  ];
}

/** Indents and escapes a line. Tabs stay: they are the only control character that configs need within a line. */
function bodyLine(line: string): string {
  return `    ${line.split("\t").map(visible).join("\t")}`;
}
