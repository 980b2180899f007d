/** Why a list or a watch ended other than in good order, and what to do about it. */

import { ApiError } from "../client/api-error.ts";

/** Labels of `davit_watch_restarts_total`, beside `rewound` (gaps.ts). */
export type WatchFailureReason =
  /** The place in the history is no longer kept: 410. */
  | "expired"
  /** Nothing was heard for too long. */
  | "silent"
  /** A watch went on past the end that was asked for. */
  | "overdue"
  /** A watch that ends as soon as it has begun. */
  | "short"
  /** The connection was cut, or could not be made. */
  | "network"
  | "throttled"
  /** davit is not let in, or does not trust who answers: it needs other credentials, or another authority. */
  | "credentials"
  /** 403, 404 and the like: it needs somebody to change something. */
  | "refused"
  | "server"
  | "protocol"
  /** A list is empty where there were objects; it is asked again before it is believed. */
  | "emptied";

export interface WatchFailureDetail {
  readonly status?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

export class WatchFailure extends Error {
  override readonly name = "WatchFailure";
  readonly reason: WatchFailureReason;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(reason: WatchFailureReason, what: string, detail: WatchFailureDetail = {}) {
    super(what, { cause: detail.cause });
    this.reason = reason;
    this.status = detail.status;
    this.retryAfterMs = detail.retryAfterMs;
  }
}

/** A failure of a request as one of the watch that made it. Whatever is none is a bug and stays what it is. */
export function toWatchFailure(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const { status, retryAfterMs, failure } = error;
  const reason = failure === "answered" ? reasonOfStatus(status ?? 0) : failureReasons[failure];
  return new WatchFailure(reason, error.message, { status, retryAfterMs, cause: error });
}

const failureReasons = {
  unreachable: "network",
  untrusted: "credentials",
  late: "silent",
  credentials: "credentials",
  protocol: "protocol",
} as const;

/** A status of HTTP, or the code of an error event. */
export function reasonOfStatus(status: number): WatchFailureReason {
  if (status === 410) return "expired";
  if (status === 401) return "credentials";
  if (status === 429) return "throttled";
  return status >= 500 ? "server" : "refused";
}
