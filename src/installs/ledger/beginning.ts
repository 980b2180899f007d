/**
 * Begins a ledger, and decides whether a ledger that is found may be trusted. Without a mark outside the store, every
 * ledger is trusted. With one, a ledger is trusted if it is the marked one and is not behind the mark. Otherwise its
 * store was rolled back or replaced, and a new ledger begins: every grant names the former one, so none opens. The
 * entries stay, because they can only close permits.
 *
 * Where each member has a mark of its own (`LedgerMark.isOwn`), a ledger that began after the marked one is trusted,
 * too: another member has begun it.
 */

import { toRfc3339 } from "../../lib/clock.ts";
import type { Ports } from "../../lib/ports.ts";
import type { SingleCommand } from "../../store/command/command.ts";
import { StoreError } from "../../store/core/refusal.ts";
import type { Store } from "../../store/store.ts";
import type { KnownLedger } from "./known-ledger.ts";
import {
  encodeMarked,
  encodeMeta,
  type LedgerMeta,
  ledgerSyncedPath,
  markedPath,
  metaPath,
  secretPath,
} from "./ledger-documents.ts";
import { hexOf, type LedgerLog } from "./ledger-log.ts";
import type { LedgerMark, Mark } from "./mark-keeper.ts";
import { type MarkProblem, markProblem } from "./mark-problem.ts";

interface BeginningOptions extends Pick<Ports, "clock" | "log"> {
  readonly store: Store;
  readonly known: KnownLedger;
  readonly ledgerLog: LedgerLog;
  readonly random: (bytes: number) => Uint8Array;
  readonly mark: LedgerMark | undefined;
  /** Writes the mark. Resolves with false if it never will. */
  readonly cover: (index: number) => Promise<boolean>;
}

const retryMs = 1_000;
/** For so many attempts, a ledger without a mark may be that of a member which has not written the mark yet. */
const patience = 5;

export class Beginning {
  readonly #options: BeginningOptions;
  readonly #stopping = new AbortController();
  #trustedId: string | undefined;
  /** The ledger that this process has begun. */
  #ownId: string | undefined;
  #waited = 0;
  #problem: MarkProblem | undefined;
  #running: Promise<void> | undefined;

  constructor(options: BeginningOptions) {
    this.#options = options;
  }

  /** True if the present ledger may be trusted. */
  get isTrusted(): boolean {
    const { known } = this.#options;
    return known.id !== undefined && known.id === this.#trustedId;
  }

  /** Why no ledger is trusted yet, for operators. */
  get problem(): MarkProblem | undefined {
    return this.isTrusted ? undefined : this.#problem;
  }

  /**
   * Tries until a ledger is trusted, and again whenever another one begins. Resolves after the first attempt, or after
   * about a second.
   */
  async start(): Promise<void> {
    const { known, ledgerLog } = this.#options;
    const first = this.#attempt();
    this.#keepTrying(first);
    known.onChange(() => this.#keepTrying());
    await ledgerLog.inTime(first);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  #keepTrying(attempt = Promise.resolve()): void {
    if (this.isTrusted || this.#stopping.signal.aborted) return;
    this.#running ??= this.#tryAfter(attempt).finally(() => {
      this.#running = undefined;
    });
  }

  async #tryAfter(attempt: Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    await attempt;
    while (!this.isTrusted && !signal.aborted) {
      await this.#options.clock.sleep(retryMs, signal);
      if (!signal.aborted) await this.#attempt();
    }
  }

  async #attempt(): Promise<void> {
    const { mark, store, known } = this.#options;
    try {
      const found = await mark?.read();
      await store.catchUp();
      // An unreadable document may be of a later davit. It is no reason to begin another ledger.
      if (known.unreadable > 0) return;
      if (known.meta === undefined) await this.#begin(undefined);
      else if (mark !== undefined && !this.#mayTrust(known.meta, found)) await this.#begin(known.meta);
      if (known.id !== undefined && (await this.#isMarked(known.id))) this.#trustedId = known.id;
      this.#problem = this.isTrusted ? undefined : { text: "the ledger cannot be written", isLasting: false };
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const isOfStore = error instanceof StoreError;
    const what = isOfStore ? "the ledger cannot be read or written" : "the mark of the ledger cannot be read";
    if (this.#problem?.text.startsWith(what) !== true) this.#options.log.error({ err: error }, what);
    this.#problem = isOfStore ? { text: what, isLasting: false } : markProblem(what, error);
  }

  /** True unless the mark shows that the store was rolled back or replaced. */
  #mayTrust({ id, beganAtMs }: LedgerMeta, found: Mark | undefined): boolean {
    const { known, store, mark } = this.#options;
    if (found?.id === id) return store.indexes.storeIndex >= found.index;
    // A ledger that began before the marked one is an old copy. A later one was begun by another member.
    if (mark?.isOwn === true) return this.#ownId === id || beganAtMs > (found?.beganAtMs ?? 0);
    if (known.isMarked) return false;
    // Nothing was ever granted by a ledger without a mark. But it may be an old copy of a former ledger.
    if (found === undefined || this.#ownId === id) return true;
    this.#waited += 1;
    return this.#waited <= patience;
  }

  async #begin(former: LedgerMeta | undefined): Promise<void> {
    const { random, known, log, ledgerLog } = this.#options;
    const meta: LedgerMeta = { id: hexOf(random(4)), beganAtMs: known.nowMs };
    const outcome = await ledgerLog.submitUntrusted({ kind: "closing", commands: this.#commandsOf(meta, former) });
    if (outcome !== "logged") return;
    this.#ownId = meta.id;
    this.#waited = 0;
    if (former === undefined) log.info({ ledger: meta.id }, "ledger begun");
    else log.error({ ledger: meta.id, former: former.id }, "ledger is older than its mark, a new one begins");
  }

  #commandsOf(meta: LedgerMeta, former: LedgerMeta | undefined): readonly SingleCommand[] {
    const { random, ledgerLog } = this.#options;
    const secret = hexOf(random(32));
    const synced = { source: "ledger", at: toRfc3339(meta.beganAtMs), revision: meta.id, complete: true };
    const value = encodeMeta(meta);
    return [
      former === undefined
        ? { kind: "create", path: metaPath, value }
        : {
            kind: "compareAndSwap",
            path: metaPath,
            value,
            expected: { index: BigInt(ledgerLog.indexOf(metaPath)) },
          },
      { kind: "set", path: secretPath, value: secret },
      { kind: "set", path: ledgerSyncedPath, value: JSON.stringify(synced) },
    ];
  }

  /** Writes the mark of a ledger, and then logs that the ledger has one. @returns false if this failed. */
  async #isMarked(id: string): Promise<boolean> {
    const { mark, known, store, cover, ledgerLog } = this.#options;
    if (mark === undefined) return true;
    // With the ledger of another member, wait until that member has written the mark.
    const found = await mark.read();
    if (mark.isOwn !== true && found !== undefined && found.id !== id && this.#ownId !== id) return false;
    if (!(await cover(store.indexes.storeIndex))) return false;
    if (known.isMarked) return true;
    const value = encodeMarked({ id });
    const commands: SingleCommand[] = [ledgerLog.sameLedger(), { kind: "set", path: markedPath, value }];
    return (await ledgerLog.submitUntrusted({ kind: "closing", commands })) === "logged" && known.id === id;
  }
}
