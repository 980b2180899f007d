/** One watch on one endpoint. It ends with the first trouble: the caller opens the next one. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { type EtcdCalls, unlessAborted } from "./calls.ts";
import type { EtcdEndpoint } from "./endpoint.ts";
import { answeredError, asEtcdError, EtcdError, isAboutToken } from "./etcd-error.ts";
import { bytesOf, type EtcdHeader, type EtcdKey, headerOf, keyOf } from "./messages.ts";
import {
  type Event,
  Event_EventType,
  WatchCreateRequest_FilterType,
  type WatchRequestSchema,
  type WatchResponse,
} from "./rpc_pb.ts";

type WatchRequestInit = MessageInitShape<typeof WatchRequestSchema>;

export interface EtcdWatch {
  readonly key: string;
  /** The key after the last one; one key only unless given. */
  readonly end?: string;
  /** The first revision to report; from now on unless given. */
  readonly startRevision?: number;
  /** Without deletions. */
  readonly noDeletes?: boolean;
}

export interface EtcdEvent {
  readonly kind: "put" | "delete";
  /** Of a deletion: the key, and the deletion's revision. */
  readonly key: EtcdKey;
}

/** A part of a watch. The first one has no events: etcd has registered the watch. */
export interface EtcdWatchPart {
  readonly header: EtcdHeader;
  readonly events: readonly EtcdEvent[];
  /** More events of the same answer, and perhaps of the same revision, follow. */
  readonly isFragment: boolean;
}

export interface WatchStream {
  readonly endpoint: EtcdEndpoint;
  readonly calls: EtcdCalls;
  /** The limit for the registration, in milliseconds. */
  readonly tryMs: number;
  readonly signal: AbortSignal;
}

/**
 * Parts of a watch, until `signal` aborts.
 * @throws {EtcdError} when it ends otherwise.
 */
export async function* watchAt(watch: EtcdWatch, stream: WatchStream): AsyncGenerator<EtcdWatchPart, void> {
  const { endpoint, signal } = stream;
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  try {
    const { first, rest } = await registered(watch, stream, stop.signal);
    yield partOf(first);
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      refuseCancelled(next.value, endpoint);
      yield partOf(next.value);
    }
    throw new EtcdError("it ended the watch", { reason: "unavailable", mayBeDone: false, endpoint: endpoint.origin });
  } catch (error) {
    if (signal.aborted) return;
    throw asEtcdError(error, endpoint.origin, false);
  } finally {
    signal.removeEventListener("abort", abort);
    abort();
  }
}

interface Registered {
  readonly first: WatchResponse;
  readonly rest: AsyncIterator<WatchResponse>;
}

/** A stream whose watch is registered, within a try's time. A token that was refused is renewed once. */
async function registered(watch: EtcdWatch, stream: WatchStream, stop: AbortSignal): Promise<Registered> {
  const { endpoint, calls, tryMs } = stream;
  return await calls.within(tryMs, stop, async (limit) => {
    const headers = await calls.prepare(endpoint, limit);
    try {
      return await register(watch, endpoint, { headers, limit, stop });
    } catch (error) {
      if (!calls.hasCredentials || !mayBeToken(error)) throw error;
    }
    const renewed = await calls.renew(endpoint, headers, limit);
    return await register(watch, endpoint, { headers: renewed, limit, stop });
  });
}

interface Registration {
  readonly headers: Readonly<Record<string, string>>;
  /** Ends the wait for the first answer. */
  readonly limit: AbortSignal;
  /** Ends the stream. */
  readonly stop: AbortSignal;
}

async function register(
  watch: EtcdWatch,
  endpoint: EtcdEndpoint,
  { headers, limit, stop }: Registration,
): Promise<Registered> {
  const requests = requestsOf(watch, stop);
  const rest = endpoint.watch.watch(requests, { headers, signal: stop })[Symbol.asyncIterator]();
  const { value: first, done } = await unlessAborted(rest.next(), limit);
  if (done === true) {
    throw new EtcdError("it refuses the watch", { reason: "unavailable", mayBeDone: false, endpoint: endpoint.origin });
  }
  refuseCancelled(first, endpoint);
  return { first, rest };
}

/** etcd 3.4 says "permission denied" to a watch whose token it does not know. */
function mayBeToken(error: unknown): boolean {
  return isAboutToken(error) || (error instanceof EtcdError && error.reason === "denied");
}

/** The one request; etcd ends a watch whose requests end. */
async function* requestsOf(watch: EtcdWatch, stop: AbortSignal): AsyncGenerator<WatchRequestInit> {
  yield {
    requestUnion: {
      case: "createRequest",
      value: {
        key: bytesOf(watch.key),
        rangeEnd: bytesOf(watch.end ?? ""),
        startRevision: BigInt(watch.startRevision ?? 0),
        filters: watch.noDeletes === true ? [WatchCreateRequest_FilterType.NODELETE] : [],
        fragment: true,
      },
    },
  };
  if (stop.aborted) return;
  await new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve(), { once: true }));
}

/** @throws {EtcdError} for an answer that ends the watch. */
function refuseCancelled({ canceled, compactRevision, cancelReason }: WatchResponse, { origin }: EtcdEndpoint): void {
  if (compactRevision !== 0n) {
    const details = { reason: "compacted", mayBeDone: false, endpoint: origin } as const;
    throw new EtcdError("the watch begins before the oldest revision that is left", {
      ...details,
      compactRevision: Number(compactRevision),
    });
  }
  if (canceled) throw answeredError(cancelReason, Code.Canceled, origin).withoutEffect();
}

function partOf({ header, events, fragment }: WatchResponse): EtcdWatchPart {
  return { header: headerOf(header), events: events.flatMap(eventOf), isFragment: fragment };
}

function eventOf({ type, kv }: Event): readonly EtcdEvent[] {
  return kv === undefined ? [] : [{ kind: type === Event_EventType.DELETE ? "delete" : "put", key: keyOf(kv) }];
}
