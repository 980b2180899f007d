/**
 * Follows each request of the boot listener, from its head until its answer is sent or its client has gone. The result
 * is plain data, because another thread may keep the log and the history.
 */

import type { Clock } from "../../lib/clock.ts";
import type { Labels } from "../../model/labels/labels.ts";
import type { BootRefusal } from "../../model/refusals.ts";
import { type Exchange, withoutToken } from "../exchange.ts";

/** The machine that sent a request, and the answer that it got. */
export interface RequestedMachine {
  readonly labels: Labels;
  /** The query from which `labels` were read. */
  readonly rawQuery: string;
  /** `namespace/name`. */
  readonly group?: string | undefined;
  /** `namespace/name`. */
  readonly profile?: string | undefined;
  /** The SHA-256, in hex, of the boot script that the machine gets, or that is signed. Undefined for other configs. */
  readonly scriptSha256?: string | undefined;
  /** Why the machine gets nothing. */
  readonly refusal?: BootRefusal | undefined;
  /** The path of the missing file, if the request was refused because of one. */
  readonly missing?: string | undefined;
}

/** What is known of a request when it begins. */
export interface BegunRequest {
  readonly method: string;
  /** Without the query, and without the token of a report. A path that names a machine is as `byQuery` returns it. */
  readonly path: string;
  readonly rawQuery: string;
  /** The route that answers; undefined for an unknown path. */
  readonly route: string | undefined;
  /** The client's address; undefined if it has gone. */
  readonly address: string | undefined;
  /** By the monotonic clock. */
  readonly startedMs: number;
}

/** What is known of a request when its answer is sent or its client has gone. */
export interface EndedRequest {
  /** Undefined if the request named no machine. */
  readonly machine: RequestedMachine | undefined;
  readonly isSignature: boolean;
  readonly status: number;
  /** The length of the answer's body, if the answer has one. */
  readonly announcedBytes: number | undefined;
  /** The bytes of the body that the connection has taken. */
  readonly takenBytes: number;
  /** The client disconnected before it had the whole answer. */
  readonly isCut: boolean;
  readonly durationMs: number;
}

/** Called when a request begins. @returns a function to call when it has ended. */
export type RequestSink = (begun: BegunRequest) => (ended: EndedRequest) => void;

/** What the handler has found out about a request. The handler adds to this until the answer is sent. */
export interface LoggedRequest {
  /** The route that answers; undefined for an unknown path. */
  readonly route: string | undefined;
  /** The machine and the result; undefined until they are known. */
  machine: RequestedMachine | undefined;
  /** True when a signature was asked for. */
  isSignature: boolean;
}

/** Called when a request begins. Records the request when its response closes. */
export type AccessLog = (exchange: Exchange, request: LoggedRequest) => void;

export interface FollowingOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly follow: RequestSink;
}

/** Returns an access log that hands each request to `follow`. */
export function requestFollower({ clock, follow }: FollowingOptions): AccessLog {
  return ({ request: { method = "", socket }, response, path, rawQuery }, request) => {
    const { route } = request;
    const startedMs = clock.monotonicMs();
    // Read now, because a closed socket no longer has its address.
    const address = socket.remoteAddress;
    const end = follow({ method, path: withoutToken(path), rawQuery, route, address, startedMs });
    response.on("close", () => {
      const { machine, isSignature } = request;
      const { statusCode: status, announcedBytes, takenBytes } = response;
      const isCut = !response.writableFinished;
      const durationMs = clock.monotonicMs() - startedMs;
      end({ machine, isSignature, status, announcedBytes, takenBytes, isCut, durationMs });
    });
  };
}
