/**
 * Logs decisions of the ledger. Each batch has conditions: it changes nothing if an entry has changed since the
 * decision. Then the ledger decides again. So of two members, or of two requests, only one can spend a permit.
 */

import type { Clock } from "../../lib/clock.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import type { StorePath } from "../../store/core/node.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import type { EntryWriting } from "./claim.ts";
import type { KnownLedger } from "./known-ledger.ts";
import { clockPath, encodeClock, entryPath, metaPath } from "./ledger-documents.ts";

interface LedgerLogOptions {
  readonly store: Store;
  readonly known: KnownLedger;
  readonly clock: Clock;
  readonly random: (bytes: number) => Uint8Array;
  /**
   * False while the ledger may have been rolled back or replaced. Then nothing is logged: each change raises the
   * store's index, and would hide that the store is behind its mark.
   */
  readonly isTrusted: () => boolean;
  /** Called with the store's index after each batch. */
  readonly logged: (index: number) => void;
}

/** A decision. Without commands it needs no write. */
export interface Decision<Result> {
  readonly commands: readonly SingleCommand[];
  readonly result: Result;
  /** `claim` for a batch that opens an install: it may not use the reserve of a full disk. */
  readonly kind: "claim" | "closing";
}

type LedgerBatch = Pick<Decision<unknown>, "commands" | "kind">;
type LedgerOutcome = "logged" | "changed" | "failed";

// Each repetition means that another writer was faster. With more of them, the machine asks again.
const maxAttempts = 8;
/** How long a machine waits for an answer. */
export const answerWithinMs = 950;

export class LedgerLog {
  readonly #options: LedgerLogOptions;

  constructor(options: LedgerLogOptions) {
    this.#options = options;
  }

  /** What pure functions need to plan a batch. */
  get writing(): EntryWriting {
    const { known, random } = this.#options;
    return {
      nowMs: known.nowMs,
      newId: () => hexOf(random(8)),
      indexOf: (id) => this.indexOf(entryPath(id)),
    };
  }

  /** The index of the store's last change. */
  get index(): number {
    return this.#options.store.indexes.storeIndex;
  }

  /** Returns the index of a document's last change; 0 if there is no document. */
  indexOf(path: StorePath): number {
    return this.#options.store.getFile(path)?.modifiedIndex ?? 0;
  }

  /** The command that refuses a batch if another ledger has begun since the decision. It changes nothing. */
  sameLedger(): SingleCommand {
    const value = this.#options.store.getFile(metaPath)?.value ?? "";
    return { kind: "compareAndSwap", path: metaPath, value, expected: { value }, refresh: true };
  }

  /** The command that keeps the highest time of the ledger. */
  clockMark(): SingleCommand {
    const index = this.indexOf(clockPath);
    const value = encodeClock({ highestMs: this.#options.known.nowMs });
    if (index === 0) return { kind: "create", path: clockPath, value };
    return { kind: "compareAndSwap", path: clockPath, value, expected: { index: BigInt(index) } };
  }

  /**
   * Decides on the newest state, and logs the decision.
   * @returns undefined if the decision was not logged; it may still be logged later.
   */
  async carryOut<Result>(decide: () => Decision<Result>): Promise<Result | undefined> {
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      if (!(await this.#isCurrent())) return undefined;
      const decision = decide();
      if (decision.commands.length === 0) return decision.result;
      const outcome = await this.submit(decision);
      if (outcome === "logged") return decision.result;
      if (outcome === "failed") return undefined;
    }
    return undefined;
  }

  /** Resolves with undefined after `answerWithinMs`, because a machine waits for the answer. The work continues. */
  async inTime<Result>(work: Promise<Result | undefined>): Promise<Result | undefined> {
    const done = new AbortController();
    const late = this.#options.clock.sleep(answerWithinMs, done.signal).then(() => undefined);
    try {
      return await Promise.race([work, late]);
    } finally {
      done.abort();
    }
  }

  /** Logs a batch. `changed`: a condition of the batch does not hold. */
  async submit(batch: LedgerBatch): Promise<LedgerOutcome> {
    return this.#options.isTrusted() ? await this.submitUntrusted(batch) : "failed";
  }

  /** As `submit`, to begin a ledger. */
  async submitUntrusted({ commands, kind }: LedgerBatch): Promise<LedgerOutcome> {
    const { store, logged } = this.#options;
    try {
      const { indexes } = await store.submit({ kind: "batch", commands }, { fenced: false, frees: kind === "closing" });
      logged(indexes.storeIndex);
      return "logged";
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return error.refusal === "logFailed" ? "failed" : "changed";
    }
  }

  /** Waits for everything that any member has logged. @returns false if the state may be old. */
  async #isCurrent(): Promise<boolean> {
    const { store } = this.#options;
    try {
      await store.catchUp();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return false;
    }
    // While closings cannot be logged, a logged claim may be over already.
    return store.status === "writable" || store.status === "full";
  }
}

/** Returns bytes as lower-case hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}
