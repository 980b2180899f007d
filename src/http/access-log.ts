/**
 * One log line and two metrics for each request of the boot listener, once its answer is out or its client is gone.
 * What a machine says of itself is logged only in part and never when it is long; rendered text never is.
 */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Labels } from "../model/labels.ts";
import { pathOf } from "./server.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who asked and what was found, as far as it is known; only on routes that ask for a machine. */
    machine?: RequestedMachine;
  }
}

/** The part of an answer that its log line tells. */
export interface RequestedMachine {
  readonly labels: Labels;
  /** `namespace/name`. */
  readonly group?: string | undefined;
  /** `namespace/name`. */
  readonly profile?: string | undefined;
}

export interface AccessLogOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "bootRequests" | "bootRequestSeconds">;
}

/** Longer label values and paths are not logged: a log is no place for whatever a stranger sends. */
const maxLoggedLength = 1024;

/** Makes what `createServer` takes as `observe`. */
export function accessLog({ log, clock, metrics }: AccessLogOptions) {
  const count = requestCounter(metrics);
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const startedAtMs = clock.monotonicMs();
    reply.raw.on("close", () => {
      const durationMs = clock.monotonicMs() - startedAtMs;
      const { statusCode } = reply.raw;
      count(request.routeOptions?.url, statusCode, durationMs / 1000);
      const { machine } = request;
      // One shape for every request, which is faster to make; what is undefined is left out of the line.
      const entry: LogEntry = {
        method: request.method,
        path: brief(pathOf(request)),
        status: statusCode,
        group: machine?.group,
        profile: machine?.profile,
        mac: brief(machine?.labels.get("mac")),
        uuid: brief(machine?.labels.get("uuid")),
        durationMs: Math.round(durationMs * 10) / 10,
        aborted: reply.raw.writableFinished ? undefined : true,
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
  readonly durationMs: number;
  /** The client was gone before it had the whole answer. */
  readonly aborted: true | undefined;
}

type Series = (seconds: number) => void;

/** Finds the two series of a request by its route; looking them up by labels each time costs more than counting. */
function requestCounter({ bootRequests, bootRequestSeconds }: AccessLogOptions["metrics"]) {
  const known = new Map<string | undefined, Map<number, Series>>();
  return (url: string | undefined, code: number, seconds: number): void => {
    const ofUrl = known.get(url) ?? new Map<number, Series>();
    let series = ofUrl.get(code);
    if (series === undefined) {
      const endpoint = endpointOf(url);
      const counter = bootRequests.labels({ endpoint, code });
      const histogram = bootRequestSeconds.labels({ endpoint });
      series = (value) => {
        counter.inc();
        histogram.observe(value);
      };
      known.set(url, ofUrl.set(code, series));
    }
    series(seconds);
  };
}

/** A closed set: the routes, and `other` for everything that has none. */
function endpointOf(url: string | undefined): string {
  if (url === undefined) return "other";
  return url === "/" ? "root" : url.replaceAll(/^\/|\/\*$/g, "");
}

function brief(text: string | undefined): string | undefined {
  return text === undefined || text.length > maxLoggedLength ? undefined : text;
}
