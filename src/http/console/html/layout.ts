/** The frame of every page of the console. */

import { toRfc3339 } from "../../../lib/clock.ts";
import type { Visitor } from "../state/visitors.ts";
import { type Html, type HtmlValue, html } from "./html.ts";

export const consolePath = "/console";

/** The screens, in the order of the navigation. */
export const screens = [
  { path: `${consolePath}/`, title: "Fleet" },
  { path: `${consolePath}/waiting`, title: "Waiting room" },
  { path: `${consolePath}/objects`, title: "Groups and Profiles" },
  { path: `${consolePath}/try`, title: "Try" },
  { path: `${consolePath}/health`, title: "Health" },
] as const;

export interface Page {
  readonly title: string;
  /** The path of the screen in the navigation that the page belongs to. */
  readonly screen?: (typeof screens)[number]["path"];
  /** The part of the page below its navigation. */
  readonly body: HtmlValue;
  /** The HTTP status; 200 unless given. */
  readonly status?: number;
  /** True if the browser replaces `body` while things change. */
  readonly isLive?: boolean;
}

/**
 * Returns a whole page.
 * @param visitor undefined on the sign-in page.
 * @param nowMs Unix milliseconds.
 */
export function pageHtml(
  { title, screen, body, isLive = false }: Page,
  visitor: Visitor | undefined,
  nowMs: number,
): string {
  const live = isLive && html` data-live`;
  // No space around the content of main: events have none, and console.js compares node by node what differs.
  return `<!doctype html>\n${html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} - davit</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${consolePath}/console.css">
<script type="module" src="${consolePath}/console.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<p class="brand">davit</p>
${visitor && navigation(screen)}
${visitor && who(visitor)}
</header>
<main id="main" tabindex="-1" data-now="${toRfc3339(nowMs)}"${live}>${body}</main>
</body>
</html>`}\n`;
}

function navigation(current: Page["screen"]): Html {
  const links = screens.map(
    ({ path, title }) =>
      html`<li><a href="${path}"${path === current && html` aria-current="page"`}>${title}</a></li>\n`,
  );
  return html`<nav aria-label="Screens"><ul>\n${links}</ul></nav>`;
}

function who({ name, hasSession, formToken }: Visitor): Html {
  if (!hasSession) return html`<p class="who">${name} <a href="${consolePath}/sign-in">Sign in</a></p>`;
  return html`<form class="who" method="post" action="${consolePath}/sign-out">
<input type="hidden" name="form" value="${formToken}"><span>${name}</span> <button>Sign out</button></form>`;
}

/** Returns a point in time: its age, which the browser keeps current, with the time itself as its tooltip. */
export function age(atMs: number | undefined, nowMs: number): Html | string {
  if (atMs === undefined) return "-";
  const at = toRfc3339(atMs);
  return html`<time datetime="${at}" title="${at}" data-age>${ageText(nowMs - atMs)}</time>`;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Returns a duration in its largest unit, such as `12 s` or `3 d`. The script of the page spells it the same way. */
export function ageText(durationMs: number): string {
  const ms = Math.max(0, durationMs);
  if (ms < 2 * minuteMs) return `${Math.floor(ms / 1_000)} s`;
  if (ms < 2 * hourMs) return `${Math.floor(ms / minuteMs)} min`;
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)} h`;
  return `${Math.floor(ms / dayMs)} d`;
}

/** Returns a table that scrolls sideways by itself on a narrow screen. */
export function table(caption: string, columns: readonly string[], rows: HtmlValue): Html {
  const heads = columns.map((name) => html`<th scope="col">${name}</th>`);
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
<caption>${caption}</caption>
<thead><tr>${heads}</tr></thead>
<tbody>
${rows}</tbody>
</table></div>`;
}

/** Returns a row of a table. @param head the place of the cell that names the row; -1 for none. */
export function tableRow(
  cells: readonly HtmlValue[],
  { id, head = 0 }: { readonly id?: string; readonly head?: number } = {},
): Html {
  const shown = cells.map((cell, at) =>
    at === head ? html`<th scope="row">${cell}</th>\n` : html`<td>${cell}</td>\n`,
  );
  return html`<tr${id !== undefined && html` id="${id}"`}>\n${shown}</tr>\n`;
}

/** Returns a list of facts; facts without a value are left out. */
export function facts(pairs: readonly (readonly [name: string, value: HtmlValue])[]): Html {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== "" && value !== false);
  return html`<dl>\n${shown.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)}</dl>`;
}

const pageRows = 100;

/** One page of a list. */
interface ListPage<Item> {
  /** From 1. */
  readonly number: number;
  readonly pages: number;
  readonly items: readonly Item[];
}

/** Returns the page that a query asks for; the nearest one if there is no such page. */
export function pageIn<Item>(query: URLSearchParams, all: readonly Item[]): ListPage<Item> {
  const pages = Math.max(1, Math.ceil(all.length / pageRows));
  const number = Math.min(pages, Math.max(1, Number.parseInt(query.get("page") ?? "1", 10) || 1));
  return { number, pages, items: all.slice((number - 1) * pageRows, number * pageRows) };
}

/** Returns links to the pages before and after; nothing for a single page. */
export function pageLinks({ number, pages }: ListPage<unknown>, hrefOf: (page: number) => string): HtmlValue {
  if (pages === 1) return undefined;
  const link = (to: number, name: string) => html`<a href="${hrefOf(to)}">${name}</a> `;
  const earlier = number > 1 && link(number - 1, "Previous");
  const later = number < pages && link(number + 1, "Next");
  return html`<nav aria-label="Pages" class="pages">${earlier}page ${number} of ${pages} ${later}</nav>`;
}

/** Returns a link to a machine's page. */
export function machineLink(machine: string, text = machine): Html {
  return html`<a href="${machinePath(machine)}">${text}</a>`;
}

/** Returns the path of a machine's page. */
export function machinePath(machine: string): string {
  const segments = machine.split("/").map((segment) => encodeURIComponent(segment).replaceAll("%3A", ":"));
  return `${consolePath}/machines/${segments.join("/")}`;
}
