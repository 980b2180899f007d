/** Converts a finished request of the boot listener into a history entry. */

import type { History } from "../../records/history/history.ts";
import type { BegunRequest, EndedRequest } from "./access-log.ts";

/** Stores history entries. */
export type Recorder = Pick<History, "record">;

/** What the log has found out about a request. */
export interface RequestNumbers {
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
export function recordRequest(
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
  });
}
