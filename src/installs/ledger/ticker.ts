/**
 * Logs what time changes: installs whose time is over, grants that have ended, and the highest time. Only the member
 * that leads the store does so. A late tick changes no answer, because answers compare the times themselves.
 */

import type { Clock } from "../../lib/clock.ts";
import { isUnderWay, type LedgerEntry, type NamedGrant, stillCounts } from "../../model/permits/permit.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import { change, ended } from "./claim.ts";
import { endingCommands, isEndedForEver, removal } from "./grants.ts";
import type { KnownLedger } from "./known-ledger.ts";
import type { LedgerLog } from "./ledger-log.ts";

interface TickerOptions {
  readonly known: KnownLedger;
  readonly log: LedgerLog;
  readonly clock: Clock;
  readonly isTrusted: () => boolean;
}

const tickMs = 5_000;
const clockMarkMs = 60_000;
/** From this share of all entries on, the ledger makes room. */
const crowdedShare = 0.99;
/** The most changes of one batch, and the most batches of one tick. */
const perBatch = 200;
const batchesPerTick = 10;

export class Ticker {
  readonly #options: TickerOptions;
  readonly #stopping = new AbortController();
  #grants: readonly NamedGrant[] = [];
  #isLeading = false;
  #running: Promise<void> | undefined;

  constructor(options: TickerOptions) {
    this.#options = options;
  }

  /** The grants of all objects. */
  get grants(): readonly NamedGrant[] {
    return this.#grants;
  }

  grantsChanged(grants: readonly NamedGrant[]): void {
    this.#grants = grants;
  }

  lead(isLeading: boolean): void {
    this.#isLeading = isLeading;
    if (isLeading) this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#isLeading = false;
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (this.#isLeading && !signal.aborted) {
      await this.#tick();
      await this.#options.clock.sleep(tickMs, signal);
    }
    this.#running = undefined;
  }

  async #tick(): Promise<void> {
    const { isTrusted } = this.#options;
    if (!isTrusted()) return;
    for (let batch = 0; batch < batchesPerTick && this.#isLeading; batch++) {
      const commands = [...this.#overdue(), ...this.#endings()];
      if (!(await this.#log(commands)) || commands.length < perBatch) break;
    }
    await this.#log(this.#crowded());
    if (this.#isClockDue) await this.#log([this.#options.log.clockMark()]);
  }

  /** @returns false if nothing was logged. If an entry has changed meanwhile, the next tick tries again. */
  async #log(commands: readonly SingleCommand[]): Promise<boolean> {
    if (commands.length === 0) return false;
    return (await this.#options.log.submit({ kind: "closing", commands })) === "logged";
  }

  /** Installs without an end in their time, and those that a former ledger has begun. */
  #overdue(): readonly SingleCommand[] {
    const { known, log } = this.#options;
    const { nowMs } = known;
    const beganAtMs = known.meta?.beganAtMs ?? 0;
    const isOver = (entry: LedgerEntry) => !isUnderWay(entry, nowMs) || entry.claimedAtMs < beganAtMs;
    const commands: SingleCommand[] = [];
    for (const entry of known.underWay.values()) {
      if (isOver(entry)) commands.push(change(ended(entry, "Unconfirmed", nowMs), log.writing));
      if (commands.length === perBatch) break;
    }
    return commands;
  }

  #endings(): readonly SingleCommand[] {
    const { known, log } = this.#options;
    return endingCommands(this.#grants, known, (path) => log.indexOf(path), perBatch);
  }

  /**
   * Makes room in a ledger that is nearly full. It removes only failed installs whose grants have all ended: without
   * an entry, such a machine gets the same answers. An entry stays while a reported label of it selects a Group.
   */
  #crowded(): readonly SingleCommand[] {
    const { known, log } = this.#options;
    const { nowMs } = known;
    if (known.entries.size < known.maxEntries * crowdedShare) return [];
    const commands: SingleCommand[] = [];
    for (const entry of known.entries.values()) {
      const hasLabel = Object.values(entry.labels ?? {}).some((label) => stillCounts(label, nowMs));
      const isOfUse = entry.state !== "Failed" || hasLabel;
      if (!isOfUse && isEndedForEver(entry, known)) commands.push(...removal(entry, log.writing));
      if (commands.length >= perBatch) break;
    }
    // A removed entry no longer keeps its times.
    return commands.length === 0 ? [] : [log.clockMark(), ...commands];
  }

  get #isClockDue(): boolean {
    const { known } = this.#options;
    if (!known.isUsed && this.#grants.every(({ grant }) => grant.ledger !== known.id)) return false;
    return known.nowMs - known.markedMs >= clockMarkMs;
  }
}
