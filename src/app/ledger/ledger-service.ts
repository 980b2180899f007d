/**
 * The ledger of `davit serve`, with its store: in files a directory of its own inside the data directory, in etcd a
 * prefix of its own. Backups and moves of the main store leave it alone: what is restored must never open an install.
 */

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { BootIndex } from "../../boot/selection/boot-index.ts";
import { fileMark } from "../../installs/ledger/file-mark.ts";
import { foreignGrants } from "../../installs/ledger/grants.ts";
import { Ledger } from "../../installs/ledger/ledger.ts";
import type { LedgerMark } from "../../installs/ledger/mark-keeper.ts";
import { InstallCounts } from "../../installs/outcomes/install-counts.ts";
import { InstallEvents } from "../../installs/outcomes/install-events.ts";
import type { Clock } from "../../lib/clock.ts";
import { diskFiles } from "../../lib/files/files.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { davitRoot, decodeGroup, groupPath, machinePath } from "../../model/objects/documents.ts";
import { decodeMachine } from "../../model/objects/machine.ts";
import type { EventSink } from "../../model/objects/source.ts";
import type { LedgerEntry, ReportRules } from "../../model/permits/permit.ts";
import type { ServeConfig } from "../../options/serve.ts";
import type { AuditLog } from "../../records/audit/audit-log.ts";
import { storePath } from "../../store/core/node.ts";
import { openStore } from "../../store/open-store.ts";
import type { Store } from "../../store/store.ts";
import { lockDirectory } from "../../store/wal/lock.ts";
import { openSharedLedger } from "../core/members.ts";
import { ledgerFreshness } from "./ledger-freshness.ts";

interface LedgerServiceOptions {
  readonly config: ServeConfig;
  /** Aborts when davit must stop, even while it starts. */
  readonly stop: AbortSignal;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Where a rollback of the ledger's store leaves a trace; undefined without a cluster. */
  readonly mark: LedgerMark | undefined;
  /** Returns which labels the machines of a Profile (`namespace/name`) may report. */
  readonly rulesOf: (profile: string) => ReportRules | undefined;
  /** Returns where events of Groups are shown; undefined while objects come from files. */
  readonly eventSink: () => EventSink | undefined;
  /** Undefined without an audit log. */
  readonly audit: Pick<AuditLog, "entryChanged" | "grantEnded"> | undefined;
}

// Enough to log the end of about 5,000 installs on a full disk.
const reserveBytes = 4 * 1024 * 1024;
const lockCheckMs = 1_000;
/** Changes of grants gather for so long: a sync of thousands of Groups is one change. */
const gatherMs = 100;

/** The objects in the main store. */
interface FollowedObjects {
  readonly store: Pick<Store, "follow" | "getFile">;
  readonly index: Pick<BootIndex, "grants">;
}

export class LedgerService {
  readonly store: Store;
  readonly ledger: Ledger;
  readonly #options: LedgerServiceOptions;
  readonly #counts: InstallCounts;
  readonly #events: InstallEvents;
  readonly #stopping = new AbortController();
  #gathering: Promise<void> | undefined;
  #unfollow: () => void = () => undefined;
  /** Undefined until `followObjects`. */
  #objects: FollowedObjects | undefined;

  private constructor(options: LedgerServiceOptions, store: Store, ledger: Ledger) {
    this.#options = options;
    this.store = store;
    this.ledger = ledger;
    const { config, clock, metrics, eventSink: sink, audit } = options;
    ledger.known.freshBy(ledgerFreshness(clock, config, () => this.completeAtMs));
    this.#events = new InstallEvents({ sink, uidOf: (key) => this.#objects && uidOf(key, this.#objects.store), clock });
    this.#counts = new InstallCounts({
      ledger,
      store,
      metrics,
      changed: (entry) => {
        this.#events.changed(entry);
        audit?.entryChanged(entry);
      },
      ended: (key, generation) => audit?.grantEnded(key, generation),
      closed: (entry) => this.#closed(entry),
    });
  }

  /**
   * Opens the ledger, and begins one if there is none.
   * @throws {StartError | WalError} one sentence for the operator.
   */
  static async open(options: LedgerServiceOptions): Promise<LedgerService> {
    const { clock, rulesOf, config } = options;
    // Members of an etcd have no common directory: each has a mark of its own.
    const mark = options.mark ?? fileMark(diskFiles, config.dataDir, config.storeEtcdEndpoints !== undefined);
    const log = options.log.child({ part: "ledger" });
    const store = await openLedgerStore(options, log);
    try {
      const ledger = await Ledger.open({ store, clock, random: randomBytes, log, mark, rulesOf });
      return new LedgerService(options, store, ledger);
    } catch (error) {
      await store.stop();
      throw error;
    }
  }

  /**
   * Hands the ledger the grants of the objects in the main store, now and after each change. Every member of a store
   * does so, because another member may lead the ledger's store than the main one.
   * @param index it follows the store already, so it knows a change before this does.
   */
  followObjects(store: FollowedObjects["store"], index: FollowedObjects["index"]): void {
    this.#objects = { store, index };
    const gather = () => this.#gather();
    this.#unfollow = store.follow(davitRoot, { replaced: gather, changed: gather });
  }

  /** Problems for the operator, one per line. */
  get attention(): readonly string[] {
    const { trouble } = this.store;
    const { known, problems } = this.ledger;
    const foreign = foreignGrants(known, this.#objects?.index.grants ?? []);
    return [
      ...(trouble === undefined ? [] : [`ledger: ${trouble}`]),
      ...problems,
      ...(foreign === undefined ? [] : [foreign]),
    ];
  }

  /** Monotonic: up to when the ledger has everything that any member has logged. */
  get completeAtMs(): number {
    return this.store.membership.completeAtMs ?? this.#options.clock.monotonicMs();
  }

  /** Sets the metrics that are computed only for a scrape. */
  measure(): void {
    const { metrics } = this.#options;
    const isWritable = this.store.status === "writable" && this.ledger.id !== undefined;
    metrics.ledgerWritable.set(isWritable ? 1 : 0);
    this.#counts.measure();
  }

  /** Ends the ledger's own writes, then its store. Idempotent. */
  async stop(): Promise<void> {
    this.#unfollow();
    this.#stopping.abort();
    await this.#gathering;
    this.#counts.stop();
    await this.#events.stop();
    await this.ledger.stop();
    await this.store.stop();
  }

  #closed(entry: LedgerEntry): void {
    const { identities, group, profile, claimedFrom, otherAddress } = entry;
    const subject = { identities, group, profile, claimedFrom, otherAddress };
    this.#options.log.child({ part: "ledger" }).warn(subject, "a Secret's text was asked for from another address");
    this.#events.closed(entry);
  }

  #gather(): void {
    this.#gathering ??= this.#options.clock.sleep(gatherMs, this.#stopping.signal).then(() => {
      this.#gathering = undefined;
      if (!this.#stopping.signal.aborted) this.ledger.grantsChanged(this.#objects?.index.grants ?? []);
    });
  }
}

/** Returns the uid of the object of a grant; undefined if it is gone. @param key as in `NamedGrant`. */
function uidOf(key: string, store: FollowedObjects["store"]): string | undefined {
  const [kind, namespace = "", name = ""] = key.split("/");
  const textAt = (path: string) => store.getFile(storePath(path))?.value ?? "";
  if (kind === "machine") return decodeMachine(textAt(machinePath(namespace, name)))?.uid;
  return decodeGroup(textAt(groupPath(namespace, name)))?.uid;
}

async function openLedgerStore({ config, clock, stop }: LedgerServiceOptions, log: Log): Promise<Store> {
  const { storeEtcdEndpoints: endpoints, dataDir, onDamage } = config;
  const shared = { clock, random: randomBytes, log };
  if (endpoints !== undefined) return await openSharedLedger({ ...shared, config, endpoints, stop });
  const inFiles = { files: diskFiles, lock: lockDirectory, reserveBytes, lockCheckMs };
  return await openStore({ ...shared, ...inFiles, directory: join(dataDir, "ledger"), onDamage });
}
