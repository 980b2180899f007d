/**
 * Ends nodes whose ttl is over. The leader logs an `expire` for each such node, as soon as the node is due and before
 * any later write of its own. A write of another member waits only for the end of the nodes that it would find. So
 * other writes continue while no member leads.
 *
 * Reads skip due nodes, so readers see no difference if an expiry is late. One record ends at most 500 nodes, even if
 * 100,000 are due together. After the removal of a directory with many timers, this also removes those timers in steps
 * (`DetachedTimers`).
 *
 * All times are by the clock of this run, which never steps (`steadyClock`).
 */

import type { Clock } from "../../lib/clock.ts";
import { nextTurn } from "../../lib/slices.ts";
import { StoreError } from "../core/refusal.ts";
import type { Timer } from "../tree/expiring-set.ts";
import type { Tree } from "../tree/tree.ts";
import type { ExpireCommand, Submission } from "./command.ts";

interface ExpiryOptions {
  readonly tree: Tree;
  readonly clock: Clock;
  /** Returns the present time by the clock of this run. */
  readonly nowMs: () => number;
  /** How long a write may wait for another member to end a node: as long as an election takes. */
  readonly leaderWaitMs: number;
  /** Logs and applies the commands as one record. @throws {StoreError} logFailed. */
  readonly submit: (commands: readonly ExpireCommand[]) => Promise<unknown>;
}

// Applying this many expiries and notifying their watchers takes a few milliseconds.
const maxExpiriesPerRecord = 500;
// Removing this many timers takes a millisecond or two.
const timersPerSlice = 2_000;
// The pause after the log failed. It is short, so that nodes end soon after the log works again.
const retryMs = 500;

export class Expiry {
  readonly #options: ExpiryOptions;
  /** Resolves when the present record is logged; undefined while no record is being logged. */
  #logging: Promise<void> | undefined;
  #alarm = new AbortController();
  /** When the present sleep ends; -Infinity while nothing sleeps. */
  #alarmAtMs = Number.NEGATIVE_INFINITY;
  #isLeading = false;
  #running: Promise<void> = Promise.resolve();
  /** Resolves at the next `noticeTimers`; undefined unless a write waits for the leader to end nodes. */
  #changed: PromiseWithResolvers<void> | undefined;
  #sweeping: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  /** Begins or stops ending nodes, which only the leader does. */
  lead(isLeading: boolean): void {
    this.#isLeading = isLeading;
    this.#alarm.abort();
    if (isLeading) this.#alarm = new AbortController();
    if (isLeading) this.#running = this.#running.then(() => this.#run());
    this.noticeTimers();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#isLeading = false;
    this.#alarm.abort();
    this.#changed?.resolve();
    await this.#running;
    await this.#sweeping;
  }

  /**
   * Call it after a change of the tree. It ends the sleep if a timer is due earlier, and begins to sweep detached
   * timers.
   */
  noticeTimers(): void {
    const { timers, detached } = this.#options.tree;
    if (timers.nextDueAtMs < this.#alarmAtMs) this.#alarm.abort();
    this.#changed?.resolve();
    if (!detached.isEmpty) this.#sweeping ??= this.#sweep();
  }

  /** True while a node that is due at `nowMs` has not ended yet. */
  isBehind(nowMs: number): boolean {
    return this.#logging !== undefined || this.#options.tree.timers.nextDueAtMs <= nowMs;
  }

  /**
   * True while a command could find a node that is due and has not ended yet: at its path, above it, or in a directory
   * that it removes. It searches no directory: any due node holds up the removal of any directory.
   */
  holdsUp(command: Submission): boolean {
    const { tree, nowMs } = this.#options;
    const now = nowMs();
    if (!this.isBehind(now)) return false;
    if (command.kind === "batch" || tree.isDueAt(command.path, now)) return true;
    return command.kind === "delete" && (command.dir === true || command.recursive === true);
  }

  /**
   * Ends every node that is due at `nowMs`. Resolves when all of them have ended, or when this member leads no more.
   * @throws {StoreError} logFailed.
   */
  async catchUp(nowMs: number): Promise<void> {
    while (this.isBehind(nowMs) && this.#isLeading) {
      this.#logging ??= this.#logDue().finally(() => {
        this.#logging = undefined;
      });
      await this.#logging;
    }
  }

  /**
   * Waits until a leader has ended what holds a command up, or until this member leads.
   * @throws {StoreError} logFailed if it takes too long.
   */
  async leaderEnds(command: Submission): Promise<void> {
    const { clock, leaderWaitMs } = this.#options;
    const giveUp = new AbortController();
    const tooLong = clock.sleep(leaderWaitMs, giveUp.signal).then(() => true);
    try {
      while (this.holdsUp(command) && !this.#isLeading && !this.#isStopped) {
        this.#changed ??= Promise.withResolvers();
        const changed = this.#changed;
        const isTooLong = await Promise.race([tooLong, changed.promise.then(() => false)]);
        // Another write may wait for a next change already.
        if (this.#changed === changed) this.#changed = undefined;
        if (isTooLong) throw new StoreError("logFailed", "no leader has ended expired keys; try again later", 0);
      }
    } finally {
      giveUp.abort();
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
    while (this.#isLeading) {
      const waitMs = tree.timers.nextDueAtMs - nowMs();
      await (waitMs > 0 ? this.#sleep(waitMs) : this.#tryCatchUp());
    }
  }

  /** Sleeps. `noticeTimers` ends the sleep if a timer is due earlier. */
  async #sleep(durationMs: number): Promise<void> {
    const { clock, nowMs } = this.#options;
    this.#alarmAtMs = nowMs() + durationMs;
    await clock.sleep(durationMs, this.#alarm.signal);
    this.#alarmAtMs = Number.NEGATIVE_INFINITY;
    if (this.#isLeading) this.#alarm = new AbortController();
  }

  async #tryCatchUp(): Promise<void> {
    try {
      await this.catchUp(this.#options.nowMs());
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      // The `LogPort` has already logged the reason.
      await this.#options.clock.sleep(retryMs, this.#alarm.signal);
    }
  }

  async #logDue(): Promise<void> {
    const { tree, nowMs, submit } = this.#options;
    const taken = tree.timers.takeDue(nowMs(), maxExpiriesPerRecord);
    const due = taken.filter((timer) => tree.isArmed(timer));
    // All due timers were of removed nodes. There may be many more, so other work runs before the next step.
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
