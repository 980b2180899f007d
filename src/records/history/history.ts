/**
 * Records the latest requests of machines and the results in memory, up to a number of machines and of bytes. With a
 * journal (`journal.ts`) they survive a restart.
 *
 * Recording is part of every answer, so it only appends to a queue (`intake.ts`). A background task moves the queue
 * into the records (`records.ts`), and uses at most 0.5% of the time. A query (`history-view.ts`) first moves the whole
 * queue. A full queue drops and counts its oldest requests, so that a flood delays no machine. A record has a request's
 * time, path, machine and size. It never has a body, a query, or a label that is not reserved.
 *
 * Followers hand their requests on, when the background task has moved them, and the writer adds them to its records.
 */

import { BoundedQueue } from "../../lib/bounded-queue.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { inSlices, Slices } from "../../lib/slices.ts";
import { labelsFromQuery, sentLabels } from "../../model/labels/labels.ts";
import { HistoryView, type UnrecordedRequests } from "./history-view.ts";
import type { Journal } from "./journal.ts";
import { type RecordLimits, Records } from "./records.ts";
import type { AnsweredRequest, SeenRequest } from "./request.ts";
import { encodeRequest } from "./request-text.ts";

interface HistoryLimits extends RecordLimits {
  readonly maxWaiting: number;
  readonly maxWaitingBytes: number;
}

const limits: HistoryLimits = {
  maxMachines: 65_536,
  maxBytes: 32 * 1024 * 1024,
  // Enough for several boots: one has five to ten requests, and a repeated refusal takes one entry.
  maxRequests: 64,
  // Enough for all requests of 4,000 to 5,000 machines that are switched on at the same time.
  maxWaiting: 32_768,
  // Enough for `maxWaiting` requests with a query of 140 bytes each, as iPXE sends it.
  maxWaitingBytes: 14 * 1024 * 1024,
};

/** Estimated memory of a waiting request besides its query and path. */
const waitingBytes = 280;

/**
 * The background task works for `workMs` after each `restMs`, which is 0.5% of the time. So it moves 1,000 to 3,000
 * requests a second. Shorter turns would move fewer requests, because each turn begins with cold caches.
 */
const workMs = 1;
const restMs = 200;

/** How many requests a query moves in one slice. This takes about a millisecond. */
const sliceSize = 256;

export interface HistoryOptions {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs" | "sleep">;
  readonly metrics: Pick<Metrics, "historyLost" | "stuckMachines">;
  readonly limits?: Partial<HistoryLimits>;
  /** Where requests survive a restart; only in memory unless given. */
  readonly journal?: Pick<Journal, "load" | "hurry" | "add" | "stop"> | undefined;
  /** Gets each request when it is moved into the records. @param isOwn false for a request that a follower answered. */
  readonly sighted?: ((seen: SeenRequest, isOwn: boolean) => void) | undefined;
  /**
   * Gets the requests that this davit answered, as `encodeRequest` returns them, when they are moved into the records.
   * Of a follower, for its writer.
   */
  readonly handOn?: { add(startedMs: number, text: string): void } | undefined;
}

export class History {
  readonly #options: HistoryOptions;
  readonly #waiting: BoundedQueue<AnsweredRequest>;
  readonly #records: Records;
  readonly #view: HistoryView;
  readonly #stopping = new AbortController();
  /** Resolves when the journal was read. Until then, requests wait in the queue, because they are newer. */
  #loaded: Promise<void> | undefined;
  #isLoaded = false;
  /** Requests that followers answered. */
  #handedCount = 0;
  /** Requests that the queue dropped. */
  #lost: { readonly count: number; readonly firstMs: number; readonly lastMs: number } | undefined;
  #countedLost = 0;
  #isWorking = false;

  constructor(options: HistoryOptions) {
    const { maxWaiting: maxItems, maxWaitingBytes: maxBytes, ...most } = { ...limits, ...options.limits };
    this.#options = options;
    this.#waiting = new BoundedQueue({
      maxItems,
      maxBytes,
      bytesOf: ({ query = "", path = "" }) => waitingBytes + query.length + path.length,
      dropped: ({ startedMs }) => {
        const { count, firstMs } = this.#lost ?? { count: 0, firstMs: startedMs };
        this.#lost = { count: count + 1, firstMs, lastMs: startedMs };
      },
    });
    this.#records = new Records(most);
    const unrecorded = () => this.#unrecorded;
    this.#view = new HistoryView({ clock: options.clock, records: this.#records, unrecorded });
  }

  /** Memory in use, estimated. It exceeds the limits by one machine at most. */
  get sizeBytes(): number {
    return this.#waiting.bytes + this.#records.sizeBytes;
  }

  /** Counts added requests, those of followers included. */
  get revision(): number {
    return this.#waiting.next + this.#handedCount;
  }

  /** True from when the journal was read until the stop. */
  get isTaking(): boolean {
    return this.#isLoaded && !this.#stopping.signal.aborted;
  }

  /**
   * Adds a request that a follower answered, directly to the records: the queue is only for this davit's own requests.
   * Only while `isTaking`.
   */
  add(seen: SeenRequest): void {
    this.#handedCount++;
    this.#add(seen, false);
  }

  /** Counts requests that a follower answered and could not hand on. */
  miss(count: number): void {
    this.#records.missed += count;
  }

  /** Adds an answered request; never waits. */
  record(request: AnsweredRequest): void {
    this.#waiting.add(request);
    this.#records.makeRoom(this.#waiting.bytes);
    if (!this.#isWorking) void this.#work();
  }

  /** Returns a view that shows every request that was added before this call. */
  async current(): Promise<HistoryView> {
    this.#options.journal?.hurry();
    if (this.#options.journal !== undefined) await this.load();
    await inSlices(this.#takeOverUntil(this.#waiting.next));
    return this.#view;
  }

  /** Reads the requests of earlier runs from the journal, in slices. Idempotent. `record` and `current` call it. */
  async load(): Promise<void> {
    this.#loaded ??= this.#options.journal?.load((seen) => this.#keep(seen)) ?? Promise.resolve();
    await this.#loaded;
    this.#isLoaded = true;
  }

  /** Updates the metrics of lost requests and stuck machines. Called before each scrape. */
  async measure(): Promise<void> {
    const { metrics, clock } = this.#options;
    const lost = this.#lost?.count ?? 0;
    metrics.historyLost.inc(lost - this.#countedLost);
    this.#countedLost = lost;
    const { looping, waiting } = await inSlices(this.#records.stuck(clock.monotonicMs()));
    metrics.stuckMachines.set({ state: "looping" }, looping);
    metrics.stuckMachines.set({ state: "waiting" }, waiting);
  }

  /** Ends the background task, and writes the whole queue to the journal. Queries still move the queue. Idempotent. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    // Nothing was recorded before the journal was read.
    if (this.#loaded !== undefined) await this.current();
    await this.#options.journal?.stop();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    this.#isWorking = true;
    if (this.#options.journal !== undefined) await this.load();
    while (this.#waiting.count > 0 && !signal.aborted) {
      await this.#options.clock.sleep(restMs, signal);
      this.#takeOverForAWhile();
    }
    // It stays true after a stop, so that no request starts this task again.
    this.#isWorking = signal.aborted;
  }

  #takeOverForAWhile(): void {
    const endMs = this.#options.clock.monotonicMs() + workMs;
    while (this.#waiting.count > 0 && this.#options.clock.monotonicMs() < endMs) this.#takeOver();
  }

  /** Moves requests to the records. @param position stops when this many requests in total have left the queue. */
  *#takeOverUntil(position: number): Generator<undefined, void> {
    const slices = new Slices(sliceSize);
    while (this.#waiting.first < position) {
      this.#takeOver();
      if (slices.isOver(1)) yield;
    }
  }

  #takeOver(): void {
    const request = this.#waiting.shift();
    if (request === undefined) return;
    const { query } = request;
    const labels = query === undefined ? undefined : sentLabels(labelsFromQuery(query));
    this.#add({ ...request, via: undefined, labels }, true);
  }

  #add(seen: SeenRequest, isOwn: boolean): void {
    this.#keep(seen);
    const { journal, handOn, sighted } = this.#options;
    sighted?.(seen, isOwn);
    if (journal === undefined && handOn === undefined) return;
    const text = encodeRequest(seen);
    journal?.add(text, seen.startedMs);
    if (isOwn) handOn?.add(seen.startedMs, text);
  }

  #keep(seen: SeenRequest): void {
    this.#records.makeRoom(this.#waiting.bytes);
    this.#records.add(seen);
  }

  get #unrecorded(): UnrecordedRequests | undefined {
    if (this.#lost === undefined) return undefined;
    const { clock } = this.#options;
    const offsetMs = clock.nowMs() - clock.monotonicMs();
    const { count, firstMs, lastMs } = this.#lost;
    return { count, firstAtMs: offsetMs + firstMs, lastAtMs: offsetMs + lastMs };
  }
}
