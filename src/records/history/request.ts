/** An answered request, as the history gets and keeps it. Times are by the monotonic clock. */

import type { Labels } from "../../model/labels/labels.ts";

/** An answered request of a machine. */
export interface SeenRequest {
  /** When the head of the request arrived. */
  readonly startedMs: number;
  readonly durationMs: number;
  /** The client's address, as the socket reports it. */
  readonly address: string;
  /** The endpoint's name in metrics: `ipxe`, `ignition.sig`, `assets`. */
  readonly endpoint: string;
  /**
   * The path without its query; undefined if the endpoint alone identifies the content. Of a script that davit refused:
   * the path of the file that is missing.
   */
  readonly path: string | undefined;
  readonly isHead: boolean;
  readonly status: number;
  /** `namespace/name`. */
  readonly group: string | undefined;
  /** Bytes of the body that the network has accepted. */
  readonly sentBytes: number;
  /** The announced length of the body; undefined without one. */
  readonly ofBytes: number | undefined;
  /** True if the client disconnected before it had the whole answer. */
  readonly isCut: boolean;
  /** Why davit refused it, such as `unapproved`. */
  readonly refusal: string | undefined;
  /** The name of the follower that answered; undefined if this davit did. */
  readonly via: string | undefined;
  /** The number of the boot, as in `NumberedBoot`; 0 if none is known. */
  readonly boot: number;
  /** The Profile of the answer, `namespace/name`. */
  readonly profile: string | undefined;
  /** The SHA-256, in hex, of the boot script that the machine got. */
  readonly script: string | undefined;
  /** The labels of the machine. Only reserved ones count. Undefined if the request names no machine. */
  readonly labels: Labels | undefined;
}

/** A request that this davit answered. */
export interface AnsweredRequest extends Omit<SeenRequest, "via" | "labels"> {
  /** The machine's query as sent, without the `?`; undefined if the history does not use it. */
  readonly query: string | undefined;
}

/** A recorded request. */
export interface KeptRequest extends Omit<SeenRequest, "profile" | "script"> {
  /**
   * Start of the last repetition, if the same request was refused several times in a row. `durationMs`, `via` and
   * `boot` are those of the last one, too.
   */
  readonly lastStartedMs: number;
  readonly times: number;
  /** The reserved labels. */
  readonly labels: Labels;
}

/** The lowest status that is a refusal. */
export const firstRefusal = 400;

/** When the answer ended; of repeated requests, the last one. */
export function endOf(request: Pick<KeptRequest, "lastStartedMs" | "durationMs">): number {
  return request.lastStartedMs + request.durationMs;
}
