/**
 * Sends a page's content again whenever it changes, as server-sent events (WHATWG HTML, 9.2): at most twice a second,
 * and nothing while the browser has not taken what was sent before.
 */

import { Readable } from "node:stream";
import type { Clock } from "../../lib/clock.ts";

export interface LiveOptions {
  /** Changes when the page may have changed. Undefined if a page that is made now may lack the last changes. */
  readonly revision: () => string | undefined;
  /** Makes the page's content. Undefined ends the events: the visitor may no longer see it. */
  readonly render: () => Promise<string | undefined>;
  readonly clock: Pick<Clock, "monotonicMs" | "sleep">;
  /** Ends the events. */
  readonly signal: AbortSignal;
}

const turnMs = 500;
/** Proxies cut a connection that is silent for a minute. */
const silenceMs = 20_000;
/** The states of machines change with time, too. */
const maxAgeMs = 10_000;

/** Returns the events as a stream. */
export function liveStream(options: LiveOptions): Readable {
  return Readable.from(events(options), { highWaterMark: 1, objectMode: true });
}

async function* events({ revision, render, clock, signal }: LiveOptions): AsyncGenerator<Buffer> {
  yield Buffer.from("retry: 2000\n\n");
  let known: string | undefined;
  let sent: string | undefined;
  let [madeAtMs, sentAtMs] = [0, 0];
  while (!signal.aborted) {
    const now = revision();
    const nowMs = clock.monotonicMs();
    if (now === undefined || now !== known || nowMs - madeAtMs > maxAgeMs) {
      const made = await render();
      if (made === undefined) return;
      [known, madeAtMs] = [now, nowMs];
      if (made !== sent) {
        // The page may have been made before the last change, so the first event always has everything.
        yield Buffer.from(`data: ${made.replaceAll("\n", "\ndata: ")}\n\n`);
        [sent, sentAtMs] = [made, nowMs];
      }
    }
    if (nowMs - sentAtMs > silenceMs) {
      yield Buffer.from(": nothing new\n\n");
      sentAtMs = nowMs;
    }
    await clock.sleep(turnMs, signal);
  }
}
