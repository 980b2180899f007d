/**
 * A boot thread beside the first one. It answers machines from its own index, which the first thread feeds. It begins
 * to listen when it has all documents and the ledger, and davit answers machines. Without news from the first thread
 * for 10 s it answers 503 to requests for configs, because the objects may have changed.
 */

import { WantedAssets } from "../../assets/wanted-assets.ts";
import { BootError } from "../../boot/core/boot-error.ts";
import { SlowWork } from "../../boot/making/slow-work.ts";
import { BootIndex } from "../../boot/selection/boot-index.ts";
import { Freshness } from "../../boot/selection/freshness.ts";
import { RemoteDesk } from "../../follow/remote-desk.ts";
import { assetRoute } from "../../http/assets/assets.ts";
import { AssetDigests } from "../../http/assets/digests.ts";
import { requestFollower } from "../../http/boot/access-log.ts";
import { Clients } from "../../http/client-shares.ts";
import { UnsentAnswers, unsentLimitOf } from "../../http/unsent-answers.ts";
import { KnownLedger } from "../../installs/ledger/known-ledger.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { createThreadMetrics } from "../../lib/metrics/boot-metrics.ts";
import { Suspensions } from "../../lib/suspension.ts";
import type { FeedListener } from "../../model/feed.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import { maxAssetFiles } from "../core/open-files.ts";
import { SecretKeys } from "../core/secret-keys.ts";
import { ledgerFreshness } from "../ledger/ledger-freshness.ts";
import { reportingMachine } from "../ledger/machine-book.ts";
import { BootListener } from "../listener/boot-listener.ts";
import { BootTls } from "../listener/boot-tls.ts";
import type { FirstThread } from "./first-thread.ts";
import { type FeedName, type Proven, type SignerName, signerNames, type ThreadStart, type ToThread } from "./wire.ts";

/** The longest time without news. The first thread sends a proof each second. */
const newsLimitMs = 10_000;
const countsMs = 1_000;

/** For parts that every thread runs. The first thread logs for all of them. */
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };

export class BootThread {
  readonly #start: ThreadStart;
  readonly #first: FirstThread;
  readonly #clock: Clock;
  readonly #keys: SecretKeys;
  readonly #index: BootIndex;
  readonly #ledger: KnownLedger;
  readonly #wanted: WantedAssets | undefined;
  readonly #metrics = createThreadMetrics();
  readonly #suspensions: Suspensions;
  readonly #unsent: UnsentAnswers;
  readonly #clients: Clients;
  readonly #digests: AssetDigests;
  readonly #stopping = new AbortController();
  /** What this thread still needs before it listens. */
  readonly #missing = new Set<FeedName | "open">(["store", "ledger", "open"]);
  /** The documents of a feed that have arrived, until the last part is there. */
  readonly #parts: Record<FeedName, (readonly [path: string, text: string])[]> = { store: [], ledger: [] };
  readonly #listeners: Readonly<Record<FeedName, readonly FeedListener[]>>;
  #listener: BootListener | undefined;
  #tls: BootTls | undefined;
  #proven: Proven = { store: undefined, ledger: undefined };
  #newsAtMs: number;

  constructor(start: ThreadStart, first: FirstThread, clock: Clock) {
    this.#start = start;
    this.#first = first;
    this.#clock = clock;
    this.#newsAtMs = clock.monotonicMs();
    this.#suspensions = new Suspensions(clock);
    const { config } = start;
    this.#keys = new SecretKeys({ path: config.secretsKeyFile, clock, log: silent });
    const freshness = new Freshness({ clock, maxStalenessMs: config.maxStalenessMs });
    freshness.provenBy(() => this.#suspensions.corrected(this.#proven.store));
    this.#ledger = new KnownLedger({ clock });
    this.#ledger.freshBy(ledgerFreshness(clock, config, () => this.#proven.ledger));
    this.#index = new BootIndex({ clock, freshness, ledger: this.#ledger, secretReader: this.#keys, log: silent });
    this.#keys.onChange(() => this.#index.keysChanged());
    this.#wanted = start.fetchesAssets ? new WantedAssets(() => {}) : undefined;
    const ofStore = [this.#index, ...(this.#wanted === undefined ? [] : [this.#wanted])];
    this.#listeners = { store: ofStore, ledger: [this.#ledger] };
    this.#clients = new Clients({ exempt: config.clientLimitExempt, trustedProxies: config.trustedProxies });
    this.#unsent = new UnsentAnswers({ clients: this.#clients, limitBytes: unsentLimitOf(config.bootThreads) });
    const log = first.log("http");
    this.#digests = new AssetDigests({ clock, log, metrics: this.#metrics, hash: first.hash });
  }

  /**
   * Opens the files that this thread needs.
   * @throws {StartError} if a file cannot be used now.
   */
  async begin(): Promise<void> {
    const { config } = this.#start;
    const clock = this.#clock;
    await this.#keys.start();
    // Only the first thread makes a certificate for davit. `config` has the paths of its files.
    this.#tls = await BootTls.open({ config, ownDirectory: undefined, clock, log: silent });
    void this.#count();
  }

  /** Takes a message of the first thread. */
  async take(message: ToThread): Promise<void> {
    switch (message.kind) {
      case "documents":
        return await this.#replace(message);
      case "changes":
        for (const listener of this.#listeners[message.feed]) listener.changed(message.changes);
        return;
      case "proof":
        this.#proven = message.proven;
        // The time of sending: a thread that was blocked reads old messages.
        this.#newsAtMs = message.sentAtMs;
        return;
      case "checked":
        this.#wanted?.noteChecked(message.claim);
        return;
      case "settling":
        this.#index.settling.takeOver(message.sinceMs);
        return;
      case "open":
        this.#index.open();
        return await this.#has("open");
      case "answer":
        this.#first.answered(message.id, message.answer);
        return;
      case "failed":
        this.#first.failed(message.id);
        return;
      case "stop":
        return await this.#stop();
    }
  }

  async #replace({ feed, documents, isLast }: Extract<ToThread, { kind: "documents" }>): Promise<void> {
    const parts = this.#parts[feed];
    for (const document of documents) parts.push(document);
    if (!isLast) return;
    this.#parts[feed] = [];
    // A proof is valid only for the documents before it. The new ones may be older, from a restored store.
    this.#proven = { ...this.#proven, [feed]: undefined };
    for (const listener of this.#listeners[feed]) listener.replaced(parts);
    await this.#has(feed);
  }

  async #has(what: FeedName | "open"): Promise<void> {
    if (this.#missing.delete(what) && this.#missing.size === 0) await this.#listen();
  }

  async #listen(): Promise<void> {
    const { config, hasDesk } = this.#start;
    const clock = this.#clock;
    const first = this.#first;
    const log = first.log("http");
    const desk = hasDesk ? this.#desk() : undefined;
    this.#listener = new BootListener({
      ...{ config, clock, log, metrics: this.#metrics, clients: this.#clients, unsent: this.#unsent },
      index: this.#index,
      slowWork: new SlowWork({ thread: first.renderThread, clock }),
      signers: this.#signers(),
      assets: this.#assets(log, desk),
      desk,
      machineOf: (token) => reportingMachine(this.#ledger, token),
      accessLog: requestFollower({ clock, follow: first.follow }),
      nearMisses: { report: (labels) => first.report({ on: "noMatch", labels, flaws: labels.flaws }) },
      tls: this.#tls,
      joins: true,
      assertCurrent: () => this.#assertCurrent(),
    });
    await this.#listener.listen();
    first.post({ kind: "listening" });
  }

  /** @throws {BootError} notReady. */
  #assertCurrent(): void {
    if (this.#clock.monotonicMs() - this.#newsAtMs >= newsLimitMs) throw new BootError("notReady");
  }

  #signers() {
    const made = signerNames.flatMap((name: SignerName) => {
      const publicKey = this.#start.publicKeys[name];
      return publicKey === undefined ? [] : [[name, this.#first.signer(name, publicKey)] as const];
    });
    return Object.fromEntries(made);
  }

  #assets(log: Log, desk: PermitDesk | undefined) {
    const { assetsDir: root, assetsDotfiles: serveDotfiles, assetsCacheBytes, bootThreads } = this.#start.config;
    return assetRoute({
      root,
      serveDotfiles,
      cacheBytes: Math.floor(assetsCacheBytes / bootThreads),
      digests: this.#digests,
      wanted: this.#wanted,
      clock: this.#clock,
      log,
      metrics: this.#metrics,
      clients: this.#clients,
      maxOpen: maxAssetFiles(bootThreads),
      desk,
    });
  }

  #desk(): PermitDesk {
    const { askWriter } = this.#first;
    // The first thread decides each refusal, because this copy of the ledger may be behind.
    return new RemoteDesk({ askWriter, view: this.#ledger, isCurrent: () => false });
  }

  async #count(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#metrics.unsentBytes.set({ listener: "boot" }, this.#unsent.bytes);
      const changes = await this.#metrics.changes();
      if (changes.length > 0) this.#first.post({ kind: "counts", changes });
      await this.#clock.sleep(countsMs, this.#stopping.signal);
    }
  }

  async #stop(): Promise<void> {
    this.#stopping.abort();
    await this.#listener?.close();
    await this.#tls?.stop();
    this.#keys.stop();
    await this.#digests.stop();
    await this.#first.allReported();
    const changes = await this.#metrics.changes();
    this.#first.post({ kind: "counts", changes: changes.filter(({ isGauge }) => !isGauge) });
  }
}
