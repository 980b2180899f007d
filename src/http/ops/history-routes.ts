/**
 * `/history` shows what machines asked for recently, and where each boot stopped. Without a query it lists the machines
 * that were seen last. With `mac`, `uuid`, `hostname`, `serial` or `address` it shows everything recorded about the
 * matching machines. It answers in JSON if the client prefers `application/json`, otherwise in text.
 */

import type { FastifyPluginAsync } from "fastify";
import type { BootFiles } from "../../boot/making/boot-scripts.ts";
import { labelsFromQuery, sentLabels } from "../../model/labels/labels.ts";
import { plainStage, type StageOf } from "../../records/history/boots.ts";
import type { History } from "../../records/history/history.ts";
import type { HistoryView, MachineHistory } from "../../records/history/history-view.ts";
import { parseInitrd } from "../../render/boot/initrd.ts";
import { jsonText, plainText } from "../../render/core/rendered.ts";
import { RequestError } from "../errors.ts";
import {
  listJson,
  listText,
  machinesJson,
  machinesText,
  missedText,
  unrecordedJson,
  unrecordedText,
} from "./history-report.ts";
import { prefersJson, rawQueryOf } from "./server.ts";

export interface HistoryRoutesOptions {
  readonly history: Pick<History, "current">;
  readonly bootFilesOf: BootFilesOf;
}

/** The most machines in an answer: a person does not read more. */
const maxMachines = 50;

const askedLabels: ReadonlySet<string> = new Set(["mac", "uuid", "hostname", "serial"]);

export const historyRoutes: FastifyPluginAsync<HistoryRoutesOptions> = async (app, { history, bootFilesOf }) => {
  app.route({
    method: ["GET", "HEAD"],
    url: "/history",
    handler: async (request, reply) => {
      const rawQuery = rawQueryOf(request);
      const view = await history.current();
      const report = rawQuery === "" ? listReport : machinesReport;
      const machines = rawQuery === "" ? view.recent(maxMachines) : find(view, rawQuery);
      const stageOf = stagesBy(bootFilesOf);
      const isJson = prefersJson(request.headers.accept);
      const body = isJson ? jsonBody(report, view, [machines, stageOf]) : textBody(report, view, [machines, stageOf]);
      return (
        reply
          .headers({
            "content-type": isJson ? jsonText : plainText,
            "cache-control": "no-store",
            vary: "accept",
            "x-content-type-options": "nosniff",
          })
          // A Buffer, because Fastify would add a charset to the type of a JSON text.
          .send(Buffer.from(body))
      );
    },
  });
};

type ListTextParameters = Parameters<typeof listText>;

interface Report {
  readonly json: (...shown: ListTextParameters) => object;
  readonly text: (...shown: ListTextParameters) => string;
}

const listReport: Report = { json: listJson, text: listText };
const machinesReport: Report = { json: machinesJson, text: machinesText };

function jsonBody({ json }: Report, { unrecorded, missed }: HistoryView, shown: ListTextParameters): string {
  const lacks = { unrecorded: unrecordedJson(unrecorded), missed: missed === 0 ? undefined : missed };
  return `${JSON.stringify({ ...lacks, ...json(...shown) })}\n`;
}

function textBody({ text }: Report, { unrecorded, missed }: HistoryView, shown: ListTextParameters): string {
  return `${unrecordedText(unrecorded)}${missedText(missed)}${text(...shown)}`;
}

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
