/** Prints what the operations listener answers about machines, for a terminal. It makes every text visible. */

import { visible } from "../../lib/text/visible.ts";
import { isJsonObject, type JsonObject, type JsonValue, objectOf } from "../../model/json.ts";
import { type Paint, paintPhase, textTable } from "../core/paint.ts";

const columns = ["NAME", "IDENTITY", "GROUP", "PROFILE", "PHASE", "INSTALL", "CHANGED", "SEEN"] as const;
const maxEnded = 20;

/** Returns the machines of a list. */
export function machinesOf({ machines }: JsonObject): readonly JsonObject[] {
  return Array.isArray(machines) ? machines.filter(isJsonObject) : [];
}

/** Returns a table of machines with a heading. */
export function machineTable(machines: readonly JsonObject[], paint: Paint): string {
  if (machines.length === 0) return "no machine\n";
  const paintCell = (column: string, cell: string) => (column === "PHASE" ? paintPhase(paint, cell) : cell);
  return textTable({ columns, rows: machines.map(rowOf), paint, paintCell });
}

/** Returns everything about one machine, a line for each fact. */
export function machineText(machine: JsonObject): string {
  const { permit, reported, grants, entries, labels, seen } = machine;
  return [
    ...factLines(machine),
    ...(isJsonObject(labels) && Object.keys(labels).length > 0 ? [fact("labels", pairs(labels))] : []),
    ...(isJsonObject(permit) ? [fact("next boot", nextText(permit))] : []),
    ...objectsIn(grants).map((grant) => fact("grant", grantText(grant))),
    ...(isJsonObject(reported) ? [fact("reported", reportedText(reported))] : []),
    ...objectsIn(entries).map((entry) => fact("entry", entryText(entry))),
    ...(isJsonObject(seen) ? [fact("seen", seenText(seen))] : []),
    "",
  ].join("\n");
}

/** Returns the ledger's totals. */
export function ledgerText({ id, health, now, entries, adopted, ended }: JsonObject): string {
  const all = objectsIn(ended);
  const more = all.length > maxEnded ? [fact("", `${all.length - maxEnded} more: --output json lists them`)] : [];
  return [
    fact("ledger", id === null ? "none yet" : textOf(id)),
    fact("health", textOf(health)),
    fact("time", timeText(now)),
    fact("entries", textOf(entries)),
    ...objectsIn(adopted).map(({ group, until }) => fact("adopted", `${textOf(group)} until ${timeText(until)}`)),
    ...all
      .slice(0, maxEnded)
      .map(({ grant, generation }) => fact("ended", `${textOf(grant)} up to generation ${textOf(generation)}`)),
    ...more,
    "",
  ].join("\n");
}

function rowOf({ name, identities, group, profile, phase, install, lastChange, seen }: JsonObject): readonly string[] {
  return [
    textOf(name),
    identityText(identities, seen),
    textOf(group),
    textOf(profile),
    textOf(phase),
    isJsonObject(install) ? installText(install) : "-",
    timeText(lastChange),
    timeText(isJsonObject(seen) ? seen.at : undefined),
  ];
}

function factLines(machine: JsonObject): readonly string[] {
  const { name, identities, group, profile, phase, origin, isRefused, approved, hold, needsApproval } = machine;
  const needed = needsApproval === true ? ", and its Group needs it" : "";
  return [
    fact("machine", name === undefined ? "no Machine object" : `${textOf(name)} (${textOf(origin)})`),
    ...(isRefused === true ? [fact("", "davit refuses its newest version: only its hold counts")] : []),
    ...(Array.isArray(identities) ? identities : []).map((identity) => fact("identity", textOf(identity))),
    fact("group", textOf(group)),
    fact("profile", textOf(profile)),
    fact("phase", textOf(phase)),
    ...(approved === undefined ? [] : [fact("approved", `${approved === true ? "yes" : "no"}${needed}`)]),
    ...(hold === undefined ? [] : [fact("hold", hold === true ? "yes" : "no")]),
  ];
}

/** People recognise a MAC address more easily than a uuid. */
function identityText(identities: JsonValue | undefined, seen: JsonValue | undefined): string {
  const all = (Array.isArray(identities) ? identities : []).map(textOf);
  const first = all.find((text) => text.startsWith("mac/")) ?? all[0];
  const sent = objectOf(objectOf(seen).labels);
  if (first === undefined) return textOf(sent.serial ?? sent.hostname);
  return first.slice(first.indexOf("/") + 1);
}

function installText({ state, generation }: JsonObject): string {
  return generation === undefined ? textOf(state) : `${textOf(state)} ${textOf(generation)}`;
}

const nextTexts: Readonly<Record<string, string>> = {
  claim: "an install: a grant is open",
  granted: "the same script again: it has claimed an install just now",
  disk: "its disk",
};

function nextText({ next, why }: JsonObject): string {
  const known = typeof next === "string" && Object.hasOwn(nextTexts, next) ? nextTexts[next] : undefined;
  if (known === undefined) return `503, ${textOf(why)}`;
  return why === undefined ? known : `${known}: ${textOf(why)}`;
}

function grantText({ key, generation, until, scope, isOpen, why }: JsonObject): string {
  const state = isOpen === true ? `open until ${timeText(until)}` : textOf(why);
  return `${textOf(key)} generation ${textOf(generation)}, ${textOf(scope)}: ${state}`;
}

function reportedText({ state, progress, message, at }: JsonObject): string {
  const details = [
    progress === undefined ? "" : ` ${textOf(progress)} %`,
    message === undefined ? "" : `: ${textOf(message)}`,
  ];
  return `${textOf(state)}${details.join("")} (${timeText(at)})`;
}

function entryText(entry: JsonObject): string {
  const { id, grant, changedAt, addresses, otherAddress } = entry;
  const by = grant === undefined ? "" : ` by ${textOf(grant)}`;
  const seen = (Array.isArray(addresses) ? addresses : []).map(textOf);
  const from = seen.length === 0 ? "" : `, from ${seen.join(" and ")}`;
  const closed = otherAddress === undefined ? "" : `; a Secret's text is closed: ${textOf(otherAddress)} asked for it`;
  return `${textOf(id)}: ${installText(entry)}${by} since ${timeText(changedAt)}${from}${closed}`;
}

function seenText({ at, addresses, labels }: JsonObject): string {
  const from = (Array.isArray(addresses) ? addresses : []).map(textOf).join(" and ");
  return `${timeText(at)} at ${from}: ${isJsonObject(labels) ? pairs(labels) : ""}`;
}

function fact(name: string, value: string): string {
  return `${name.padEnd(11)}${value}`;
}

function pairs(labels: JsonObject): string {
  return Object.entries(labels)
    .map(([name, value]) => `${visible(name)}=${textOf(value)}`)
    .join(" ");
}

function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** RFC 3339 without milliseconds. */
function timeText(value: JsonValue | undefined): string {
  return textOf(value).replace(/\.\d+Z$/, "Z");
}

function textOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "-";
  return visible(typeof value === "object" ? JSON.stringify(value) : String(value));
}
