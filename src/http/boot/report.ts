/**
 * `/report/<token>`: the only route by which a machine changes something. A report can close the machine's install, and
 * never opens one.
 *
 * POST takes a form, a query or JSON. GET counts only with `?state=`, for clients that cannot POST: without it, a GET
 * may come from a person who opens the URL. HEAD never reports. The token is the machine's secret, so no log, metric or
 * history has it.
 */

import { unreachable } from "../../lib/errors.ts";
import { ReportError, reportOfFields, reportOfJson } from "../../model/permits/machine-report.ts";
import type { MachineReport, PermitDesk, ReportOutcome } from "../../model/permits/permit-desk.ts";
import { plainText } from "../../render/core/rendered.ts";
import type { Clients } from "../client-shares.ts";
import { RequestError } from "../errors.ts";
import { type Answer, type Exchange, readSmallBody } from "../exchange.ts";
import type { RequestedMachine } from "./access-log.ts";
import type { BootRoute } from "./routes.ts";

interface ReportRouteOptions {
  readonly desk: Pick<PermitDesk, "report">;
  /** Finds the address of the machine that reports. */
  readonly clients: Clients;
  /** Returns the machine that a token names, for log and history. It does not check the token. */
  readonly machineOf?: ((token: string) => RequestedMachine | undefined) | undefined;
}

const prefix = "/report/";

const maxFormBytes = 4 * 1024;
const maxJsonBytes = 64 * 1024;
const tokenShape = /^[\w-]{16,64}$/;
/** When a machine may send its report again. */
const retryAfterSeconds = 1;

/** Makes the route of reports. */
export function reportRoute({ desk, clients, machineOf }: ReportRouteOptions): BootRoute {
  return {
    url: `${prefix}*`,
    methods: ["GET", "POST"],
    answer: async (exchange, visit) => {
      const token = exchange.path.slice(prefix.length);
      // The route matched the decoded path. No token has an escape.
      if (!exchange.path.startsWith(prefix) || !tokenShape.test(token)) return outcomeAnswer("unknown");
      try {
        const report = await readReport(exchange);
        const outcome = await desk.report(token, report, clients.addressOf(exchange.request));
        if (proving.has(outcome)) visit.machine = machineOf?.(token);
        return outcomeAnswer(outcome);
      } catch (error) {
        if (error instanceof ReportError) return textAnswer(400, error.message);
        throw error;
      }
    },
  };
}

/** The outcomes of a token that the ledger has checked. */
const proving: ReadonlySet<ReportOutcome> = new Set(["taken", "final"]);

/** @throws {ReportError | RequestError} */
async function readReport({ request, rawQuery }: Exchange): Promise<MachineReport> {
  const query = new URLSearchParams(rawQuery);
  if (request.method === "GET") return reportOfFields(query);
  refuseOtherTypes(request.headers);
  const body = await readSmallBody(request, maxJsonBytes);
  // The content type does not decide: curtin sends JSON as a form, and cloud-init sends it without a type.
  if (body.trimStart().startsWith("{")) return reportOfJson(body, query);
  if (Buffer.byteLength(body) > maxFormBytes) throw new RequestError("bodyTooLarge");
  const form = new URLSearchParams(body);
  for (const name of new Set(form.keys())) query.delete(name);
  return reportOfFields(new URLSearchParams([...query, ...form]));
}

const knownTypes = new Set(["", "application/x-www-form-urlencoded", "application/json", "text/plain"]);

/** @throws {RequestError} unsupportedType. */
function refuseOtherTypes(headers: Exchange["request"]["headers"]): void {
  const type = (headers["content-type"] ?? "").split(";", 1)[0] ?? "";
  const coding = headers["content-encoding"] ?? "identity";
  if (!knownTypes.has(type.trim().toLowerCase()) || coding.toLowerCase() !== "identity")
    throw new RequestError("unsupportedType", { connection: "close" });
}

function outcomeAnswer(outcome: ReportOutcome): Answer {
  switch (outcome) {
    case "taken":
      return textAnswer(200, "taken");
    case "unknown":
      return textAnswer(404, "404 no install has this token");
    case "final":
      return textAnswer(409, "409 the install has ended");
    case "tooMany":
      return textAnswer(429, "429 too many reports", retry);
    case "late":
      return textAnswer(503, "503 the report cannot be logged now", retry);
    default:
      return unreachable(outcome);
  }
}

const retry = ["Retry-After", String(retryAfterSeconds)];

function textAnswer(status: number, text: string, headers: readonly string[] = []): Answer {
  const words = status === 400 ? `400 ${text}` : text;
  return { status, headers: ["Content-Type", plainText, "Cache-Control", "no-store", ...headers], body: `${words}\n` };
}
