/**
 * What machines asked for lately, and how it ended: in memory only, within a number of machines and of bytes.
 *
 * Recording is part of every answer, so it only notes what came (`intake.ts`). What came is taken into the records
 * (`records.ts`) from time to time, for half a per cent of the time at most, and all of it before a question is answered
 * (`history-view.ts`). When more comes than can be taken over, the oldest that wait are lost, and counted: a flood costs
 * machines nothing. Of a request it keeps when, what, whose and how much; never a body, a query or a label that is not
 * reserved.
 */

import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { inSlices, Slices } from "../lib/slices.ts";
import { labelsFromQuery, sentLabels } from "../model/labels.ts";
import { HistoryView } from "./history-view.ts";
import { Intake, type IntakeLimits, type ToldRequest } from "./intake.ts";
import { type RecordLimits, Records } from "./records.ts";

/**
 * A boot goes on while requests follow each other within this time: a server tests its memory for minutes, and a large
 * initrd takes some on a slow link.
 */
export const bootGapMs = 10 * 60_000;

const limits: RecordLimits & IntakeLimits = {
  maxMachines: 65_536,
  // With what waits 32 MiB.
  maxBytes: 24 * 1024 * 1024,
  // A boot is five to ten, and what is refused again and again counts once.
  maxRequests: 64,
  gapMs: bootGapMs,
  // Four or five thousand machines that are switched on at once, all through their boot.
  maxWaiting: 32_768,
  // As many requests as that with 140 bytes of query each, which is what iPXE sends.
  maxWaitingBytes: 8 * 1024 * 1024,
};

/**
 * What waits is taken over for this long after each rest: half a per cent of the time, which is one to three thousand
 * requests a second. Shorter turns would take over fewer, since each begins with memory that the caches do not have.
 */
const workMs = 1;
const restMs = 200;

/** Requests that are taken over at a stretch when somebody asks: a millisecond's work. */
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
  record(told: ToldRequest): void {
    this.#intake.tell(told);
    if (!this.#isWorking) void this.#work();
  }

  /** What is remembered, up to the last request that was recorded before this call. */
  async current(): Promise<HistoryView> {
    await inSlices(this.#takeOverUntil(this.#intake.toldCount));
    return this.#view;
  }

  /** Called before each scrape: neither lost requests nor machines that are stuck are counted one by one. */
  async measure(): Promise<void> {
    const lost = this.#intake.lost?.count ?? 0;
    this.#metrics.historyLost.inc(lost - this.#countedLost);
    this.#countedLost = lost;
    const { looping, waiting } = await inSlices(this.#records.stuck(this.#clock.monotonicMs()));
    this.#metrics.stuckMachines.set({ state: "looping" }, looping);
    this.#metrics.stuckMachines.set({ state: "waiting" }, waiting);
  }

  /** From now on what is recorded is only taken over when somebody asks. Idempotent. */
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

  /** @param position number of requests ever told, of which none shall wait any more. */
  *#takeOverUntil(position: number): Generator<undefined, void> {
    const slices = new Slices(sliceSize);
    while (this.#intake.toldCount - this.#intake.count < position) {
      this.#takeOver();
      if (slices.isOver(1)) yield;
    }
  }

  #takeOver(): void {
    const told = this.#intake.take();
    this.#records.add(told, told.query === undefined ? undefined : sentLabels(labelsFromQuery(told.query)));
  }
}
