/**
 * Records machines' latest requests and their results: in memory only, within limits of machines and bytes.
 *
 * Recording is part of every answer, so it only appends to a queue (`intake.ts`). From time to time the queue is moved
 * into the records (`records.ts`), for half a per cent of the time at most, and all of it before a question is answered
 * (`history-view.ts`). When the queue is full, its oldest requests are lost and counted: a flood costs machines
 * nothing. A record has the time, path, machine and size of a request; never a body, a query or a label that is not
 * reserved.
 */

import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { inSlices, Slices } from "../lib/slices.ts";
import { labelsFromQuery, sentLabels } from "../model/labels.ts";
import { HistoryView } from "./history-view.ts";
import { type AnsweredRequest, Intake, type IntakeLimits } from "./intake.ts";
import { type RecordLimits, Records } from "./records.ts";

/**
 * A boot continues while requests follow each other within this time: a server tests its memory for minutes, and a
 * large initrd takes some on a slow link.
 */
export const bootGapMs = 10 * 60_000;

const limits: RecordLimits & IntakeLimits = {
  maxMachines: 65_536,
  // With the queue 32 MiB.
  maxBytes: 24 * 1024 * 1024,
  // A boot has five to ten requests, and a repeated refusal counts once.
  maxRequests: 64,
  gapMs: bootGapMs,
  // The whole boots of four or five thousand machines that are switched on at once.
  maxWaiting: 32_768,
  // That many requests with 140 bytes of query each, as iPXE sends.
  maxWaitingBytes: 8 * 1024 * 1024,
};

/**
 * The queue is moved for this long after each rest: half a per cent of the time, one to three thousand requests a
 * second. Shorter turns would move fewer, since each begins with cold caches.
 */
const workMs = 1;
const restMs = 200;

/** Requests that are moved in one slice before a question is answered: a millisecond's work. */
const sliceSize = 256;

export interface HistoryOptions {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs" | "sleep">;
  readonly metrics: Pick<Metrics, "historyLost" | "stuckMachines">;
  readonly limits?: Partial<RecordLimits & IntakeLimits>;
}

export class History {
  readonly #clock: HistoryOptions["clock"];
  readonly #intake: Intake;
  readonly #records: Records;
  readonly #view: HistoryView;
  readonly #stopping = new AbortController();
  readonly #metrics: HistoryOptions["metrics"];
  #countedLost = 0;
  #isWorking = false;

  constructor(options: HistoryOptions) {
    const all = { ...limits, ...options.limits };
    this.#clock = options.clock;
    this.#metrics = options.metrics;
    this.#intake = new Intake(all);
    this.#records = new Records(all);
    this.#view = new HistoryView({ clock: options.clock, records: this.#records, intake: this.#intake });
  }

  /** Memory in use, estimated; beyond the limits by one machine at most. */
  get sizeBytes(): number {
    return this.#intake.sizeBytes + this.#records.sizeBytes;
  }

  /** Adds a request whose answer is out; never waits. */
  record(request: AnsweredRequest): void {
    this.#intake.add(request);
    if (!this.#isWorking) void this.#work();
  }

  /** Everything that was recorded before this call. */
  async current(): Promise<HistoryView> {
    await inSlices(this.#takeOverUntil(this.#intake.addedCount));
    return this.#view;
  }

  /** Called before each scrape: lost requests and stuck machines are not counted one by one. */
  async measure(): Promise<void> {
    const lost = this.#intake.lost?.count ?? 0;
    this.#metrics.historyLost.inc(lost - this.#countedLost);
    this.#countedLost = lost;
    const { looping, waiting } = await inSlices(this.#records.stuck(this.#clock.monotonicMs()));
    this.#metrics.stuckMachines.set({ state: "looping" }, looping);
    this.#metrics.stuckMachines.set({ state: "waiting" }, waiting);
  }

  /** From now on records are only moved when somebody asks. Idempotent. */
  stop(): void {
    this.#stopping.abort();
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    this.#isWorking = true;
    while (this.#intake.count > 0 && !signal.aborted) {
      await this.#clock.sleep(restMs, signal);
      this.#takeOverForAWhile();
    }
    // Nothing is left to do after a stop.
    this.#isWorking = signal.aborted;
  }

  #takeOverForAWhile(): void {
    const endMs = this.#clock.monotonicMs() + workMs;
    while (this.#intake.count > 0 && this.#clock.monotonicMs() < endMs) this.#takeOver();
  }

  /** @param position number of requests ever recorded; none of them must wait any more. */
  *#takeOverUntil(position: number): Generator<undefined, void> {
    const slices = new Slices(sliceSize);
    while (this.#intake.addedCount - this.#intake.count < position) {
      this.#takeOver();
      if (slices.isOver(1)) yield;
    }
  }

  #takeOver(): void {
    const request = this.#intake.take();
    this.#records.add(request, request.query === undefined ? undefined : sentLabels(labelsFromQuery(request.query)));
  }
}
