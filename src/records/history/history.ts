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

import type { Clock } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { inSlices, Slices } from "../../lib/slices.ts";
import { labelsFromQuery, sentLabels } from "../../model/labels/labels.ts";
import { HistoryView } from "./history-view.ts";
import { type AnsweredRequest, Intake, type IntakeLimits } from "./intake.ts";
import type { Journal } from "./journal.ts";
import { encodeRequest, type JournalEntry, type RefusalNames } from "./journal-line.ts";
import { type RecordLimits, Records } from "./records.ts";

/**
 * A longer pause between requests ends a boot. It is so long because some servers test memory for minutes, and a large
 * initrd takes minutes on a slow link.
 */
export const bootGapMs = 10 * 60_000;

const limits: RecordLimits & IntakeLimits = {
  maxMachines: 65_536,
  // 32 MiB together with the queue.
  maxBytes: 24 * 1024 * 1024,
  // Enough for several boots: one has five to ten requests, and a repeated refusal takes one entry.
  maxRequests: 64,
  gapMs: bootGapMs,
  // Enough for all requests of 4,000 to 5,000 machines that are switched on at the same time.
  maxWaiting: 32_768,
  // Enough for `maxWaiting` requests with a query of 140 bytes each, as iPXE sends it.
  maxWaitingBytes: 8 * 1024 * 1024,
};

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
  readonly limits?: Partial<RecordLimits & IntakeLimits>;
  /** Where requests go besides the records. */
  readonly outlets?: HistoryOutlets | undefined;
}

/** Both get requests as `encodeRequest` returns them, when they are moved into the records. */
export interface HistoryOutlets {
  readonly names: RefusalNames;
  /** Where requests survive a restart; only in memory unless given. */
  readonly journal?: Pick<Journal, "load" | "hurry" | "add" | "stop"> | undefined;
  /** Gets the requests that this davit answered. Of a follower, for its writer. */
  readonly handOn?: { add(startedMs: number, text: string): void } | undefined;
}

export class History {
  readonly #clock: HistoryOptions["clock"];
  readonly #intake: Intake;
  readonly #records: Records;
  readonly #view: HistoryView;
  readonly #stopping = new AbortController();
  readonly #metrics: HistoryOptions["metrics"];
  readonly #outlets: HistoryOptions["outlets"];
  readonly #journal: HistoryOutlets["journal"];
  /** Resolves when the journal was read. Until then, requests wait in the queue, because they are newer. */
  #loaded: Promise<void> | undefined;
  #isLoaded = false;
  /** Requests that followers answered. */
  #handedCount = 0;
  #countedLost = 0;
  #isWorking = false;

  constructor(options: HistoryOptions) {
    const all = { ...limits, ...options.limits };
    this.#clock = options.clock;
    this.#metrics = options.metrics;
    this.#outlets = options.outlets;
    this.#journal = options.outlets?.journal;
    this.#intake = new Intake(all);
    this.#records = new Records(all);
    this.#view = new HistoryView({ clock: options.clock, records: this.#records, intake: this.#intake });
  }

  /** Memory in use, estimated. It exceeds the limits by one machine at most. */
  get sizeBytes(): number {
    return this.#intake.sizeBytes + this.#records.sizeBytes;
  }

  /** Counts added requests, those of followers included. */
  get revision(): number {
    return this.#intake.addedCount + this.#handedCount;
  }

  /** True from when the journal was read until the stop. */
  get isTaking(): boolean {
    return this.#isLoaded && !this.#stopping.signal.aborted;
  }

  /**
   * Adds a request that a follower answered, directly to the records: the queue is only for this davit's own requests.
   * Only while `isTaking`.
   */
  add(entry: JournalEntry): void {
    this.#handedCount++;
    this.#add(entry);
  }

  /** Counts requests that a follower answered and could not hand on. */
  miss(count: number): void {
    this.#records.missed += count;
  }

  /** Adds an answered request; never waits. */
  record(request: AnsweredRequest): void {
    this.#intake.add(request);
    if (!this.#isWorking) void this.#work();
  }

  /** Returns a view that shows every request that was added before this call. */
  async current(): Promise<HistoryView> {
    this.#journal?.hurry();
    if (this.#journal !== undefined) await this.load();
    await inSlices(this.#takeOverUntil(this.#intake.addedCount));
    return this.#view;
  }

  /** Reads the requests of earlier runs from the journal, in slices. Idempotent. `record` and `current` call it. */
  async load(): Promise<void> {
    this.#loaded ??= this.#journal?.load(({ seen, labels }) => this.#records.add(seen, labels)) ?? Promise.resolve();
    await this.#loaded;
    this.#isLoaded = true;
  }

  /** Updates the metrics of lost requests and stuck machines. Called before each scrape. */
  async measure(): Promise<void> {
    const lost = this.#intake.lost?.count ?? 0;
    this.#metrics.historyLost.inc(lost - this.#countedLost);
    this.#countedLost = lost;
    const { looping, waiting } = await inSlices(this.#records.stuck(this.#clock.monotonicMs()));
    this.#metrics.stuckMachines.set({ state: "looping" }, looping);
    this.#metrics.stuckMachines.set({ state: "waiting" }, waiting);
  }

  /** Ends the background task, and writes the whole queue to the journal. Queries still move the queue. Idempotent. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    // Nothing was recorded before the journal was read.
    if (this.#loaded !== undefined) await this.current();
    await this.#journal?.stop();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    this.#isWorking = true;
    if (this.#journal !== undefined) await this.load();
    while (this.#intake.count > 0 && !signal.aborted) {
      await this.#clock.sleep(restMs, signal);
      this.#takeOverForAWhile();
    }
    // It stays true after a stop, so that no request starts this task again.
    this.#isWorking = signal.aborted;
  }

  #takeOverForAWhile(): void {
    const endMs = this.#clock.monotonicMs() + workMs;
    while (this.#intake.count > 0 && this.#clock.monotonicMs() < endMs) this.#takeOver();
  }

  /** Moves requests to the records. @param position stops when this many requests in total have left the queue. */
  *#takeOverUntil(position: number): Generator<undefined, void> {
    const slices = new Slices(sliceSize);
    while (this.#intake.addedCount - this.#intake.count < position) {
      this.#takeOver();
      if (slices.isOver(1)) yield;
    }
  }

  #takeOver(): void {
    const request = this.#intake.take();
    const labels = request.query === undefined ? undefined : sentLabels(labelsFromQuery(request.query));
    this.#add({ seen: request, labels });
  }

  #add(entry: JournalEntry): void {
    const { seen, labels } = entry;
    this.#records.add(seen, labels);
    if (this.#outlets === undefined) return;
    const { names, journal, handOn } = this.#outlets;
    const text = encodeRequest(entry, names);
    journal?.add(text, seen);
    if (seen.via === undefined) handOn?.add(seen.startedMs, text);
  }
}
