/**
 * `/history` shows what machines asked for recently, and where each boot stopped. Without a query it lists the machines
 * that were seen last. With `mac`, `uuid`, `hostname`, `serial` or `address` it shows everything recorded about the
 * matching machines. It answers in JSON if the client prefers `application/json`, otherwise in text. Both escape what
 * machines sent.
 */

import type { FastifyPluginAsync } from "fastify";
import type { BootFiles } from "../../boot/making/boot-scripts.ts";
import { toRfc3339 } from "../../lib/clock.ts";
import { type Labels, labelsFromQuery, sentLabels } from "../../model/labels/labels.ts";
import { bootIdText } from "../../records/history/boot-ids.ts";
import {
  type BootEnd,
  bootsOf,
  missingOf,
  type PastBoot,
  plainStage,
  type StageOf,
} from "../../records/history/boots.ts";
import type { History } from "../../records/history/history.ts";
import type { HistoryView, MachineHistory, PastRequest } from "../../records/history/history-view.ts";
import { parseInitrd } from "../../render/boot/initrd.ts";
import { RequestError } from "../errors.ts";
import { rawQueryOf, show } from "./server.ts";

export interface HistoryRoutesOptions {
  readonly history: Pick<History, "current">;
  readonly bootFilesOf: BootFilesOf;
}

/** The most machines in an answer: a person does not read more. */
const maxMachines = 50;

const askedLabels: ReadonlySet<string> = new Set(["mac", "uuid", "hostname", "serial"]);

export const historyRoutes: FastifyPluginAsync<HistoryRoutesOptions> = async (app, { history, bootFilesOf }) => {
  app.get("/history", async (request, reply) => {
    const rawQuery = rawQueryOf(request);
    const view = await history.current();
    const report = rawQuery === "" ? listReport : machinesReport;
    const machines = rawQuery === "" ? view.recent(maxMachines) : find(view, rawQuery);
    const stageOf = stagesBy(bootFilesOf);
    return show(reply, {
      json: () => ({ ...lacksJson(view), ...report.json(machines, stageOf) }),
      text: () => `${lacksText(view)}${report.text(machines, stageOf)}`,
    });
  });
};

const listReport = { json: listJson, text: listText };
const machinesReport = { json: machinesJson, text: machinesText };

/**
 * Finds the machines that a query names. It accepts every spelling of a label that machines may send.
 * @throws {RequestError} historyQuestion for a query of another form; notRecorded if no recorded machine matches.
 */
function find(view: HistoryView, rawQuery: string): readonly MachineHistory[] {
  const asked = sentLabels(labelsFromQuery(rawQuery));
  const address = asked.get("address");
  const labels = new Map([...asked].filter(([name]) => askedLabels.has(name)));
  const names = labels.size + (address === undefined ? 0 : 1);
  // `labelsFromQuery` drops a malformed MAC address, so the labels alone do not show the mistake.
  const isMacLost = /(?:^|&)mac=/i.test(rawQuery) && !labels.has("mac");
  if (names === 0 || names < asked.size || isMacLost) throw new RequestError("historyQuestion");
  const found = address === undefined || labels.size > 0 ? view.find(labels, maxMachines) : view.at(address);
  const there = address === undefined ? found : found.filter(({ addresses }) => addresses.includes(address));
  if (there.length === 0) throw new RequestError("notRecorded");
  return there;
}

/** Returns the files that a Group's machines get now; undefined if there are none, or the Group is gone. */
export type BootFilesOf = (group: string) => BootFiles | undefined;

/**
 * Returns a function that names the stage of a request. It recognizes the kernel and initrds of the Group's current
 * Profile. Any other file is shown by its path, such as one of an earlier Profile.
 */
export function stagesBy(bootFilesOf: BootFilesOf): StageOf {
  // Each Group's files are looked up once, not for each request.
  const known = new Map<string, BootFiles | undefined>();
  return (request, group) => {
    const { path, endpoint } = request;
    if (endpoint !== "assets" || path === undefined || group === undefined) return plainStage(request);
    if (!known.has(group)) known.set(group, bootFilesOf(group));
    const files = known.get(group);
    if (files !== undefined && pathOf(files.kernel) === path) return "kernel";
    const isInitrd = files?.initrd.some((text) => pathOf(parseInitrd(text).location) === path) === true;
    return isInitrd ? "initrd" : plainStage(request);
  };
}

/** The path of a location, without server and query. */
function pathOf(location: string): string {
  return location.replace(/^[a-z]+:\/\/[^/]*/i, "").replace(/[?#].*$/s, "");
}

/** Returns everything about these machines, with the latest boot of each first. */
function machinesJson(machines: readonly MachineHistory[], stageOf: StageOf): object {
  return {
    machines: machines.map((machine) => ({
      ...machineJson(machine),
      unclaimed: machine.unclaimed.map(({ address, count }) => ({ address, requests: count })),
      boots: latestFirst(machine, stageOf).map((boot) => ({
        ...bootJson(boot),
        requests: boot.requests.map((request) => requestJson(request, stageOf(request, boot.group))),
      })),
    })),
  };
}

/** Lists these machines, each with only its latest boot. */
function listJson(machines: readonly MachineHistory[], stageOf: StageOf): object {
  return {
    machines: machines.map((machine) => ({
      ...machineJson(machine),
      lastBoot: latestFirst(machine, stageOf).slice(0, 1).map(bootJson)[0],
    })),
  };
}

/** As `machinesJson`, but in lines of text. */
export function machinesText(machines: readonly MachineHistory[], stageOf: StageOf): string {
  return machines.map((machine) => machineText(machine, stageOf)).join("\n");
}

/** As `listJson`, but in text, one line for each machine. */
export function listText(machines: readonly MachineHistory[], stageOf: StageOf): string {
  if (machines.length === 0) return "no machine has asked for anything yet\n";
  const lines = machines.map((machine) => {
    const [boot] = latestFirst(machine, stageOf);
    const story = boot === undefined ? "" : `  ${boot.line}  (${endText(boot.end)})`;
    return `${toRfc3339(machine.lastSeenAtMs)}  ${nameText(machine)}${groupText(boot)}${story}\n`;
  });
  return lines.join("");
}

/** Describes the requests that are missing: those that were not recorded, and those that followers answered. */
function lacksJson({ unrecorded, missed }: HistoryView): object {
  const lost = unrecorded && {
    requests: unrecorded.count,
    firstAt: toRfc3339(unrecorded.firstAtMs),
    lastAt: toRfc3339(unrecorded.lastAtMs),
  };
  return { unrecorded: lost, missed: missed === 0 ? undefined : missed };
}

/** As `lacksJson`, but lines of text; empty if nothing is missing. */
function lacksText({ unrecorded, missed }: HistoryView): string {
  const lost =
    unrecorded &&
    `${unrecorded.count} requests from ${toRfc3339(unrecorded.firstAtMs)} to ${toRfc3339(unrecorded.lastAtMs)} ` +
      "came faster than they could be recorded: not shown\n\n";
  const untaken = `${missed} requests that followers answered could not be handed on: not shown\n\n`;
  return `${lost ?? ""}${missed === 0 ? "" : untaken}`;
}

function machineJson({ labels, addresses, lastSeenAtMs }: MachineHistory): object {
  return { labels: Object.fromEntries(labels), addresses, lastSeenAt: toRfc3339(lastSeenAtMs) };
}

function bootJson({ requests, numbers, group, line, end }: PastBoot): object {
  const { startedAtMs, endedAtMs } = spanOf(requests);
  const span = { startedAt: toRfc3339(startedAtMs), endedAt: toRfc3339(endedAtMs) };
  return { ids: numbers.map(bootIdText), ...span, group, line, end: endJson(end) };
}

function endJson(end: BootEnd): object {
  if (end.kind !== "refused") return end;
  const { refusal, ...rest } = end;
  return { ...rest, reason: refusal };
}

function requestJson(request: PastRequest, stage: string): object {
  const { endpoint, path, isHead, status, group, sentBytes, ofBytes, isCut, times, durationMs, address } = request;
  return {
    at: toRfc3339(request.startedAtMs),
    method: isHead ? "HEAD" : "GET",
    endpoint,
    path,
    stage,
    labels: Object.fromEntries(request.labels),
    group,
    status,
    reason: request.refusal,
    bytes: sentBytes,
    ofBytes,
    isCut,
    milliseconds: tenths(durationMs),
    times,
    lastAt: toRfc3339(request.lastStartedAtMs),
    address,
    isByAddress: request.isByAddress,
    via: request.via,
    boot: request.boot === 0 ? undefined : bootIdText(request.boot),
  };
}

function machineText(machine: MachineHistory, stageOf: StageOf): string {
  const notes = machine.unclaimed.map(
    ({ address, count }) =>
      `${count} of the requests from ${address} name no machine, and may be another one's that was there: not shown\n`,
  );
  const boots = latestFirst(machine, stageOf).map((boot) => `\n${bootText(boot, stageOf)}`);
  return [`${nameText(machine)}\n`, ...notes, ...boots].join("");
}

function bootText(boot: PastBoot, stageOf: StageOf): string {
  const { startedAtMs, endedAtMs } = spanOf(boot.requests);
  const took = seconds(endedAtMs - startedAtMs);
  const head = `boot of ${toRfc3339(startedAtMs)}, ${took}${groupText(boot)}${idsText(boot)}`;
  const requests = boot.requests.map((request) => {
    const stage = `${request.isHead ? "HEAD " : ""}${stageOf(request, boot.group)}`;
    const times =
      request.times > 1
        ? `${request.times} times within ${seconds(request.lastStartedAtMs - request.startedAtMs)}`
        : "";
    return [
      `+${seconds(request.startedAtMs - startedAtMs)}`.padStart(12),
      stage.padEnd(12),
      statusText({ ...request, missing: missingOf(request) }),
      request.isCut ? `cut, ${bytesText(request)}` : bytesText(request),
      `${tenths(request.durationMs)} ms`,
      times,
      request.isByAddress ? "by address" : "",
      request.via === undefined ? "" : `via ${request.via}`,
    ]
      .filter((part) => part !== "")
      .join("  ");
  });
  return [head, `  ${boot.line}`, `  ${endText(boot.end)}`, ...requests, ""].join("\n");
}

export function endText(end: BootEnd): string {
  switch (end.kind) {
    case "answered":
      return `last: ${end.stage}, answered in full`;
    case "refused":
      return `stopped at ${end.stage}: ${statusText(end)}`;
    case "cut":
      return `stopped in ${end.stage}: ${bytesText(end)} sent, then the client was gone`;
  }
}

export function statusText({ status, refusal, missing }: RefusedAnswer): string {
  return [String(status), refusal, missing].filter((part) => part !== undefined).join(" ");
}

type RefusedAnswer = Pick<Extract<BootEnd, { readonly kind: "refused" }>, "status" | "refusal" | "missing">;

export function bytesText({ sentBytes, ofBytes }: Pick<PastRequest, "sentBytes" | "ofBytes">): string {
  return ofBytes === undefined || ofBytes === sentBytes ? `${sentBytes} bytes` : `${sentBytes} of ${ofBytes} bytes`;
}

function nameText({ labels, addresses }: MachineHistory): string {
  const at = addresses.length === 0 ? "" : `at ${addresses.join(" and ")}`;
  return labels.size === 0 ? `a machine ${at} that has not named itself` : `${labelsText(labels)} ${at}`;
}

function labelsText(labels: Labels): string {
  return [...labels].map(([name, value]) => `${name}=${quoted(value)}`).join(" ");
}

/** Returns the ids of a boot in the log, as the end of a sentence; empty if none is known. */
export function idsText({ numbers }: PastBoot): string {
  return numbers.length === 0 ? "" : `, id ${numbers.map(bootIdText).join(" and ")}`;
}

function groupText(boot: PastBoot | undefined): string {
  return boot?.group === undefined ? "" : `, group ${boot.group}`;
}

/**
 * Makes a label's value safe for a terminal. A machine can send anything, even characters that move the cursor or
 * change the direction of text.
 */
function quoted(value: string): string {
  if (/^[\x21-\x7e]+$/.test(value) && !/["\\]/.test(value)) return value;
  return JSON.stringify(value).replaceAll(/[\p{Cc}\p{Cf}]/gu, (letter) => {
    return `\\u{${letter.codePointAt(0)?.toString(16)}}`;
  });
}

export function latestFirst({ requests }: MachineHistory, stageOf: StageOf): readonly PastBoot[] {
  return bootsOf(requests, stageOf).toReversed();
}

export function spanOf(requests: readonly PastRequest[]): { readonly startedAtMs: number; readonly endedAtMs: number } {
  const ends = requests.map(({ lastStartedAtMs, durationMs }) => lastStartedAtMs + durationMs);
  return { startedAtMs: requests[0]?.startedAtMs ?? 0, endedAtMs: Math.max(...ends) };
}

export function seconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(3)} s`;
}

export function tenths(durationMs: number): number {
  return Math.round(durationMs * 10) / 10;
}
