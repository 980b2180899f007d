/** Counts installs by their results, and machines of the ledger by their states. */

import type { Metrics } from "../../lib/metrics/metrics.ts";
import { type InstallState, installStates, type LedgerEntry } from "../../model/permits/permit.ts";
import type { Store } from "../../store/store.ts";
import type { Ledger } from "../ledger/ledger.ts";

interface InstallCountsOptions {
  readonly ledger: Pick<Ledger, "known" | "measure">;
  readonly store: Pick<Store, "membership">;
  readonly metrics: Pick<Metrics, "installs" | "ledgerEntries">;
  /** Called with an entry whose state has just changed, in the leader only. */
  readonly changed: (entry: LedgerEntry) => void;
  /** Called with a grant that has ended by its `until`: once for each generation, as `changed`. */
  readonly ended: (key: string, generation: number) => void;
  /** Called with an entry for whose text another address has just asked (`LedgerEntry.otherAddress`), as `changed`. */
  readonly closed: (entry: LedgerEntry) => void;
}

export class InstallCounts {
  readonly #options: InstallCountsOptions;
  /** The state of each entry, when it began, and whether a text is closed. */
  readonly #states = new Map<string, KnownState>();
  /** The ended generation of each grant. */
  readonly #ended = new Map<string, number>();
  readonly #unfollow: () => void;

  constructor(options: InstallCountsOptions) {
    this.#options = options;
    for (const state of installStates) options.metrics.installs.inc({ result: resultOf(state) }, 0);
    const { known } = options.ledger;
    for (const entry of known.entries.values()) this.#states.set(entry.id, stateOf(entry));
    for (const [key, generation] of known.ended) this.#ended.set(key, generation);
    this.#unfollow = known.onChange((entries) => {
      // Entries can change together with documents of other kinds.
      for (const entry of entries ?? known.entries.values()) this.#learn(entry);
      if (entries !== undefined) return;
      for (const id of this.#states.keys()) if (!known.entries.has(id)) this.#states.delete(id);
      for (const [key, generation] of known.ended) this.#learnEnded(key, generation);
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

  #learnEnded(key: string, generation: number): void {
    if ((this.#ended.get(key) ?? 0) >= generation) return;
    this.#ended.set(key, generation);
    if (this.#options.store.membership.isLeader) this.#options.ended(key, generation);
  }

  /** Only the leader counts, so that the sum over all members is right. */
  #learn(entry: LedgerEntry): void {
    const before = this.#states.get(entry.id);
    const now = stateOf(entry);
    this.#states.set(entry.id, now);
    const { store, metrics, changed, closed } = this.#options;
    if (!store.membership.isLeader) return;
    if (now.isClosed && before?.isClosed !== true) closed(entry);
    if (before?.state === now.state) return;
    metrics.installs.inc({ result: resultOf(entry.state) });
    changed(entry);
  }
}

interface KnownState {
  readonly state: string;
  readonly isClosed: boolean;
}

function stateOf({ state, claimedAtMs, otherAddress }: LedgerEntry): KnownState {
  return { state: `${state} ${claimedAtMs}`, isClosed: otherAddress !== undefined };
}

function resultOf(state: InstallState): string {
  return state.toLowerCase();
}
