/** The screen of Groups, Profiles, and Machines that need a person: what is wrong with each, how far it has come. */

import { heldReason, type ObjectStatus, type OwnName, objectKey } from "../../../model/objects/source.ts";
import { hasSpent, type InstallState, type LedgerEntry, type NamedGrant } from "../../../model/permits/permit.ts";
import { RequestError } from "../../errors.ts";
import type { MachineBook } from "../../ops/machine-book.ts";
import { grantJson } from "../../ops/machine-report.ts";
import { type Html, type HtmlValue, html } from "../html/html.ts";
import { consolePath, facts, pageIn, pageLinks, table, tableRow } from "../html/layout.ts";
import type { FleetMoment, FleetRow } from "../state/fleet.ts";
import { nameIn, type ObjectFilter, problemIn } from "../state/objects.ts";
import type { ConsoleContext, Screen } from "./context.ts";
import { fleetHref } from "./fleet-page.ts";

const title = "Groups and Profiles";
const screen = "/console/objects";
const url = `${consolePath}/objects`;
/** More names or problems than a person reads. */
const maxListed = 100;
const maxTextLength = 256;

/** What can be chosen, with its name in the bar. */
const shows = { all: "all", person: "need a person", profiles: "Profiles", groups: "Groups" } as const;

export const objectsScreen: Screen = {
  url,
  page: async ({ query }, context) => {
    const { objects, fleet } = context;
    const filter = filterIn(query);
    const moment = await fleet.now();
    const page = pageIn(query, objects.find(filter));
    const names = page.items.map(nameIn).filter((name) => name !== undefined);
    const shown = { moment, context, progress: progressIn(names, moment, context) };
    const body = html`<h1>${title}</h1>
${unknownNote(context)}
${showBar(filter, context)}
${filterForm(filter)}
${problemList(context)}
${table(
  "Objects, by kind and name",
  ["Object", "State", "What is wrong", "Where", "Machines", "Install grant"],
  names.map((name) => rowHtml(name, shown)),
)}
${names.length === 0 && html`<p>No object is here.</p>`}
${pageLinks(page, (to) => hrefOf(filter, to))}`;
    return { title, screen, isLive: true, body };
  },
};

export const objectScreen: Screen = {
  url: `${url}/*`,
  page: async ({ rest }, context) => {
    const { objects, fleet } = context;
    const name = nameIn(rest);
    if (name === undefined || !objects.has(name)) throw new RequestError("notFound");
    const moment = await fleet.now();
    const shown = { moment, context, progress: progressIn([name], moment, context) };
    const status = objects.statusOf(name);
    const body = html`<h1>${name.kind} ${fullName(name)}</h1>
${unknownNote(context)}
<p>${stateHtml(status)}</p>
${facts([
  ["Where", objects.originOf(name)],
  ["Selector", status?.selector],
  ["Profile", profileLink(name, context)],
  ["Configs", status?.configs],
  ["Machines", machinesHtml(name, moment)],
  ["Install grant", installHtml(name, shown)],
])}
${status && conditionTable(status)}
${name.kind === "Profile" && groupList(fullName(name), context)}`;
    return { title: `${name.kind} ${fullName(name)}`, screen, isLive: true, body };
  },
};

interface ShownObjects {
  readonly moment: FleetMoment;
  readonly context: ConsoleContext;
  readonly progress: ReadonlyMap<string, GrantProgress>;
}

function filterIn(query: URLSearchParams): ObjectFilter {
  const show = (Object.keys(shows) as (keyof typeof shows)[]).find((each) => each === query.get("show")) ?? "all";
  return { show, text: query.get("text")?.trim().slice(0, maxTextLength) || undefined };
}

function hrefOf({ show, text }: ObjectFilter, page = 1): string {
  const query = new URLSearchParams({
    ...(show !== "all" && { show }),
    ...(text !== undefined && { text }),
    ...(page > 1 && { page: String(page) }),
  });
  return query.size === 0 ? url : `${url}?${query}`;
}

/** Says why there are no statuses. */
function unknownNote({ objects, statuses, followed }: ConsoleContext): HtmlValue {
  if (objects.isReading) return undefined;
  if (statuses !== undefined) {
    return html`<p>Another member leads the store: only its console knows what is wrong with an object.</p>`;
  }
  return html`<p>This davit follows ${followed?.place ?? "another one"}: only its console knows what is wrong with an
object.</p>`;
}

function showBar(filter: ObjectFilter, { objects }: ConsoleContext): Html {
  const { text } = filter;
  const items = (Object.keys(shows) as (keyof typeof shows)[]).map((show) => {
    const current = show === filter.show && html` aria-current="true"`;
    const count = objects.find({ show, text }).length;
    return html`<li><a href="${hrefOf({ show, text })}"${current}><b>${count}</b> ${shows[show]}</a></li>\n`;
  });
  return html`<ul class="states" aria-label="Objects">\n${items}</ul>`;
}

function filterForm({ show, text }: ObjectFilter): Html {
  return html`<form class="filter" method="get" action="${url}" role="search">
${show !== "all" && html`<input type="hidden" name="show" value="${show}">`}
<label>Text <input type="search" name="text" value="${text ?? ""}" autocomplete="off"></label>
<button>Filter</button>
</form>`;
}

function problemList({ objects: { problems } }: ConsoleContext): HtmlValue {
  if (problems.length === 0) return undefined;
  const items = problems
    .slice(0, maxListed)
    .map(({ origin, message }) => html`<li><code>${origin}</code>: ${message}</li>\n`);
  const count = problems.length > maxListed && ` (${maxListed} of ${problems.length})`;
  return html`<h2>Files and documents that davit cannot use${count}</h2>
<ul id="problems">
${items}</ul>
<h2>Objects</h2>`;
}

function rowHtml(name: OwnName, shown: ShownObjects): Html {
  const { objects } = shown.context;
  const status = objects.statusOf(name);
  const wrong = problemIn(status)?.message ?? heldIn(status)?.message;
  const counts = [machinesHtml(name, shown.moment), installHtml(name, shown)];
  const cells = [objectLink(name), stateHtml(status), wrong, objects.originOf(name), ...counts];
  return tableRow(cells, { id: `o-${objectKey(name)}` });
}

function heldIn(status: ObjectStatus | undefined) {
  return status?.conditions.find(({ type, reason }) => type === "Ready" && reason === heldReason);
}

/** The state in one word, with a colour. */
function stateHtml(status: ObjectStatus | undefined): HtmlValue {
  if (status === undefined) return "not known here";
  if (problemIn(status) !== undefined) return html`<span class="state failed">needs a person</span>`;
  if (heldIn(status) !== undefined) return html`<span class="state held">held</span>`;
  const ready = status.conditions.find(({ type }) => type === "Ready");
  return ready?.status === "True"
    ? html`<span class="state booting">ready</span>`
    : html`<span class="state waiting">not ready yet</span>`;
}

function objectLink(name: OwnName): Html {
  const path = [name.kind, name.namespace, name.name].map(encodeURIComponent).join("/");
  return html`${name.kind} <a href="${url}/${path}">${fullName(name)}</a>`;
}

function fullName({ namespace, name }: OwnName): string {
  return `${namespace}/${name}`;
}

function profileLink(name: OwnName, { objects }: ConsoleContext): HtmlValue {
  const profile = name.kind === "Group" ? objects.profileOf(fullName(name)) : undefined;
  const linked = profile === undefined ? undefined : nameIn(`Profile/${profile}`);
  return linked && objectLink(linked);
}

/** The number of an object's machines, which leads to them. */
function machinesHtml(name: OwnName, moment: FleetMoment): HtmlValue {
  if (name.kind === "Machine") return undefined;
  const full = fullName(name);
  const count = countsIn(moment).get(`${name.kind}/${full}`) ?? 0;
  if (count === 0) return "0";
  const href = fleetHref(name.kind === "Group" ? { group: full } : { text: full });
  return html`<a href="${href}" aria-label="${count} machines of ${name.kind} ${full}">${count}</a>`;
}

/** Machines are counted once for each state of the fleet. */
const counted = new WeakMap<FleetMoment, ReadonlyMap<string, number>>();

function countsIn(moment: FleetMoment): ReadonlyMap<string, number> {
  const known = counted.get(moment);
  if (known !== undefined) return known;
  const counts = new Map<string, number>();
  for (const { group, profile } of moment.rows) {
    for (const key of [group && `Group/${group}`, profile && `Profile/${profile}`]) {
      if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  counted.set(moment, counts);
  return counts;
}

/** Returns the progress of the objects' grants. */
function progressIn(
  names: readonly OwnName[],
  { rows }: FleetMoment,
  context: ConsoleContext,
): ShownObjects["progress"] {
  return progressOf(
    names.map((name) => grantOf(name, context)).filter((named) => named !== undefined),
    rows,
  );
}

function grantOf(name: OwnName, { book }: ConsoleContext) {
  if (name.kind === "Profile") return undefined;
  const key = `${name.kind.toLowerCase()}/${fullName(name)}`;
  const found = book?.grantOf(key);
  return found?.kind === "object" && found.grant !== undefined ? { key, grant: found.grant } : undefined;
}

function installHtml(name: OwnName, { context, progress }: ShownObjects): HtmlValue {
  const named = grantOf(name, context);
  return named && context.book && progressHtml(progress.get(named.key), named, context.book);
}

function conditionTable({ conditions }: ObjectStatus): Html {
  const rows = conditions.map(({ type, status, reason, message }) => tableRow([type, status, reason, message]));
  return html`<h2>Conditions</h2>
${table("What davit found", ["Condition", "Status", "Reason", "In words"], rows)}`;
}

function groupList(profile: string, { objects }: ConsoleContext): Html {
  const groups = [...objects.groupsOf(profile)].sort();
  const items = groups
    .slice(0, maxListed)
    .map((group) => nameIn(`Group/${group}`))
    .map((name) => name && html`<li>${objectLink(name)}</li>\n`);
  const more = groups.length > maxListed && html`<p>${groups.length - maxListed} more are not shown.</p>`;
  return html`<h2>Groups that name it</h2>
${groups.length === 0 ? html`<p>None.</p>` : html`<ul>\n${items}</ul>`}${more}`;
}

/** Counts the machines of one generation of a grant. */
interface GrantProgress {
  installed: number;
  installing: number;
  failed: number;
  /** Machines that the grant may still install. */
  remaining: number;
  /** Machines that an earlier install has installed, and that the grant does not install again. */
  before: number;
}

/** The part of a machine's row that says whose machine it is. */
type GrantedRow = Pick<FleetRow, "group" | "object" | "entries">;

const outcomes: Readonly<Record<InstallState, "installed" | "installing" | "failed">> = {
  Claimed: "installing",
  Installing: "installing",
  Installed: "installed",
  Failed: "failed",
  Unconfirmed: "failed",
};

/**
 * Returns the progress of each grant, by its key. A machine that has spent the grant counts, even if it belongs to
 * another Group now.
 */
export function progressOf(
  grants: readonly NamedGrant[],
  rows: readonly GrantedRow[],
): ReadonlyMap<string, GrantProgress> {
  const found = new Map(
    grants.map(({ key }) => [key, { installed: 0, installing: 0, failed: 0, remaining: 0, before: 0 }]),
  );
  if (grants.length === 0) return found;
  const byKey = new Map(grants.map((named) => [named.key, named]));
  for (const row of rows) {
    for (const key of keysOf(row)) {
      const named = byKey.get(key);
      const progress = found.get(key);
      const counted = named && countedAs(row, named);
      if (progress !== undefined && counted !== undefined) progress[counted] += 1;
    }
  }
  return found;
}

function ownKeys({ group, object }: GrantedRow): readonly string[] {
  return [...(group === undefined ? [] : [`group/${group}`]), ...(object === undefined ? [] : [`machine/${object}`])];
}

function keysOf(row: GrantedRow): ReadonlySet<string> {
  return new Set([...ownKeys(row), ...row.entries.flatMap(({ spent }) => Object.keys(spent))]);
}

function countedAs(row: GrantedRow, { key, grant }: NamedGrant): keyof GrantProgress | undefined {
  const isOwn = ownKeys(row).includes(key);
  const spent = row.entries.find((entry) =>
    isOwn ? hasSpent(entry, { key, grant }) : (entry.spent[key] ?? 0) >= grant.generation,
  );
  if (spent !== undefined) return outcomes[spent.state];
  if (!isOwn) return undefined;
  return grant.scope === "NeverInstalled" && row.entries.some(isInstalled) ? "before" : "remaining";
}

function isInstalled({ state }: LedgerEntry): boolean {
  return state === "Installed" || state === "Unconfirmed";
}

/** Returns a bar with its counts in words. */
function progressHtml(progress: GrantProgress | undefined, named: NamedGrant, book: MachineBook): Html {
  const { generation, isOpen, until, why } = grantJson(book.ledger, named);
  const state = isOpen ? `open until ${until}` : why;
  const { installed = 0, installing = 0, failed = 0, remaining = 0, before = 0 } = progress ?? {};
  const all = installed + installing + failed + remaining;
  const counts = [
    `${installed} of ${all} installed`,
    ...(installing > 0 ? [`${installing} installing`] : []),
    ...(failed > 0 ? [`${failed} failed or not confirmed`] : []),
    ...(remaining > 0 ? [`${remaining} not begun`] : []),
    ...(before > 0 ? [`${before} installed before`] : []),
  ].join(", ");
  const label = `Installed machines of ${named.key}, generation ${generation}`;
  const bar = all > 0 && html`<progress max="${all}" value="${installed}" aria-label="${label}"></progress><br>`;
  return html`${bar}${all === 0 && before === 0 ? "no machine yet" : counts}<br>
<small>generation ${generation}, ${state}</small>`;
}
