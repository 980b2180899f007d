/**
 * One log line, two metrics and a place in the history for each request of the boot listener, once its answer is out or
 * its client is gone.
 * What a machine says of itself is logged only in part and never when it is long; rendered text never is.
 */

import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { BootRefusal } from "../../boot/boot-error.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type Labels, sentLabels } from "../../model/labels.ts";
import { pathOf } from "../server.ts";
import { type Recorder, recordRequest } from "./request-recorder.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who asked and what was found, as far as it is known; only on routes that ask for a machine. */
    machine?: RequestedMachine;
    /** True when the answer is the signature of what the path, perhaps without an ending, stands for. */
    asksForSignature?: boolean;
  }
}

/** The part of an answer that its log line tells. */
export interface RequestedMachine {
  readonly labels: Labels;
  /** What they were read from. */
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

/** Longer label values and paths are not logged: a log is no place for whatever a stranger sends. */
const maxLoggedLength = 1024;

/** What is known of a request when its answer is out. */
export interface FinishedRequest {
  readonly method: string;
  readonly path: string;
  /** The route that answered; undefined when there was none. */
  readonly route: string | undefined;
  readonly machine: RequestedMachine | undefined;
  /** True when a signature was asked for. */
  readonly isSignature?: boolean | undefined;
}

export interface AccessLog {
  /** What `createServer` takes as `observe`. */
  readonly observe: (request: FastifyRequest, reply: FastifyReply) => void;
  /** The same for a request that Fastify does not see; `told` is asked at the end. */
  readonly follow: (response: ServerResponse, told: () => FinishedRequest) => void;
}

export function accessLog({ log, clock, metrics, history }: AccessLogOptions): AccessLog {
  const count = requestCounter(metrics);
  const follow: AccessLog["follow"] = (response, told) => {
    const startedAtMs = clock.monotonicMs();
    // Asked for at once: a socket that is closed does not know it any more.
    const address = history && response.req.socket.remoteAddress;
    response.on("close", () => {
      const durationMs = clock.monotonicMs() - startedAtMs;
      const { statusCode } = response;
      const { method, path, route, machine, isSignature } = told();
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
      // One shape for every request, which is faster to make; what is undefined is left out of the line.
      const entry: LogEntry = {
        method,
        path: brief(path),
        status: statusCode,
        group: machine?.group,
        profile: machine?.profile,
        mac: brief(machine?.labels.get("mac")),
        uuid: brief(machine && sentLabels(machine.labels).get("uuid")),
        signature: isSignature === true ? true : undefined,
        durationMs: Math.round(durationMs * 10) / 10,
        aborted: response.writableFinished ? undefined : true,
      };
      log.info(entry, "request");
    });
  };
  const observe: AccessLog["observe"] = (request, reply) =>
    follow(reply.raw, () => {
      const { method, machine, routeOptions, asksForSignature: isSignature } = request;
      return { method, path: pathOf(request), route: routeOptions?.url, machine, isSignature };
    });
  return { observe, follow };
}

interface LogEntry {
  readonly method: string;
  readonly path: string | undefined;
  readonly status: number;
  readonly group: string | undefined;
  readonly profile: string | undefined;
  readonly mac: string | undefined;
  readonly uuid: string | undefined;
  /** The answer is a signature, or why there is none. GRUB asks for those by the path of what is signed. */
  readonly signature: true | undefined;
  readonly durationMs: number;
  /** The client was gone before it had the whole answer. */
  readonly aborted: true | undefined;
}

interface Series {
  readonly endpoint: string;
  readonly add: (seconds: number) => void;
}

/**
 * Finds the two series of a request by its route; looking them up by labels each time costs more than counting.
 * What it makes tells the endpoint that it counted the request as.
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

/** The route; for a signature that GRUB asks for by the path of what is signed, the route that others take. */
function countedAs(route: string | undefined, isSignature: boolean | undefined): string | undefined {
  if (route === undefined || isSignature !== true) return route;
  return /\.(sig|asc)$/.test(route) ? route : `${route}.sig`;
}

/** A closed set: the routes, and `other` for everything that has none. */
function endpointOf(url: string | undefined): string {
  if (url === undefined) return "other";
  return url === "/" ? "root" : url.replaceAll(/^\/|\/\*$/g, "").replace("/:name", "-part");
}

function brief(text: string | undefined): string | undefined {
  return text === undefined || text.length > maxLoggedLength ? undefined : text;
}
