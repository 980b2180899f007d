/**
 * Decides when this member leads. Only the leader ends expired nodes, takes snapshots and follows a source. A member
 * leads from the record that begins its term until the log deposes it. From then on, the log refuses the fenced records
 * of this member.
 *
 * The only member of a store leads from its start to its stop.
 */

import type { Clock } from "../lib/clock.ts";
import type { LogMembership } from "./core/log-port.ts";
import { StoreError } from "./core/refusal.ts";

interface LeadershipOptions {
  readonly membership: LogMembership;
  readonly clock: Clock;
  /** Logs the record that begins the term. @throws {StoreError} logFailed. */
  readonly beginTerm: () => Promise<unknown>;
}

/** Called with true when this member begins to lead, and with false when it stops. */
export type LeadershipListener = (isLeading: boolean) => void;

// The pause after the log failed.
const retryMs = 500;

export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #listeners = new Set<LeadershipListener>();
  #isLeading = false;
  #beginning: Promise<void> | undefined;
  #ending = new AbortController();
  #isStopped = false;

  constructor(options: LeadershipOptions) {
    this.#options = options;
  }

  /** True while this member leads. */
  get isLeading(): boolean {
    return this.#isLeading;
  }

  /** Calls `listener` now if this member leads, and at every change. */
  onChange(listener: LeadershipListener): void {
    this.#listeners.add(listener);
    if (this.#isLeading) listener(true);
  }

  /** Begins to lead without a record, in a log that only this davit may write. */
  lead(): void {
    this.#set(true);
  }

  /** Begins to lead as soon as the record that begins the term is in the log. */
  elected(): void {
    this.#ending = new AbortController();
    this.#beginning = this.#begin(this.#ending.signal);
  }

  deposed(): void {
    this.#ending.abort();
    this.#set(false);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.deposed();
    await this.#beginning;
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { membership, clock, beginTerm } = this.#options;
    while (membership.isLeader && !signal.aborted) {
      try {
        await beginTerm();
        if (!signal.aborted && membership.isLeader) this.#set(true);
        return;
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        // The `LogPort` has already logged the reason.
        await clock.sleep(retryMs, signal);
      }
    }
  }

  #set(isLeading: boolean): void {
    if (this.#isLeading === isLeading || (isLeading && this.#isStopped)) return;
    this.#isLeading = isLeading;
    for (const listener of this.#listeners) listener(isLeading);
  }
}
