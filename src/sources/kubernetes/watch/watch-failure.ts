/** The failures of lists and watches, with their reasons. */

import { ApiError } from "../client/api-error.ts";

/**
 * Why a list or a watch failed. These are the values of the label `reason` of `davit_watch_restarts_total`, which also
 * has `unproven` (`object-watch.ts`).
 */
export type WatchFailureReason =
  /** The API server's history no longer has the version: 410. */
  | "expired"
  /** Nothing arrived for too long. */
  | "silent"
  /** A watch continued past its requested end. */
  | "overdue"
  /** A watch ended right after its start. */
  | "short"
  /** The connection was cut, or could not be made. */
  | "network"
  | "throttled"
  /** The API server rejects davit's login, or davit does not trust the server's certificate. */
  | "credentials"
  /** 403, 404 and the like: a person must change something. */
  | "refused"
  | "server"
  | "protocol"
  /** A list is older than a version that davit has seen. */
  | "rewound"
  /** A list is empty although davit holds objects. davit lists again before it believes this. */
  | "emptied";

interface WatchFailureDetail {
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

/** Returns a request's error as a `WatchFailure`. Any other error is a bug, and is returned unchanged. */
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

/** Returns the reason for an HTTP status, or for the code of an error event. */
export function reasonOfStatus(status: number): WatchFailureReason {
  if (status === 410) return "expired";
  if (status === 401) return "credentials";
  if (status === 429) return "throttled";
  return status >= 500 ? "server" : "refused";
}

/** Failures without a gap: the API server answered, so it was not away in between. */
const harmless: ReadonlySet<WatchFailureReason> = new Set(["throttled", "emptied"]);

/**
 * True for a failure that leaves a gap in a watch: the API server may have gone back to an older state meanwhile, such
 * as when its etcd was restored from a backup. A watch that continues from davit's last version does not show which
 * objects the restore removed or replaced, even if the restored server has passed that version again. So after a gap
 * davit lists again, and reads every object again, even one with an unchanged version.
 */
export function isGap(reason: WatchFailureReason): boolean {
  return !harmless.has(reason);
}
