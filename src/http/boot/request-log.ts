/**
 * Records each ended request of the boot listener: in a log line, in two metrics, and in a history entry. Log line and
 * entry have the id of the boot. The log line has only part of what a machine sends, and no long values. davit never
 * logs rendered configs.
 */

import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { type Labels, sentLabels } from "../../model/labels/labels.ts";
import type { BootIds, NumberedBoot } from "../../records/history/boot-ids.ts";
import { isScriptGiven } from "../../records/history/boot-rule.ts";
import type { History } from "../../records/history/history.ts";
import type { BegunRequest, EndedRequest, RequestedMachine, RequestSink } from "./access-log.ts";

export interface RequestLogOptions {
  readonly log: Log;
  readonly metrics: Pick<Metrics, "bootRequestSeries">;
  /** Stores history entries. Without it, davit keeps none. */
  readonly history?: Recorder | undefined;
  /** Finds the boot of a request. Without it, no log line has the id of a boot. */
  readonly boots?: NumberedBoots | undefined;
  /** Called for each answer to a machine. */
  readonly answered?: ((machine: RequestedMachine) => void) | undefined;
}

/** Longer label values and paths are left out of the log line, because strangers can send anything. */
const maxLoggedLength = 1024;

/** Returns a sink that records each request when it has ended. */
export function requestLog({ log, metrics, history, boots, answered }: RequestLogOptions): RequestSink {
  const count = requestCounter(metrics);
  return (begun) => {
    const { route } = begun;
    const bootOf = bootFinder(boots, begun);
    return (ended) => {
      const { machine, isSignature, status, durationMs } = ended;
      const endpoint = count(countedAs(route, isSignature), status, durationMs / 1000);
      const { number = 0, id } = bootOf?.({ endpoint, machine, status, durationMs }) ?? {};
      if (history !== undefined) recordRequest(history, begun, ended, { endpoint, boot: number });
      // A report asks for nothing that a Group gives.
      if (machine !== undefined && endpoint !== reportEndpoint) answered?.(machine);
      log.info(entryOf(begun, ended, id), "request");
    };
  };
}

/** Every entry has all members, because objects of one shape are faster to make. The log line omits undefined ones. */
function entryOf({ method, path }: BegunRequest, ended: EndedRequest, boot: string | undefined): LogEntry {
  const { machine, isSignature, status, durationMs, isCut } = ended;
  return {
    boot,
    method,
    path: brief(path),
    status,
    group: machine?.group,
    profile: machine?.profile,
    mac: brief(machine?.labels.get("mac")),
    uuid: brief(machine && sentLabels(machine.labels).get("uuid")),
    signature: isSignature ? true : undefined,
    durationMs: Math.round(durationMs * 10) / 10,
    aborted: isCut ? true : undefined,
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
function requestCounter({ bootRequestSeries }: RequestLogOptions["metrics"]) {
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

type NumberedBoots = Pick<BootIds, "named" | "unnamed" | "reported" | "ended">;

/** The answer to a request, when it has ended. */
interface EndedAnswer {
  /** The endpoint's name in metrics. */
  readonly endpoint: string;
  /** Undefined if the request named none. */
  readonly machine: { readonly labels: Labels } | undefined;
  readonly status: number;
  readonly durationMs: number;
}

const assetRoute = "/assets/*";
/** The endpoint of reports, in metrics. */
export const reportEndpoint = "report";

/**
 * Call it when a request begins: a download may end when the machine is in another boot.
 * @returns a function that returns the boot when the answer has ended; undefined if nobody numbers boots.
 */
function bootFinder(
  boots: NumberedBoots | undefined,
  { address, method, rawQuery, startedMs, route }: Omit<BegunRequest, "path">,
): ((ended: EndedAnswer) => NumberedBoot | undefined) | undefined {
  if (boots === undefined || address === undefined) return undefined;
  const begun = { address, isHead: method === "HEAD", startedMs };
  const unnamed = (endpoint: string) => boots.unnamed({ ...begun, endpoint });
  // A request with labels has a query. That of an asset may have a digest.
  const early = rawQuery === "" || route === assetRoute ? unnamed(route?.slice(1) ?? "") : undefined;
  return ({ endpoint, machine, status, durationMs }) => {
    const asked = { ...begun, endpoint };
    const boot = machine === undefined ? (early ?? unnamed(endpoint)) : ofMachine(boots, asked, machine);
    if (boot !== undefined) boots.ended(boot, asked, { status, endMs: startedMs + durationMs });
    return boot;
  };
}

function ofMachine(
  boots: NumberedBoots,
  asked: Parameters<NumberedBoots["named"]>[0],
  { labels }: { readonly labels: Labels },
): NumberedBoot | undefined {
  const sent = sentLabels(labels);
  return asked.endpoint === reportEndpoint ? boots.reported(asked, sent) : boots.named(asked, sent);
}

/** Stores history entries. */
export type Recorder = Pick<History, "record">;

/** What the log has found out about a request. */
interface RequestNumbers {
  /** The endpoint's name in metrics. */
  readonly endpoint: string;
  /** As in `SeenRequest`. */
  readonly boot: number;
}

/** The endpoint that is not recorded. Load balancers request it all the time; machines never do. */
const ignoredEndpoint = "root";

/** Endpoints with many paths: their entries keep the path. For other endpoints the name is enough. */
const pathEndpoints: ReadonlySet<string> = new Set([
  "assets",
  "other",
  ...["", ".sig", ".asc"].map((ending) => `generic-part${ending}`),
]);

/** A longer path keeps only its beginning: strangers can send anything. */
const maxPathLength = 512;

/** Records a request, unless the address of its client is unknown. */
function recordRequest(
  recorder: Recorder,
  { method, path, address, startedMs }: BegunRequest,
  { machine, status, announcedBytes, takenBytes, isCut, durationMs }: EndedRequest,
  { endpoint, boot }: RequestNumbers,
): void {
  if (endpoint === ignoredEndpoint || address === undefined) return;
  const isHead = method === "HEAD";
  recorder.record({
    startedMs,
    durationMs,
    address,
    endpoint,
    path: pathEndpoints.has(endpoint) ? path.slice(0, maxPathLength) : machine?.missing,
    isHead,
    status,
    group: machine?.group,
    sentBytes: isHead ? 0 : isCut ? takenBytes : (announcedBytes ?? takenBytes),
    ofBytes: announcedBytes,
    isCut,
    refusal: machine?.refusal,
    query: machine?.rawQuery,
    boot,
    profile: machine?.profile,
    script: isScriptGiven({ endpoint, isHead, status }) ? machine?.scriptSha256 : undefined,
  });
}
