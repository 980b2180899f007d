/**
 * Reads one watch: turns its bytes into events, wherever the chunks are cut. It gives up after a long silence, because
 * a connection whose other end is gone looks like a quiet one. A working connection brings a bookmark about once a
 * minute.
 */

import type { Clock } from "../../../lib/clock.ts";
import { Deadline } from "../../../lib/deadline.ts";
import { LineReader } from "../../../lib/text/line-reader.ts";
import { isJsonObject, type JsonObject, parseJsonObject } from "../../../model/json.ts";
import type { ApiClient, ApiRequest } from "../client/client.ts";
import { reasonOfStatus, toWatchFailure, WatchFailure } from "./watch-failure.ts";

export type WatchEvent =
  | { readonly kind: "set" | "deleted"; readonly object: JsonObject }
  /** The API server has sent all events up to this version. */
  | { readonly kind: "bookmark"; readonly resourceVersion: string };

interface WatchEventsOptions {
  readonly client: Pick<ApiClient, "watch">;
  readonly request: ApiRequest;
  readonly clock: Clock;
  /** The watch ends after a longer silence. */
  readonly silenceMs: number;
  /** The watch ends after this time, even if it is not silent. */
  readonly maxDurationMs: number;
  readonly maxLineBytes: number;
  /** Called when the API server accepts the watch, and with each chunk. */
  readonly onHeard: () => void;
}

/**
 * Yields the events that each chunk completes, in order. Returns when the API server ends the watch normally.
 * @throws {WatchFailure}
 */
export async function* watchEvents(options: WatchEventsOptions): AsyncIterable<readonly WatchEvent[]> {
  const { client, request, clock, silenceMs, maxDurationMs, maxLineBytes, onHeard } = options;
  const silence = new Deadline({ clock, durationMs: silenceMs });
  const end = new Deadline({ clock, durationMs: maxDurationMs });
  const lines = new LineReader({ maxLineBytes, refuse: (detail) => new WatchFailure("protocol", detail) });
  try {
    const signal = AbortSignal.any([request.signal, silence.signal, end.signal]);
    const body = await client.watch({ ...request, signal });
    onHeard();
    for await (const chunk of body) {
      silence.putOff();
      onHeard();
      const events = [...lines.push(chunk)].filter((line) => line.trim() !== "").map(readEvent);
      yield* untilError(events);
    }
  } catch (error) {
    if (error instanceof WatchFailure) throw error;
    if (silence.hasPassed) throw new WatchFailure("silent", "nothing came for too long", { cause: error });
    if (end.hasPassed) throw new WatchFailure("overdue", "it goes on past its end", { cause: error });
    throw asNetworkFailure(toWatchFailure(error));
  } finally {
    silence.cancel();
    end.cancel();
  }
}

/** Yields the events of a chunk up to the first error event, then throws that error. */
function* untilError(events: readonly (WatchEvent | WatchFailure)[]): Iterable<readonly WatchEvent[]> {
  const good = [];
  for (const event of events) {
    if (event instanceof WatchFailure) {
      yield good;
      throw event;
    }
    good.push(event);
  }
  if (good.length > 0) yield good;
}

/**
 * Returns an error as a `WatchFailure`. An unknown error of a body comes from the network: a reset, or an early end.
 */
function asNetworkFailure(error: unknown): unknown {
  if (error instanceof WatchFailure) return error;
  return new WatchFailure("network", "the connection was cut", { cause: error });
}

function readEvent(line: string): WatchEvent | WatchFailure {
  const { type, object } = parseJsonObject(line) ?? {};
  if (!isJsonObject(object)) return new WatchFailure("protocol", "a line is no event");
  switch (type) {
    case "ADDED":
    case "MODIFIED":
      return { kind: "set", object };
    case "DELETED":
      return { kind: "deleted", object };
    case "BOOKMARK":
      return readBookmark(object);
    case "ERROR":
      return readError(object);
    default:
      return new WatchFailure("protocol", "an event is of no known type");
  }
}

function readBookmark({ metadata }: JsonObject): WatchEvent | WatchFailure {
  const resourceVersion = isJsonObject(metadata) ? metadata.resourceVersion : undefined;
  if (typeof resourceVersion === "string") return { kind: "bookmark", resourceVersion };
  return new WatchFailure("protocol", "a bookmark has no version");
}

/** Reads an error event, whose object is a Status. It ignores the Status's message, which may quote an object. */
function readError({ code, reason, details }: JsonObject): WatchFailure {
  const status = typeof code === "number" ? code : 500;
  const isExpired = reason === "Expired" || reason === "Gone";
  const seconds = isJsonObject(details) ? details.retryAfterSeconds : undefined;
  const retryAfterMs = typeof seconds === "number" && seconds > 0 ? Math.min(seconds, 300) * 1_000 : undefined;
  const what = `the API server sent an error event (${status})`;
  const failure = isExpired ? "expired" : reasonOfStatus(status);
  return new WatchFailure(failure, what, { status, retryAfterMs });
}
