/** Converts a finished request of the boot listener into a history entry. */

import type { ServerResponse } from "node:http";
import type { BootRefusal } from "../../boot/core/boot-error.ts";
import type { History } from "../../history/history.ts";
import { refusalNumber } from "../refusal-numbers.ts";
import { WireResponse } from "../response-headers.ts";

/** Stores history entries. */
export type Recorder = Pick<History, "record">;

/** What is known of a request besides its answer. */
export interface EndedRequest {
  readonly method: string;
  /** The path as sent, without the query. */
  readonly path: string;
  /** The endpoint's name in metrics. */
  readonly endpoint: string;
  readonly machine:
    | { readonly rawQuery: string; readonly group?: string | undefined; readonly refusal?: BootRefusal | undefined }
    | undefined;
  /** When the request began, on the monotonic clock. */
  readonly startedMs: number;
  readonly durationMs: number;
  /** The client's address; undefined if it has gone. Then davit records nothing. */
  readonly address: string | undefined;
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

export function recordRequest(recorder: Recorder, response: ServerResponse, ended: EndedRequest): void {
  const { method, path, endpoint, machine, startedMs, durationMs, address, boot } = ended;
  if (endpoint === ignoredEndpoint || address === undefined) return;
  const isHead = method === "HEAD";
  const { announcedBytes, takenBytes } = response instanceof WireResponse ? response : nothingSent;
  const isCut = !response.writableFinished;
  recorder.record({
    startedMs,
    durationMs,
    address,
    endpoint,
    path: pathEndpoints.has(endpoint) ? path.slice(0, maxPathLength) : undefined,
    isHead,
    status: response.statusCode,
    group: machine?.group,
    sentBytes: isHead ? 0 : isCut ? takenBytes : (announcedBytes ?? takenBytes),
    ofBytes: announcedBytes,
    isCut,
    refusal: refusalNumber(machine?.refusal),
    query: machine?.rawQuery,
    boot,
  });
}

const nothingSent = { announcedBytes: undefined, takenBytes: 0 };
