/** From a finished request of the boot listener to what the history keeps of it. */

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

/** What load balancers ask again and again is no machine's. */
const ignoredEndpoint = "root";

/** These have many paths: which one was asked for is half of what there is to know. */
const pathEndpoints: ReadonlySet<string> = new Set([
  "assets",
  "other",
  ...["", ".sig", ".asc"].map((ending) => `generic-part${ending}`),
]);

/** Of a longer path the beginning is kept: a history is no place for whatever a stranger sends. */
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
