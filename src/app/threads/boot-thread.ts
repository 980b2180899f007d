/**
 * A boot thread beside the first one. It answers machines from its own index, which follows the first thread. It begins
 * to listen when it has all documents and the ledger, and davit answers machines. Without news from the first thread
 * for 10 s it answers 503 to requests for configs, because the objects may have changed.
 */

import { ProfileAssetIndex } from "../../assets/profile-asset-index.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import { RemoteDesk } from "../../follow/remote-desk.ts";
import { requestFollower } from "../../http/boot/access-log.ts";
import { KnownLedger } from "../../installs/ledger/known-ledger.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { createThreadMetrics } from "../../lib/metrics/boot-metrics.ts";
import { Suspensions } from "../../lib/suspension.ts";
import type { Feed, FeedListener } from "../../model/feed.ts";
import { davitRoot } from "../../model/objects/documents.ts";
import { SecretKeys } from "../core/secret-keys.ts";
import { ledgerFreshness } from "../ledger/ledger-freshness.ts";
import { BootListener } from "../listener/boot-listener.ts";
import { BootTls } from "../listener/boot-tls.ts";
import type { ThreadStart } from "./boot-threads.ts";
import type { FirstThread } from "./first-thread.ts";
import { feedNames, signerNames, type ThreadState, type ToThread } from "./wire.ts";

/** The longest time without news. The first thread sends its state each second. */
const newsLimitMs = 10_000;
const countsMs = 1_000;

/** For parts that every thread runs. The first thread logs for all of them. */
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };

export class BootThread {
  readonly #start: ThreadStart;
  readonly #first: FirstThread;
  readonly #clock: Clock;
  readonly #feeds = { store: new PortFeed(), ledger: new PortFeed() };
  readonly #keys: SecretKeys;
  readonly #wanted: ProfileAssetIndex | undefined;
  readonly #metrics = createThreadMetrics();
  readonly #listener: BootListener;
  readonly #stopping = new AbortController();
  #tls: BootTls | undefined;
  #isOpen = false;
  #isListening = false;
  #newsAtMs: number;

  constructor(start: ThreadStart, first: FirstThread, clock: Clock) {
    this.#start = start;
    this.#first = first;
    this.#clock = clock;
    this.#newsAtMs = clock.monotonicMs();
    const { config, hasDesk, fetchesAssets } = start;
    const { store, ledger: ledgerFeed } = this.#feeds;
    this.#keys = new SecretKeys({ path: config.secretsKeyFile, clock, log: silent });
    this.#wanted = fetchesAssets ? new ProfileAssetIndex(() => {}) : undefined;
    const ledger = new KnownLedger({ clock });
    ledger.freshBy(ledgerFreshness(clock, config, () => ledgerFeed.provenAtMs));
    const { askWriter, renderThread, hash } = first;
    this.#listener = new BootListener({
      ...{ config, clock, ledger, renderThread, hash },
      ...{ log: first.log("http"), indexLog: silent, metrics: this.#metrics },
      secretKeys: this.#keys,
      wanted: this.#wanted,
      // The first thread decides each refusal, because this copy of the ledger may be behind.
      desk: hasDesk ? new RemoteDesk({ askWriter, view: ledger, isCurrent: () => false }) : undefined,
    });
    const suspensions = new Suspensions(clock);
    this.#listener.freshness.provenBy(() => suspensions.corrected(store.provenAtMs));
    this.#listener.follow(store);
    ledgerFeed.follow(davitRoot, ledger);
  }

  /**
   * Opens the files that this thread needs.
   * @throws {StartError} if a file cannot be used now.
   */
  async begin(): Promise<void> {
    const { config } = this.#start;
    await this.#keys.start();
    // Only the first thread makes a certificate for davit. `config` has the paths of its files.
    this.#tls = await BootTls.open({ config, ownDirectory: undefined, clock: this.#clock, log: silent });
    void this.#count();
  }

  /** Takes a message of the first thread. */
  async take(message: ToThread): Promise<void> {
    switch (message.kind) {
      case "documents":
      case "changes":
        this.#feeds[message.feed].take(message);
        return await this.#listenOnce();
      case "state":
        this.#know(message);
        return await this.#listenOnce();
      case "checked":
        this.#wanted?.noteChecked(message.demand);
        return;
      case "answer":
      case "failed":
        this.#first.answered(message);
        return;
      case "stop":
        return await this.#stop();
    }
  }

  #know({ proven, settlingSinceMs, isOpen, sentAtMs }: ThreadState): void {
    const { index } = this.#listener;
    for (const name of feedNames) this.#feeds[name].provenAtMs = proven[name];
    index.settling.takeOver(settlingSinceMs);
    if (isOpen) index.open();
    this.#isOpen ||= isOpen;
    // The time of sending: a thread that was blocked reads old messages.
    this.#newsAtMs = sentAtMs;
  }

  /** Listens when there is nothing left that this thread needs. */
  async #listenOnce(): Promise<void> {
    const { store, ledger } = this.#feeds;
    if (this.#isListening || !this.#isOpen || !store.isFilled || !ledger.isFilled) return;
    this.#isListening = true;
    const first = this.#first;
    await this.#listener.listen({
      signers: this.#signers(),
      accessLog: requestFollower({ clock: this.#clock, follow: first.follow }),
      nearMisses: { report: (labels) => first.report({ on: "noMatch", labels, flaws: labels.flaws }) },
      tls: this.#tls,
      joins: true,
      assertCurrent: () => this.#assertCurrent(),
    });
    first.post({ kind: "listening" });
  }

  /** @throws {BootError} notReady. */
  #assertCurrent(): void {
    if (this.#clock.monotonicMs() - this.#newsAtMs >= newsLimitMs) throw new BootError("notReady");
  }

  #signers() {
    const made = signerNames.flatMap((name) => {
      const publicKey = this.#start.publicKeys[name];
      return publicKey === undefined ? [] : [[name, this.#first.signer(name, publicKey)] as const];
    });
    return Object.fromEntries(made);
  }

  async #count(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#metrics.unsentBytes.set({ listener: "boot" }, this.#listener.unsent.bytes);
      const changes = await this.#metrics.changes();
      if (changes.length > 0) this.#first.post({ kind: "counts", changes });
      await this.#clock.sleep(countsMs, this.#stopping.signal);
    }
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    await this.#listener.close();
    await this.#tls?.stop();
    this.#keys.stop();
    await this.#listener.digests.stop();
    await this.#first.allReported();
    const changes = await this.#metrics.changes();
    this.#first.post({ kind: "counts", changes: changes.filter(({ isGauge }) => !isGauge) });
  }
}

/** The documents of the first thread, as a feed of a boot thread. All documents of a store come in several parts. */
export class PortFeed implements Feed {
  readonly #listeners = new Set<FeedListener>();
  /** The documents that have arrived, until the last part is there. */
  #parts: (readonly [path: string, text: string])[] = [];
  #isFilled = false;
  /** When the documents were last proven, on the monotonic clock; undefined before the first proof. */
  provenAtMs: number | undefined;

  /** True if all documents have arrived. */
  get isFilled(): boolean {
    return this.#isFilled;
  }

  /**
   * Ignores the prefix: the first thread sends only documents below it. A listener that comes after the first documents
   * does not get them.
   */
  follow(_prefix: string, listener: FeedListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  take(message: Extract<ToThread, { kind: "documents" | "changes" }>): void {
    if (message.kind === "documents") this.#takePart(message);
    else for (const listener of this.#listeners) listener.changed(message.changes);
  }

  #takePart({ documents, isLast }: Extract<ToThread, { kind: "documents" }>): void {
    for (const document of documents) this.#parts.push(document);
    if (!isLast) return;
    const all = this.#parts;
    this.#parts = [];
    this.#isFilled = true;
    // A proof is valid only for the documents before it. The new ones may be older, from a restored store.
    this.provenAtMs = undefined;
    for (const listener of this.#listeners) listener.replaced(all);
  }
}
