/**
 * Keeps a mark outside the ledger's store, so that a store which was rolled back is recognised: the index of such a
 * store is behind the mark. A claim counts only when the mark covers it. Each write is for all changes so far, and the
 * place of the mark says how often it is written.
 */

import type { Ports } from "../../lib/ports.ts";
import type { LedgerMeta } from "./ledger-documents.ts";
import { type MarkProblem, markProblem } from "./mark-problem.ts";

export interface Mark {
  /** Of the ledger. */
  readonly id: string;
  /** The index of the ledger's store when the mark was written. */
  readonly index: number;
  /** When that ledger began; Unix milliseconds. Only a mark with `isOwn` needs it. */
  readonly beganAtMs?: number;
}

/** Where a ledger's mark is. An error with `isTransient: false` needs a person: see `MarkProblem`. */
export interface LedgerMark {
  /**
   * True if each member of the store has a mark of its own. Such a mark may be missing, or be of an earlier ledger than
   * the present one, and is written for the changes of other members, too.
   */
  readonly isOwn?: boolean;
  /** The pause after a write, in milliseconds. A claim may wait for it. */
  readonly pauseMs: number;
  /** Returns the mark; undefined if there is none. @throws {Error} if it cannot be read. */
  read(): Promise<Mark | undefined>;
  /**
   * Writes the mark. If there is a mark of the same id with a higher index, that one stays: other members write, too.
   * @throws {Error} if the mark may not have been written.
   */
  write(id: string, index: number, beganAtMs: number): Promise<void>;
}

interface MarkKeeperOptions extends Pick<Ports, "clock" | "log"> {
  readonly mark: LedgerMark;
  /** The ledger that may be marked now; undefined for none. */
  readonly meta: () => LedgerMeta | undefined;
}

interface MarkWaiter {
  readonly index: number;
  /** Monotonic: from then on, nobody needs the answer. */
  readonly untilMs: number;
  readonly resolve: (isCovered: boolean) => void;
}

const retryMs = 1_000;

export class MarkKeeper {
  readonly #options: MarkKeeperOptions;
  readonly #stopping = new AbortController();
  #coveredId: string | undefined;
  #covered = 0;
  #wanted = 0;
  #waiters: MarkWaiter[] = [];
  #writing: Promise<void> | undefined;
  #problem: MarkProblem | undefined;

  constructor(options: MarkKeeperOptions) {
    this.#options = options;
  }

  /** Why the last write failed; undefined if it did not. */
  get problem(): MarkProblem | undefined {
    return this.#problem;
  }

  /** Begins a write that covers this index, and does not wait for it. */
  note(index: number): void {
    this.#wanted = Math.max(this.#wanted, index);
    if (!this.#isCovered(this.#wanted)) this.#writing ??= this.#write();
  }

  /**
   * Resolves with true when the mark covers this index of the present ledger; with false when the keeper stops, or when
   * a write fails after `forMs`. The mark is written all the same.
   * @param forMs how long the answer is needed, in milliseconds; for ever unless given.
   */
  async cover(index: number, forMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    if (this.#isCovered(index)) return true;
    if (this.#stopping.signal.aborted) return false;
    const untilMs = this.#options.clock.monotonicMs() + forMs;
    return await new Promise((resolve) => {
      this.#waiters.push({ index, untilMs, resolve });
      this.note(index);
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#writing;
    this.#settle(() => true, false);
  }

  #isCovered(index: number): boolean {
    return this.#coveredId !== undefined && this.#coveredId === this.#options.meta()?.id && index <= this.#covered;
  }

  async #write(): Promise<void> {
    const { clock, mark } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted && !this.#isCovered(this.#wanted)) {
      const isWritten = await this.#writeOnce();
      if (!isWritten) this.#settle(({ untilMs }) => untilMs <= clock.monotonicMs(), false);
      await clock.sleep(isWritten ? mark.pauseMs : retryMs, signal);
    }
    this.#writing = undefined;
  }

  /** @returns false if the mark was not written. */
  async #writeOnce(): Promise<boolean> {
    const { mark, log } = this.#options;
    const meta = this.#options.meta();
    const index = this.#wanted;
    if (meta === undefined) return false;
    const { id, beganAtMs } = meta;
    try {
      await mark.write(id, index, beganAtMs);
    } catch (error) {
      if (this.#problem === undefined) log.error({ err: error }, "mark of the ledger cannot be written");
      this.#problem = markProblem("its mark cannot be written", error);
      return false;
    }
    if (this.#problem !== undefined) log.info({}, "mark of the ledger can be written again");
    this.#problem = undefined;
    // Another ledger may have begun meanwhile. Then this mark covers nothing of it.
    if (id !== this.#options.meta()?.id) return false;
    this.#coveredId = id;
    this.#covered = index;
    this.#settle((waiter) => waiter.index <= index, true);
    return true;
  }

  #settle(isMeant: (waiter: MarkWaiter) => boolean, isCovered: boolean): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) {
      if (isMeant(waiter)) waiter.resolve(isCovered);
      else this.#waiters.push(waiter);
    }
  }
}
