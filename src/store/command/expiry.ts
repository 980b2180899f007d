/**
 * Ends nodes: logs an `expire` for each due node, at once, and before any later write.
 *
 * Reads skip expired nodes, so no client notices if expiry lags or fails for a while. One record ends at most 500
 * nodes, even if 100,000 are due together. It also sweeps the timers of nodes that were removed together.
 *
 * All times are of one run's clock, which never steps: see `steadyClock`.
 */

import type { Clock } from "../../lib/clock.ts";
import { nextTurn } from "../../lib/slices.ts";
import { StoreError } from "../core/refusal.ts";
import type { Timer } from "../tree/expiring-set.ts";
import type { Tree } from "../tree/tree.ts";
import type { ExpireCommand } from "./command.ts";

export interface ExpiryOptions {
  readonly tree: Tree;
  readonly clock: Clock;
  /** Time of this run. */
  readonly nowMs: () => number;
  /** Logs and applies them as one record. @throws {StoreError} logFailed. */
  readonly submit: (commands: readonly ExpireCommand[]) => Promise<unknown>;
}

// Applying this many and notifying their watchers takes some milliseconds.
const maxExpiriesPerRecord = 500;
// Sweeping this many takes a millisecond or two.
const timersPerSlice = 2_000;
// The pause after the log failed. It is short, so that nodes end as soon as the log can be written.
const retryMs = 500;

export class Expiry {
  readonly #options: ExpiryOptions;
  /** The record that is being logged. */
  #logging: Promise<void> | undefined;
  #alarm = new AbortController();
  /** When the present sleep ends; -Infinity for none. */
  #alarmAtMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #sweeping: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
    this.noticeTimers();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#alarm.abort();
    await this.#running;
    await this.#sweeping;
  }

  /** Checks the timers again: call it after they may have changed. */
  noticeTimers(): void {
    const { timers, detached } = this.#options.tree;
    if (timers.nextDueAtMs < this.#alarmAtMs) this.#alarm.abort();
    if (!detached.isEmpty) this.#sweeping ??= this.#sweep();
  }

  /** True while a node that is due at `nowMs` has not ended yet. */
  isBehind(nowMs: number): boolean {
    return this.#logging !== undefined || this.#options.tree.timers.nextDueAtMs <= nowMs;
  }

  /**
   * Resolves once every node that is due at a time has ended.
   * @throws {StoreError} logFailed.
   */
  async catchUp(nowMs: number): Promise<void> {
    while (this.isBehind(nowMs)) {
      this.#logging ??= this.#logDue().finally(() => {
        this.#logging = undefined;
      });
      await this.#logging;
    }
  }

  async #sweep(): Promise<void> {
    const { detached } = this.#options.tree;
    while (!detached.isEmpty && !this.#isStopped) {
      await nextTurn();
      detached.sweep(timersPerSlice);
    }
    this.#sweeping = undefined;
  }

  async #run(): Promise<void> {
    const { tree, nowMs } = this.#options;
    while (!this.#isStopped) {
      const waitMs = tree.timers.nextDueAtMs - nowMs();
      await (waitMs > 0 ? this.#sleep(waitMs) : this.#tryCatchUp());
    }
  }

  /** Sleeps. A timer that is due earlier ends the sleep. */
  async #sleep(durationMs: number): Promise<void> {
    const { clock, nowMs } = this.#options;
    this.#alarmAtMs = nowMs() + durationMs;
    await clock.sleep(durationMs, this.#alarm.signal);
    this.#alarmAtMs = Number.NEGATIVE_INFINITY;
    if (!this.#isStopped) this.#alarm = new AbortController();
  }

  async #tryCatchUp(): Promise<void> {
    try {
      await this.catchUp(this.#options.nowMs());
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      // The log has logged the reason.
      await this.#options.clock.sleep(retryMs, this.#alarm.signal);
    }
  }

  async #logDue(): Promise<void> {
    const { tree, nowMs, submit } = this.#options;
    const taken = tree.timers.takeDue(nowMs(), maxExpiriesPerRecord);
    const due = taken.filter((timer) => tree.isArmed(timer));
    // Only timers of removed nodes were due, and there may be many: other work runs between two steps.
    if (due.length === 0) return nextTurn();
    try {
      await submit(due.map(({ path, expiresAtMs }) => ({ kind: "expire", path, expiresAtMs })));
    } catch (error) {
      for (const timer of due) this.#putBack(timer);
      throw error;
    }
  }

  #putBack(timer: Timer): void {
    if (this.#options.tree.isArmed(timer)) this.#options.tree.timers.add(timer);
  }
}
