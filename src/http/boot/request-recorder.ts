/** Converts a finished request of the boot listener into a history entry. */

import type { ServerResponse } from "node:http";
import type { BootRefusal } from "../../boot/boot-error.ts";
import type { History } from "../../history/history.ts";
import { refusalNumber } from "../refusal-numbers.ts";
import { WireResponse } from "../response-headers.ts";

/** Takes finished requests in. */
export type Recorder = Pick<History, "record">;

/** What is known of a request besides its answer. */
export interface EndedRequest {
  readonly method: string;
  /** As sent, without a query. */
  readonly path: string;
  /** As metrics name it. */
  readonly endpoint: string;
  readonly machine:
    | { readonly rawQuery: string; readonly group?: string | undefined; readonly refusal?: BootRefusal | undefined }
    | undefined;
  /** By the monotonic clock. */
  readonly startedMs: number;
  readonly durationMs: number;
  /** Of the client. */
  readonly address: string;
}

/** Load balancers ask for this again and again; machines never do. */
const ignoredEndpoint = "root";

/** These have many paths: the requested path is half of the information. */
const pathEndpoints: ReadonlySet<string> = new Set([
  "assets",
  "other",
  ...["", ".sig", ".asc"].map((ending) => `generic-part${ending}`),
]);

/** A longer path keeps only its beginning: strangers may send anything. */
const maxPathLength = 512;

export function recordRequest(recorder: Recorder, response: ServerResponse, ended: EndedRequest): void {
  const { method, path, endpoint, machine, startedMs, durationMs, address } = ended;
  if (endpoint === ignoredEndpoint) return;
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
  });
}

const nothingSent = { announcedBytes: undefined, takenBytes: 0 };
