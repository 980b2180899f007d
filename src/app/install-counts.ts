/** Counts installs by their results, and machines of the ledger by their states. */

import type { Ledger } from "../ledger/ledger.ts";
import type { Metrics } from "../lib/metrics.ts";
import { type InstallState, installStates, type LedgerEntry } from "../model/permit.ts";
import type { Store } from "../store/store.ts";

export interface InstallCountsOptions {
  readonly ledger: Pick<Ledger, "known" | "measure">;
  readonly store: Pick<Store, "membership">;
  readonly metrics: Pick<Metrics, "installs" | "ledgerEntries">;
  /** Called with an entry whose state has just changed, in the leader only. */
  readonly changed: (entry: LedgerEntry) => void;
}

export class InstallCounts {
  readonly #options: InstallCountsOptions;
  /** The state of each entry, and when it began. */
  #states = new Map<string, string>();
  readonly #unfollow: () => void;

  constructor(options: InstallCountsOptions) {
    this.#options = options;
    for (const state of installStates) options.metrics.installs.inc({ result: resultOf(state) }, 0);
    this.#learnAll();
    this.#unfollow = options.ledger.known.onChange((entries) => {
      if (entries === undefined) this.#learnAll();
      else for (const entry of entries) this.#learn(entry);
    });
  }

  measure(): void {
    const counts = this.#options.ledger.measure();
    for (const state of installStates)
      this.#options.metrics.ledgerEntries.set({ state: resultOf(state) }, counts.get(state) ?? 0);
  }

  stop(): void {
    this.#unfollow();
  }

  #learnAll(): void {
    this.#states = new Map();
    for (const entry of this.#options.ledger.known.entries.values()) this.#states.set(entry.id, stateOf(entry));
  }

  /** Only the leader counts, so that the sum over all members is right. */
  #learn(entry: LedgerEntry): void {
    const state = stateOf(entry);
    if (this.#states.get(entry.id) === state) return;
    this.#states.set(entry.id, state);
    const { store, metrics, changed } = this.#options;
    if (!store.membership.isLeader) return;
    metrics.installs.inc({ result: resultOf(entry.state) });
    changed(entry);
  }
}

function stateOf({ state, claimedAtMs }: LedgerEntry): string {
  return `${state} ${claimedAtMs}`;
}

function resultOf(state: InstallState): string {
  return state.toLowerCase();
}
