/**
 * One log line, two metrics and a history entry for each request of the boot listener, after its answer is out or its
 * client is gone.
 * davit logs only part of what a machine sends, and no long values. It never logs rendered configs.
 */

import type { BootRefusal } from "../../boot/boot-error.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type Labels, sentLabels } from "../../model/labels.ts";
import type { Exchange } from "../exchange.ts";
import { type Recorder, recordRequest } from "./request-recorder.ts";

/** The part of an answer that its log line records. */
export interface RequestedMachine {
  readonly labels: Labels;
  /** The source of the labels. */
  readonly rawQuery: string;
  /** `namespace/name`. */
  readonly group?: string | undefined;
  /** `namespace/name`. */
  readonly profile?: string | undefined;
  /** Why the machine gets nothing. */
  readonly refusal?: BootRefusal | undefined;
}

export interface AccessLogOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "bootRequests" | "bootRequestSeconds">;
  /** Undefined: nothing is remembered. */
  readonly history?: Recorder | undefined;
}

/** Longer label values and paths are not logged: strangers may send anything. */
const maxLoggedLength = 1024;

/** What is known of a request until its answer is sent. */
export interface LoggedRequest {
  /** The route that answers; undefined when there is none. */
  readonly route: string | undefined;
  /** The asking machine and the result, as far as known. */
  machine: RequestedMachine | undefined;
  /** True when a signature was asked for. */
  isSignature: boolean;
}

/** Records a request once its answer is out. */
export type AccessLog = (exchange: Exchange, request: LoggedRequest) => void;

export function accessLog({ log, clock, metrics, history }: AccessLogOptions): AccessLog {
  const count = requestCounter(metrics);
  return ({ request: { method = "", socket }, response, path }, request) => {
    const startedAtMs = clock.monotonicMs();
    // Read now, because a closed socket no longer has its address.
    const address = history && socket.remoteAddress;
    response.on("close", () => {
      const durationMs = clock.monotonicMs() - startedAtMs;
      const { statusCode } = response;
      const { route, machine, isSignature } = request;
      const endpoint = count(countedAs(route, isSignature), statusCode, durationMs / 1000);
      if (history !== undefined && address !== undefined) {
        recordRequest(history, response, {
          method,
          path,
          endpoint,
          machine,
          startedMs: startedAtMs,
          durationMs,
          address,
        });
      }
      // One shape for every request, which is faster to make; the line omits undefined members.
      const entry: LogEntry = {
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

interface LogEntry {
  readonly method: string;
  readonly path: string | undefined;
  readonly status: number;
  readonly group: string | undefined;
  readonly profile: string | undefined;
  readonly mac: string | undefined;
  readonly uuid: string | undefined;
  /**
   * The answer is a signature, or the reason why there is none. GRUB asks for signatures at the signed file's path.
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
 * Finds the two series of a request by its route; looking them up by labels each time costs more than counting.
 * The counter returns the endpoint name that it used.
 */
function requestCounter({ bootRequests, bootRequestSeconds }: AccessLogOptions["metrics"]) {
  const known = new Map<string | undefined, Map<number, Series>>();
  return (url: string | undefined, code: number, seconds: number): string => {
    const ofUrl = known.get(url) ?? new Map<number, Series>();
    let series = ofUrl.get(code);
    if (series === undefined) {
      const endpoint = endpointOf(url);
      const counter = bootRequests.labels({ endpoint, code });
      const histogram = bootRequestSeconds.labels({ endpoint });
      const add = (value: number) => {
        counter.inc();
        histogram.observe(value);
      };
      series = { endpoint, add };
      known.set(url, ofUrl.set(code, series));
    }
    series.add(seconds);
    return series.endpoint;
  };
}

/** The route; if GRUB asks for a signature at the signed path, the route where other clients get that signature. */
function countedAs(route: string | undefined, isSignature: boolean): string | undefined {
  if (route === undefined || !isSignature) return route;
  return /\.(sig|asc)$/.test(route) ? route : `${route}.sig`;
}

/** A closed set: the routes, and `other` for everything else. */
function endpointOf(url: string | undefined): string {
  if (url === undefined) return "other";
  return url === "/" ? "root" : url.replaceAll(/^\/|\/\*$/g, "").replace("/:name", "-part");
}

function brief(text: string | undefined): string | undefined {
  return text === undefined || text.length > maxLoggedLength ? undefined : text;
}
