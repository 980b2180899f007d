/** The screen of one machine: its boots and where each stopped, why it gets its Group, and what it would get now. */

import { toRfc3339 } from "../../../lib/clock.ts";
import type { Labels } from "../../../model/labels/labels.ts";
import { identitiesOf } from "../../../model/objects/machine.ts";
import { mayBeSightingOf } from "../../../model/sighting.ts";
import { missingOf, type PastBoot, type StageOf } from "../../../records/history/boots.ts";
import type { HistoryView, MachineHistory, PastRequest } from "../../../records/history/history-view.ts";
import { RequestError } from "../../errors.ts";
import {
  bytesText,
  endText,
  idsText,
  latestFirst,
  seconds,
  spanOf,
  stagesBy,
  statusText,
  tenths,
} from "../../ops/history-routes.ts";
import { findMachine, identityOf, type MachineSubject, machineDetailsJson } from "../../ops/machine-report.ts";
import { mostAlike } from "../../ops/machine-routes.ts";
import { type Html, type HtmlValue, html } from "../html/html.ts";
import { age, consolePath, facts, table, tableRow } from "../html/layout.ts";
import { previewHtml } from "../html/preview-html.ts";
import { type FleetRow, sentName } from "../state/fleet.ts";
import { actionsOf } from "./actions.ts";
import type { ConsoleContext, Screen } from "./context.ts";
import { stateHtml } from "./fleet-page.ts";

/** More boots than a person reads. */
const shownBoots = 20;

export const machineScreen: Screen = {
  url: `${consolePath}/machines/*`,
  page: async ({ rest, visitor }, context) => {
    const { fleet, book, previews, history, clock } = context;
    const { rows } = await fleet.now();
    const view = await history.current();
    const subject = book && findMachine(book, rest);
    const machine = historyOf(view, rest, subject);
    const named = subject?.object?.name ?? rest;
    const row = rows.find((each) => each.machine === named || each.mac === named);
    if (subject === undefined && machine === undefined && row === undefined) throw new RequestError("noSuchMachine");
    const nowMs = clock.nowMs();
    const details = subject && book && machineDetailsJson(book, subject);
    const preview = await previews.of(queryOf(machine?.labels, subject?.identities ?? [], rest));
    const name = row?.machine ?? rest;
    const body = html`<h1>${name}</h1>
${row && html`<p>${stateHtml(row)}</p>`}
${factsOf({ row, subject, machine, nowMs }, details)}
<h2 id="boots">Boots</h2>
${bootsHtml(machine, context, nowMs)}
${await actionsOf({ row, subject, visitor }, context)}
${installHtml(details)}
${previewHtml(preview)}`;
    return { title: name, screen: "/console/", isLive: true, body };
  },
};

/** The history of a machine, without requests that contradict its identities: they are another machine's. */
function historyOf(view: HistoryView, name: string, subject: MachineSubject | undefined): MachineHistory | undefined {
  const listed = subject?.identities ?? [];
  const identities = [identityOf(name), ...listed].filter((each) => each !== undefined);
  const isOwn = ({ labels }: MachineHistory) => mayBeSightingOf({ identities: identitiesOf(labels) }, identities);
  for (const identity of identities) {
    const at = identity.indexOf("/");
    const found = view.find(new Map([[identity.slice(0, at), identity.slice(at + 1)]]), mostAlike).find(isOwn);
    if (found !== undefined) return found;
  }
  const [, label = "", value = ""] = /^(serial|hostname)=(.+)$/s.exec(name) ?? [];
  if (label === "") return undefined;
  return view.find(new Map([[label, value]]), mostAlike).find(({ labels }) => sentName(labels) === name);
}

/** Returns the query that a machine would send, by its name; undefined for a machine that davit does not know. */
export async function machineQuery(name: string, { book, history }: ConsoleContext): Promise<string | undefined> {
  const subject = book && findMachine(book, name);
  const machine = historyOf(await history.current(), name, subject);
  if (subject === undefined && machine === undefined) return undefined;
  return queryOf(machine?.labels, subject?.identities ?? [], name);
}

/** Returns the query that the machine would send: the labels that it sent last, or its identities. */
function queryOf(labels: Labels | undefined, identities: readonly string[], name: string): string {
  const own = identityOf(name);
  const known = [...identities, ...(own === undefined ? [] : [own])].map((each) => each.split("/", 2));
  const named = new Map(known.map(([label = "", value = ""]) => [label, value]));
  return new URLSearchParams([...(labels === undefined || labels.size === 0 ? named : labels)]).toString();
}

interface Shown {
  readonly row: FleetRow | undefined;
  readonly subject: MachineSubject | undefined;
  readonly machine: MachineHistory | undefined;
  readonly nowMs: number;
}

type Details = ReturnType<typeof machineDetailsJson>;

function factsOf({ row, subject, machine, nowMs }: Shown, details: Details | undefined): Html {
  const identities = subject?.identities ?? [];
  return facts([
    ["Machine object", details?.name === undefined ? "none" : `${details.name} (${details.origin})`],
    ["Identities", identities.length > 0 && identities.map((each) => html`<code>${each}</code> `)],
    ["Labels sent", machine && [...machine.labels].map(([name, value]) => html`<code>${name}=${value}</code> `)],
    ["Addresses", machine?.addresses.join(", ")],
    ["Group", row?.group],
    ["Profile", row?.profile],
    ["Phase", details?.phase],
    ["Approved", details?.approved === undefined ? undefined : details.approved ? "yes" : "no"],
    ["Last seen", age(row?.seenAtMs, nowMs)],
  ]);
}

function bootsHtml(machine: MachineHistory | undefined, { bootFilesOf }: ConsoleContext, nowMs: number): HtmlValue {
  if (machine === undefined) return html`<p>The history has no request of this machine.</p>`;
  const stageOf = stagesBy(bootFilesOf);
  const boots = latestFirst(machine, stageOf).slice(0, shownBoots);
  const notes = machine.unclaimed.map(
    ({ address, count }) =>
      html`<p>${count} of the requests from ${address} name no machine, and may be another one's: not shown.</p>\n`,
  );
  return [notes, boots.map((boot, at) => bootHtml(boot, { stageOf, isFirst: at === 0, nowMs }))];
}

function bootHtml(
  boot: PastBoot,
  { stageOf, isFirst, nowMs }: { readonly stageOf: StageOf; readonly isFirst: boolean; readonly nowMs: number },
): Html {
  const { startedAtMs, endedAtMs } = spanOf(boot.requests);
  const rows = boot.requests.map((request) => requestHtml(request, stageOf(request, boot.group), startedAtMs));
  const started = toRfc3339(startedAtMs);
  const group = boot.group !== undefined && `, Group ${boot.group}`;
  return html`<details id="boot-${started}"${isFirst && html` open`}>
<summary>${age(startedAtMs, nowMs)} ago: ${boot.line} <b>${endText(boot.end)}</b></summary>
<p>Began ${started}, took ${seconds(endedAtMs - startedAtMs)}${group}${idsText(boot)}.</p>
${table(`Requests of the boot of ${started}`, ["After", "Stage", "Answer", "Bytes", "Took", "Times", "From"], rows)}
</details>
`;
}

function requestHtml(request: PastRequest, stage: string, startedAtMs: number): Html {
  const { isHead, isCut, times, isByAddress, address, durationMs, via } = request;
  const cells = [
    seconds(request.startedAtMs - startedAtMs),
    [isHead && "HEAD ", stage],
    [statusText({ ...request, missing: missingOf(request) }), isCut && ", cut"],
    bytesText(request),
    `${tenths(durationMs)} ms`,
    times > 1 && `${times} within ${seconds(request.lastStartedAtMs - request.startedAtMs)}`,
    [address, isByAddress && " (named by its address)", via !== undefined && `, via ${via}`],
  ];
  return tableRow(cells, { head: 1 });
}

const nextBoots: Readonly<Record<string, string>> = {
  claim: "an install: a grant is open",
  granted: "the same install script again, because it was claimed just now",
  disk: "its disk",
};

function installHtml(details: Details | undefined): HtmlValue {
  if (details === undefined) return undefined;
  const { permit, grants = [], entries, reported } = details;
  const next = permit && (nextBoots[permit.next] ?? `503: ${permit.why}`);
  const shownGrants = grants.map(
    ({ key, generation, scope, until, isOpen, why }) =>
      html`<li><code>${key}</code> generation ${generation}, ${scope}: ${isOpen ? `open until ${until}` : why}</li>\n`,
  );
  const shownEntries = entries.map(
    ({ state, grant, generation, changedAt, addresses, otherAddress }) =>
      html`<li>${state}${grant !== undefined && html` by <code>${grant}</code> generation ${generation}`}, ${changedAt}
${addresses.length > 0 && `from ${addresses.join(" and ")}`}
${otherAddress !== undefined && `; ${otherAddress} asked for a Secret's text, which is closed since then`}</li>\n`,
  );
  return html`<h2>Install</h2>
${facts([
  ["Next boot", next],
  ["Reported", reported && `${reported.state} ${reported.progress ?? ""} ${reported.message ?? ""}`.trim()],
  ["Grants", shownGrants.length > 0 && html`<ul>${shownGrants}</ul>`],
  ["Ledger", shownEntries.length > 0 && html`<ul>${shownEntries}</ul>`],
])}`;
}
