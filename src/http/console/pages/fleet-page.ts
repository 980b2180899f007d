/** The first screen: all machines, their states, and a filter. And the waiting room: those that need a person. */

import { breakable, type Html, type HtmlValue, html, lines } from "../html/html.ts";
import { age, consolePath, machineLink, type Page, pageIn, pageLinks, table, tableRow } from "../html/layout.ts";
import {
  type FleetFilter,
  type FleetMoment,
  type FleetRow,
  type FleetState,
  filtered,
  fleetStates,
} from "../state/fleet.ts";
import type { Visitor } from "../state/visitors.ts";
import { actionForm, choiceOf, namespaceOf, objectButton } from "./actions.ts";
import type { ConsoleContext, Screen, Visit } from "./context.ts";

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

/** More machines than a person looks at together. */
const maxRows = 200;

/** The waiting room: machines that no Group selects, that are held, or that need approval. */
export const waitingScreen: Screen = {
  url: `${consolePath}/waiting`,
  page: async ({ visitor }, context) => {
    const { rows } = await context.fleet.now();
    const waiting = rows.filter(isWaiting);
    const body = html`<h1>Waiting room</h1>
<p id="found">${waitingText(waiting.length)}</p>
${waiting.length > 0 && (await roomHtml(waiting.slice(0, maxRows), visitor, context))}`;
    return { title: "Waiting room", screen: "/console/waiting", isLive: true, body };
  },
};

function isWaiting({ state, isUnapproved, isPending }: FleetRow): boolean {
  return state === "unknown" || state === "held" || isUnapproved || isPending;
}

function waitingText(count: number): string {
  if (count === 0) return "No machine waits for a person.";
  const shown = count > maxRows ? `; the last ${maxRows} are shown` : "";
  return `${count === 1 ? "1 machine waits" : `${count} machines wait`} for a person${shown}.`;
}

async function roomHtml(
  rows: readonly FleetRow[],
  visitor: Visitor,
  { clock, callers }: ConsoleContext,
): Promise<HtmlValue> {
  const nowMs = clock.nowMs();
  const namespaces = new Set(rows.flatMap(({ object }) => (object === undefined ? [] : [namespaceOf(object)])));
  const asked = [...namespaces].map(async (each) => ((await visitor.mayPatch(each)) ? [each] : []));
  const changeable = new Set((await Promise.all(asked)).flat());
  const mayPatch = changeable.size > 0;
  const list = table(
    "Machines that wait for a person, the last seen first",
    ["Machine", "Host name", "State", "Group", "Seen", "Address"],
    rows.map((row) => waitingRow(row, changeable, nowMs)),
  );
  const buttons = (["approve", "hold", "release"] as const).map(objectButton);
  const room = mayPatch
    ? actionForm(visitor, `${consolePath}/waiting`, [list, html`<p>With the chosen machines: ${buttons}</p>`])
    : list;
  const hint = callers !== undefined && namespaces.size > 0 && !mayPatch && hintHtml(visitor);
  return [room, hint, manifestsOf(rows)];
}

function hintHtml({ clusterToken }: Visitor): Html {
  if (clusterToken !== undefined) {
    return html`<p>There are no buttons, because your account may not change these machines.</p>`;
  }
  return html`<p>To approve, hold or release here,
<a href="${consolePath}/sign-in">sign in with your Kubernetes token</a>. Each machine's page has the commands.</p>`;
}

function waitingRow(row: FleetRow, changeable: ReadonlySet<string>, nowMs: number): Html {
  const { machine, object, version, mac, hostname, group, seenAtMs, address } = row;
  const box =
    object !== undefined &&
    changeable.has(namespaceOf(object)) &&
    html`<input type="checkbox" name="machine" value="${choiceOf(object, version)}" id="choose-${machine}"
aria-label="Choose ${machine}"> `;
  const head = [box, machineLink(machine, mac ?? machine)];
  return tableRow([head, hostname, stateHtml(row), group, age(seenAtMs, nowMs), address], { id: `m-${machine}` });
}

/** A Group to copy, for each machine that no Group selects. */
function manifestsOf(rows: readonly FleetRow[]): HtmlValue {
  const unknown = rows.filter(({ state, mac }) => state === "unknown" && mac !== undefined);
  if (unknown.length === 0) return undefined;
  return html`<h2>A Group for a machine that no Group selects</h2>
${unknown.map(
  ({ machine, mac = "" }) => html`<details id="group-${machine}"><summary>${machine}</summary>
<pre tabindex="0">${lines(groupManifest(mac))}</pre></details>
`,
)}`;
}

/** Returns the manifest of a Group that selects one machine. */
function groupManifest(mac: string): string {
  return [
    "apiVersion: davit.dev/v1alpha1",
    "kind: Group",
    "metadata:",
    `  name: machine-${mac.replaceAll(":", "-")}`,
    "spec:",
    "  profileRef:",
    "    name: PROFILE # the Profile that the machine must boot",
    "  selector:",
    "    matchLabels:",
    `      mac: "${mac}"`,
    "",
  ].join("\n");
}
