/**
 * Reads what a machine reports about its install: fields of a query or of a form, JSON, or an event of cloud-init.
 * Installers send reports by many tools, so unknown fields are ignored. A known field with a bad value is refused.
 */

import { isJsonObject, type JsonObject, parseJsonObject } from "../json.ts";
import { reportStates } from "./permit.ts";
import type { MachineReport } from "./permit-desk.ts";

/** The name of the field that is missing or has a bad value. It never has text of the machine. */
export class ReportError extends Error {
  override readonly name = "ReportError";
  readonly field: ReportField;

  constructor(field: ReportField) {
    super(`bad report: ${field} is missing or has a bad value`);
    this.field = field;
  }
}

type ReportField = "state" | "progress" | "message" | "labels" | "body";

const maxMessageLength = 256;
const maxLabels = 16;
const maxLabelLength = 256;
const labelPrefix = "label.";

/**
 * Reads fields: `state`, `progress`, `message`, and `label.NAME` for each label.
 * @throws {ReportError}
 */
export function reportOfFields(fields: URLSearchParams): MachineReport {
  const labels = [...new Set(fields.keys())]
    .filter((name) => name.startsWith(labelPrefix))
    .map((name) => [name.slice(labelPrefix.length), only(fields, name, "labels")] as const);
  return reportOf({
    state: only(fields, "state", "state"),
    progress: only(fields, "progress", "progress"),
    message: only(fields, "message", "message"),
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
  });
}

/**
 * Reads JSON: `{"state": "...", "progress": 0, "message": "...", "labels": {...}}`, or an event as cloud-init and
 * Subiquity send it to a webhook. An event is only progress: they send each event once, so none may decide.
 * @param fields of the query. They count where the JSON lacks them.
 * @throws {ReportError}
 */
export function reportOfJson(text: string, fields: URLSearchParams): MachineReport {
  const value = parseJsonObject(text);
  if (value === undefined) throw new ReportError("body");
  if (typeof value.event_type === "string" && !("state" in value)) return reportOfEvent(value);
  const ofQuery = Object.fromEntries(["state", "progress", "message"].map((name) => [name, fields.get(name)]));
  return reportOf({ ...ofQuery, ...value });
}

function reportOfEvent({ name, description, event_type: type, result }: JsonObject): MachineReport {
  const words = [type, name, result].filter((word) => typeof word === "string" && word !== "").join(" ");
  const more = typeof description === "string" && description !== "" ? `: ${description}` : "";
  return { state: "progress", message: cleanMessage(`${words}${more}`) };
}

function reportOf({ state, progress, message, labels }: JsonObject | Readonly<Record<string, unknown>>): MachineReport {
  const known = reportStates.find((each) => each === state);
  if (known === undefined) throw new ReportError("state");
  return {
    state: known,
    ...numberIn(progress),
    ...messageIn(message),
    ...labelsIn(labels),
  };
}

function numberIn(progress: unknown): Pick<MachineReport, "progress"> {
  if (isAbsent(progress)) return {};
  const isNumber = typeof progress === "number" || (typeof progress === "string" && /^\d{1,3}(\.\d+)?$/.test(progress));
  const value = Math.round(Number(progress));
  if (!isNumber || !(value >= 0 && value <= 100)) throw new ReportError("progress");
  return { progress: value };
}

function messageIn(message: unknown): Pick<MachineReport, "message"> {
  if (isAbsent(message)) return {};
  if (typeof message !== "string") throw new ReportError("message");
  const clean = cleanMessage(message);
  return clean === "" ? {} : { message: clean };
}

function labelsIn(labels: unknown): Pick<MachineReport, "labels"> {
  if (isAbsent(labels)) return {};
  if (!isJsonObject(labels)) throw new ReportError("labels");
  const entries = Object.entries(labels).map(([name, value]) => {
    if (typeof value !== "string" || name === "" || Math.max(name.length, value.length) > maxLabelLength)
      throw new ReportError("labels");
    return [name, value] as const;
  });
  if (entries.length > maxLabels) throw new ReportError("labels");
  return entries.length === 0 ? {} : { labels: Object.fromEntries(entries) };
}

/** True for a field that was not sent. A shell sends an empty text for a variable that is not set. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

/** Returns one value of a field that was sent several times. @throws {ReportError} if the values differ. */
function only(fields: URLSearchParams, name: string, field: ReportField): string | undefined {
  const [value, ...others] = fields.getAll(name);
  if (others.some((other) => other !== value)) throw new ReportError(field);
  return value;
}

/**
 * Makes a message that a terminal, a log and an object's status can show: control characters and invisible ones become
 * spaces, and it is cut.
 */
export function cleanMessage(text: string): string {
  const clean = text.replaceAll(/[\p{C}\p{Z}]+/gu, " ").trim();
  return clean.length > maxMessageLength ? clean.slice(0, maxMessageLength).toWellFormed() : clean;
}
