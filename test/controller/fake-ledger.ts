import type { LedgerFacts } from "../../src/controller/permits/grants.ts";
import type { LedgerEntry } from "../../src/model/permits/permit.ts";

type Listener = Parameters<LedgerFacts["onChange"]>[0];

/** A ledger that a test fills. */
export class FakeLedger implements LedgerFacts {
  id: string | undefined = "9f3c0a52";
  isFull = false;
  readonly ended = new Map<string, number>();
  readonly #entries = new Map<string, LedgerEntry>();
  readonly #listeners = new Set<Listener>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  get nowMs(): number {
    return this.#now();
  }

  endedGeneration(key: string): number {
    return this.ended.get(key) ?? 0;
  }

  adoptedUntilMs(): number {
    return 0;
  }

  entriesOf(identities: readonly string[]): readonly LedgerEntry[] {
    return [...this.#entries.values()].filter((entry) => entry.identities.some((each) => identities.includes(each)));
  }

  onChange(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get listenerCount(): number {
    return this.#listeners.size;
  }

  put(entry: Partial<LedgerEntry>): void {
    const whole: LedgerEntry = {
      id: "0011223344556677",
      identities: ["mac/52:54:00:a1:9c:ae"],
      state: "Claimed",
      grant: { key: "group/default/node1", generation: 1 },
      spent: { "group/default/node1": 1 },
      claimedAtMs: this.nowMs,
      changedAtMs: this.nowMs,
      timeoutSeconds: 7_200,
      group: "default/node1",
      profile: "default/web",
      addresses: ["192.0.2.7"],
      ...entry,
    };
    this.#entries.set(whole.id, whole);
    for (const listener of this.#listeners) listener([whole]);
  }

  /** Reports that anything may have changed. */
  replaced(): void {
    for (const listener of this.#listeners) listener(undefined);
  }
}
