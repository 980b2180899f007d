/** The first screen: all machines, their states, and a filter. */

import { breakable, type Html, html } from "../html/html.ts";
import { age, consolePath, type Page, table } from "../html/layout.ts";
import { pageIn, pageLinks } from "../html/paging.ts";
import { type FleetFilter, type FleetMoment, type FleetRow, filtered } from "../state/fleet.ts";
import { type FleetState, fleetStates } from "../state/fleet-state.ts";
import type { Screen, Visit } from "./context.ts";

/** A longer text finds nothing. */
const maxTextLength = 256;
/** A page of a hundred failed machines stays small. The machine's own page has the whole reason. */
const maxReasonLength = 96;

export const fleetScreen: Screen = {
  url: `${consolePath}/`,
  page: async ({ query }: Visit, { fleet, clock }) => {
    const filter = filterIn(query);
    const moment = await fleet.now();
    const found = filtered(moment.rows, filter);
    const page = pageIn(query, found);
    const nowMs = clock.nowMs();
    const body = html`<h1>Fleet</h1>
${stateBar(moment, filter)}
${filterForm(filter)}
<p id="found">${countText(found.length, moment.rows.length)}</p>
${table(
  "Machines, the last seen first",
  ["Machine", "Host name", "State", "Group", "Profile", "Phase", "Last stage", "Seen", "Address"],
  page.items.map((row) => rowHtml(row, nowMs)),
)}
${pageLinks(page, (to) => fleetHref(filter, to))}`;
    return { title: "Fleet", screen: "/console/", isLive: true, body } satisfies Page;
  },
};

function filterIn(query: URLSearchParams): FleetFilter {
  const state = fleetStates.find((each) => each === query.get("state"));
  const textOf = (name: string) => query.get(name)?.trim().slice(0, maxTextLength) || undefined;
  return { state, group: textOf("group"), text: textOf("text") };
}

function countText(found: number, all: number): string {
  if (all === 0) return "No machine has asked for anything yet, and no object names one.";
  return found === all ? `${all} machines` : `${found} of ${all} machines`;
}

/** The number of machines in each state; each number is a link that filters. */
function stateBar({ rows, counts }: FleetMoment, filter: FleetFilter): Html {
  const link = (state: FleetState | undefined, name: string, count: number) => {
    const href = fleetHref({ ...filter, state });
    const current = state === filter.state && html` aria-current="true"`;
    return html`<li><a href="${href}"${current} class="${state ?? "all"}"><b>${count}</b> ${name}</a></li>\n`;
  };
  const states = fleetStates.map((state) => link(state, state, counts[state]));
  return html`<ul class="states" aria-label="States">\n${link(undefined, "all", rows.length)}${states}</ul>`;
}

function filterForm({ state, group, text }: FleetFilter): Html {
  return html`<form class="filter" method="get" action="${consolePath}/" role="search">
${state !== undefined && html`<input type="hidden" name="state" value="${state}">`}
<label>Group <input name="group" value="${group ?? ""}" autocomplete="off"></label>
<label>Text <input type="search" name="text" value="${text ?? ""}" autocomplete="off"></label>
<button>Filter</button>
</form>`;
}

/** Returns the path of the fleet's machines that a filter selects. */
export function fleetHref(filter: FleetFilter, page = 1): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value);
  if (page > 1) query.set("page", String(page));
  return query.size === 0 ? `${consolePath}/` : `${consolePath}/?${query}`;
}

/** HTML needs no end tags of cells: without them the page is a tenth smaller. */
function rowHtml(row: FleetRow, nowMs: number): Html {
  const { mac, machine, hostname, state, why, group, profile, phase, stage, seenAtMs, address } = row;
  const shown = stateHtml({ state, why: shortened(why) });
  const cells = [hostname, shown, group, profile, phase, breakable(stage), age(seenAtMs, nowMs), address];
  return html`<tr id="m-${machine}"><th scope="row">${machineLink(machine, mac ?? machine)}${cells.map(
    (cell) => html`<td>${cell}`,
  )}</tr>\n`;
}

function shortened(why: string | undefined): string | undefined {
  if (why === undefined || why.length <= maxReasonLength) return why;
  return `${why.slice(0, maxReasonLength).trimEnd()} ...`;
}

/** Returns a state in words, with the reason below it. */
export function stateHtml({ state, why }: Pick<FleetRow, "state" | "why">): Html {
  return html`<span class="state ${state}">${state}</span>${why !== undefined && html`<br><small>${why}</small>`}`;
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
