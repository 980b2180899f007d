/**
 * Records each request of the boot listener after its answer is sent or its client has gone. It writes a log line,
 * counts in two metrics, and adds a history entry. Log line and entry have the id of the boot. The log line has only
 * part of what a machine sends, and no long values. davit never logs rendered configs.
 */

import type { BootRefusal } from "../../boot/core/boot-error.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type Labels, sentLabels } from "../../model/labels.ts";
import type { Rendered } from "../../render/core/rendered.ts";
import type { Exchange } from "../exchange.ts";
import { withoutToken } from "../logged-path.ts";
import { bootFinder, type NumberedBoots, reportEndpoint } from "./boot-finder.ts";
import { type EndedRequest, type Recorder, recordRequest } from "./request-recorder.ts";

/** The machine that sent a request, and what it was answered. */
export interface RequestedMachine {
  readonly labels: Labels;
  /** The query from which `labels` were read. */
  readonly rawQuery: string;
  /** `namespace/name`. */
  readonly group?: string | undefined;
  /** `namespace/name`. */
  readonly profile?: string | undefined;
  /** What the machine gets; for a signature, what is signed. */
  readonly rendered?: Rendered | undefined;
  /** Why the machine gets nothing. */
  readonly refusal?: BootRefusal | undefined;
}

export interface AccessLogOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "bootRequestSeries">;
  /** Where history entries are stored; undefined: nowhere. */
  readonly history?: Recorder | undefined;
  /** Finds the boot of a request; no line has one without it. */
  readonly boots?: NumberedBoots | undefined;
  /** Called for each answer to a machine. */
  readonly answered?: ((machine: RequestedMachine, answer: MachineAnswer) => void) | undefined;
}

/** What a machine was answered. */
export interface MachineAnswer {
  /** The endpoint's name in metrics. */
  readonly endpoint: string;
  readonly status: number;
  readonly isHead: boolean;
  /** The client's address; undefined if it has gone. */
  readonly address: string | undefined;
}

/** Longer label values and paths are left out of the log line, because strangers can send anything. */
const maxLoggedLength = 1024;

/** What the handler has found out about a request. The handler adds to this until the answer is sent. */
export interface LoggedRequest {
  /** The route that answers; undefined when there is none. */
  readonly route: string | undefined;
  /** The machine and the result; undefined until they are known. */
  machine: RequestedMachine | undefined;
  /** True when a signature was asked for. */
  isSignature: boolean;
}

/** Called when a request begins. Records the request when its response closes. */
export type AccessLog = (exchange: Exchange, request: LoggedRequest) => void;

export function accessLog(options: AccessLogOptions): AccessLog {
  const { log, clock, metrics, history, boots, answered } = options;
  const count = requestCounter(metrics);
  const note = noting(options);
  return ({ request: { method = "", socket }, response, path: sentPath, rawQuery }, request) => {
    const path = withoutToken(sentPath);
    const startedAtMs = clock.monotonicMs();
    // Read now, because a closed socket no longer has its address.
    const address = (history ?? boots ?? answered) && socket.remoteAddress;
    const bootOf = bootFinder(boots, { address, method, rawQuery, startedMs: startedAtMs }, request.route);
    response.on("close", () => {
      const durationMs = clock.monotonicMs() - startedAtMs;
      const { statusCode } = response;
      const { route, machine, isSignature } = request;
      const endpoint = count(countedAs(route, isSignature), statusCode, durationMs / 1000);
      const { number = 0, id } = bootOf?.({ endpoint, machine, status: statusCode, durationMs }) ?? {};
      note({ method, path, endpoint, machine, startedMs: startedAtMs, durationMs, address, boot: number }, response);
      // Every entry has all members, because objects of one shape are faster to make. The log line omits undefined
      // members.
      const entry: LogEntry = {
        boot: id,
        method,
        path: brief(path),
        status: statusCode,
        group: machine?.group,
        profile: machine?.profile,
        mac: brief(machine?.labels.get("mac")),
        uuid: brief(machine && sentLabels(machine.labels).get("uuid")),
        signature: isSignature ? true : undefined,
        durationMs: Math.round(durationMs * 10) / 10,
        aborted: response.writableFinished ? undefined : true,
      };
      log.info(entry, "request");
    });
  };
}

interface Ended extends EndedRequest {
  readonly machine: RequestedMachine | undefined;
}

/** Returns a function that passes on an ended request. */
function noting({ history, answered }: AccessLogOptions) {
  return (ended: Ended, response: Exchange["response"]): void => {
    const { address, machine, endpoint, method } = ended;
    if (history !== undefined) recordRequest(history, response, ended);
    // A report asks for nothing that a Group gives.
    if (machine !== undefined && endpoint !== reportEndpoint) {
      answered?.(machine, { endpoint, status: response.statusCode, isHead: method === "HEAD", address });
    }
  };
}

interface LogEntry {
  /** The id of the boot; undefined in doubt. */
  readonly boot: string | undefined;
  readonly method: string;
  readonly path: string | undefined;
  readonly status: number;
  readonly group: string | undefined;
  readonly profile: string | undefined;
  readonly mac: string | undefined;
  readonly uuid: string | undefined;
  /**
   * True if the request asked for a signature. The path alone does not show this: GRUB asks at the signed file's path.
   */
  readonly signature: true | undefined;
  readonly durationMs: number;
  /** The client disconnected before it had the whole answer. */
  readonly aborted: true | undefined;
}

interface Series {
  readonly endpoint: string;
  readonly add: (seconds: number) => void;
}

/**
 * Returns a function that counts a request in both metrics, and returns the endpoint's name in them. The function
 * remembers the series of each route and status: finding them by labels each time costs more than counting.
 */
function requestCounter({ bootRequestSeries }: AccessLogOptions["metrics"]) {
  const known = new Map<string | undefined, Map<number, Series>>();
  return (url: string | undefined, code: number, seconds: number): string => {
    const ofUrl = known.get(url) ?? new Map<number, Series>();
    let series = ofUrl.get(code);
    if (series === undefined) {
      const endpoint = endpointOf(url);
      series = { endpoint, add: bootRequestSeries(endpoint, code) };
      known.set(url, ofUrl.set(code, series));
    }
    series.add(seconds);
    return series.endpoint;
  };
}

/**
 * The route under which metrics count a request. GRUB asks for a signature at the signed file's path. Such a request
 * counts as one for the route where other clients get the signature.
 */
function countedAs(route: string | undefined, isSignature: boolean): string | undefined {
  if (route === undefined || !isSignature) return route;
  return /\.(sig|asc)$/.test(route) ? route : `${route}.sig`;
}

/**
 * The endpoint's name in metrics: one for each route, and `other` for all other paths. So strangers cannot add names.
 */
function endpointOf(url: string | undefined): string {
  if (url === undefined) return "other";
  return url === "/" ? "root" : url.replaceAll(/^\/|\/\*$/g, "").replace("/:name", "-part");
}

function brief(text: string | undefined): string | undefined {
  return text === undefined || text.length > maxLoggedLength ? undefined : text;
}
