/**
 * Hands the requests that a follower answered to the history of the store's writer, so that one page shows every boot.
 * It is of no use to a machine, so it comes last: one small batch at a time, none while many machines wait for permits,
 * and the oldest requests are dropped first. A writer of an earlier version takes none.
 */

import { BoundedQueue } from "../lib/bounded-queue.ts";
import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics/metrics.ts";
import { encodeHistoryBatch, historyPath, maxBatchBytes, maxBatchRequests } from "../model/history-batch.ts";
import { parseJsonObject } from "../model/json.ts";
import type { Writers } from "./writers.ts";

interface RemoteHistoryOptions {
  readonly writers: Pick<Writers, "askBy">;
  /** True while the writer has more important things to answer. */
  readonly isBusy: () => boolean;
  /** The name of this follower. */
  readonly via: string;
  /** A random number in hexadecimal digits, of this run. */
  readonly run: string;
  readonly metrics: Pick<Metrics, "followHistoryDropped">;
  readonly clock: Clock;
}

interface WaitingRequest {
  readonly startedMs: number;
  /** JSON in ASCII. */
  readonly text: string;
}

const mostWaiting = { maxItems: 16_384, maxBytes: 4 * 1024 * 1024 } as const;
const turnMs = 2_000;
/** While more waits than one batch takes. */
const backlogMs = 500;
/** After a failure: the writer is away, has no time, or is of an earlier version. */
const pauseMs = 60_000;
/** How long a stop waits for the writer. */
const farewellMs = 2_000;
/** The rest of a batch is for its envelope and ages. */
const maxTextBytes = maxBatchBytes - 16 * 1024;

export class RemoteHistory {
  readonly #options: RemoteHistoryOptions;
  readonly #waiting: BoundedQueue<WaitingRequest>;
  readonly #stopping = new AbortController();
  #dropped = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(options: RemoteHistoryOptions) {
    this.#options = options;
    const dropped = () => {
      this.#dropped++;
      options.metrics.followHistoryDropped.inc();
    };
    this.#waiting = new BoundedQueue({ ...mostWaiting, bytesOf: ({ text }) => text.length, dropped });
  }

  /** Adds a request, and sends it later. @param text the request as JSON in ASCII. */
  add(startedMs: number, text: string): void {
    this.#waiting.add({ startedMs, text });
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Sends what waits if the writer takes it soon: every upgrade stops a follower. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const over = new AbortController();
    const sent = this.#running.then(() => this.#sendAll(over.signal));
    await Promise.race([sent, this.#options.clock.sleep(farewellMs, over.signal)]);
    over.abort();
  }

  async #run(): Promise<void> {
    const { clock, isBusy } = this.#options;
    const { signal } = this.#stopping;
    let waitMs = turnMs;
    for (;;) {
      await clock.sleep(waitMs, signal);
      if (signal.aborted) return;
      waitMs = turnMs;
      if (this.#waiting.count === 0 || isBusy()) continue;
      const sent = await this.#send();
      if (sent === "failed") waitMs = pauseMs;
      else if (sent === "all" && this.#waiting.count >= maxBatchRequests) waitMs = backlogMs;
    }
  }

  async #sendAll(signal: AbortSignal): Promise<void> {
    while (this.#waiting.count > 0 && !signal.aborted) if ((await this.#send()) !== "all") return;
  }

  /** Sends a batch. @returns how much of it the writer has taken; it takes a part if it has no time for more. */
  async #send(): Promise<"all" | "part" | "failed"> {
    const { writers, clock, via, run } = this.#options;
    const { first } = this.#waiting;
    const batch = this.#batch();
    const texts = batch.map(({ text }) => text);
    // Each age is measured when the batch is sent: before that, a connection is made.
    const body = () => {
      const nowMs = clock.monotonicMs();
      const agoMs = batch.map(({ startedMs }) => Math.max(0, nowMs - startedMs));
      return encodeHistoryBatch({ via, run, first, dropped: this.#dropped, agoMs }, texts);
    };
    const answer = await writers.askBy(historyPath, body);
    const taken = answer === undefined ? undefined : parseJsonObject(answer)?.taken;
    if (typeof taken !== "number") return "failed";
    // The oldest ones may have been dropped meanwhile.
    const end = Math.min(first + taken, first + batch.length);
    while (this.#waiting.first < end) this.#waiting.shift();
    return taken >= batch.length ? "all" : "part";
  }

  #batch(): readonly WaitingRequest[] {
    const batch: WaitingRequest[] = [];
    let bytes = 0;
    for (let at = this.#waiting.first; batch.length < maxBatchRequests; at++) {
      const request = this.#waiting.at(at);
      bytes += request === undefined ? 0 : request.text.length + 1;
      if (request === undefined || bytes > maxTextBytes) break;
      batch.push(request);
    }
    return batch;
  }
}
