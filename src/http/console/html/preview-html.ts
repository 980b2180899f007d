/** Shows a preview: which Group a machine gets and why, its labels with their origins, and every answer. */

import type { Loser, NamedGroup, NearMiss } from "../../../boot/explaining/explain.ts";
import type { Preview, Rendering } from "../../ops/preview.ts";
import { type Html, type HtmlValue, html, lines } from "./html.ts";
import { facts, table, tableRow } from "./layout.ts";

const origins = { query: "request", machine: "Machine", reported: "reported by the machine" } as const;

/** Keeps two previews of one page apart. */
export interface PreviewPlace {
  /** Begins every id. */
  readonly idPrefix: string;
  /** What the preview is of, in words. */
  readonly name: string;
}

const alone: PreviewPlace = { idPrefix: "", name: "" };

/** Returns the preview in sections. */
export function previewHtml(preview: Preview, place = alone): Html {
  const { losers, moreLosers, nearest, moreOthers, warnings, renderings } = preview;
  return html`<h2>Why this Group</h2>
${selectionFacts(preview)}
${warnings.length > 0 && html`<ul class="warnings">${warnings.map(({ text }) => html`<li>${text}</li>\n`)}</ul>`}
${groupList("Groups that match, and do not win", losers.map(loserHtml), moreLosers)}
${groupList("Groups that do not match, the nearest first", nearest.map(missHtml), moreOthers)}
${labelTable(preview, place)}
<h2>What it would get now</h2>
${renderings.map((rendering) => renderingHtml(rendering, place))}`;
}

function selectionFacts({ chosen, effect, refused, permit, machines = [] }: Preview): Html {
  return facts([
    ["Group", chosen === undefined ? "none" : groupHtml(chosen)],
    ["Profile", chosen?.profile],
    ["Effect", chosen && (effect ?? "none: as Boot")],
    ["Machine", machines.map(({ machine, approved, hold }) => machineText(machine, approved, hold)).join("; ")],
    ["Refused", refused && `${refused.meaning} (${refused.reason})`],
    ["Doubt", refused?.doubt],
    ["Permit", permit],
  ]);
}

function machineText(machine: string, approved: boolean, hold: boolean): string {
  return `${machine}, ${approved ? "approved" : "not approved"}${hold ? ", held" : ""}`;
}

function groupHtml({ group, selector, priority }: NamedGroup): Html {
  return html`<b>${group}</b> <code>${selector}</code>${priority !== 0 && ` priority ${priority}`}`;
}

function groupList(title: string, items: readonly Html[], more: number): HtmlValue {
  if (items.length === 0) return undefined;
  return html`<h3>${title}${more > 0 && ` (${items.length} of ${items.length + more})`}</h3>
<ul>
${items}</ul>`;
}

function loserHtml({ lost, ...group }: Loser): Html {
  return html`<li>${groupHtml(group)}<br><small>${lost}</small></li>\n`;
}

function missHtml({ misses, ...group }: NearMiss): Html {
  return html`<li>${groupHtml(group)}${misses.map((miss) => html`<br><small>${miss}</small>`)}</li>\n`;
}

function labelTable({ labels, selectedBy }: Preview, { name: of }: PreviewPlace): HtmlValue {
  const shown =
    selectedBy ?? Object.entries(labels).map(([name, value]) => ({ name, value, origin: "query" as const }));
  if (shown.length === 0) return undefined;
  const rows = shown.map(({ name, value, origin }) =>
    tableRow([html`<code>${name}</code>`, html`<code>${value}</code>`, origins[origin]]),
  );
  const whose = of === "" ? "" : ` of the ${of}`;
  return html`<h3>Labels</h3>
${table(`Labels${whose}, and where each comes from`, ["Label", "Value", "From"], rows)}`;
}

function renderingHtml(rendering: Rendering, { idPrefix }: PreviewPlace): Html {
  const { path, status, contentType, bytes, body, isCut, isSecret, problem } = rendering;
  return html`<details id="${idPrefix}get-${path}">
<summary><code>${path}</code> ${status} ${contentType}, ${bytes} bytes</summary>
${problem !== undefined && html`<p>Problem: ${problem}</p>`}
${isSecret ? html`<p>From a Secret: not shown.</p>` : html`<pre tabindex="0">${lines(body ?? "")}</pre>`}
${isCut && html`<p>The rest is not shown.</p>`}
</details>
`;
}
