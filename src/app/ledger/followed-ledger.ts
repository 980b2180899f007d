/** The ledger of `davit boot`: a copy that it follows, and a desk that asks the ledger's writer. */

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { StoreFollower, StoreFollowerOptions } from "../../follow/follow.ts";
import { RemoteDesk } from "../../follow/remote-desk.ts";
import { RemoteHistory } from "../../follow/remote-history.ts";
import type { StoreCredentials } from "../../follow/store-request.ts";
import { Writers } from "../../follow/writers.ts";
import { KnownLedger } from "../../installs/ledger/known-ledger.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import type { Feed } from "../../model/feed.ts";
import { followerName } from "../../model/history-batch.ts";
import { davitRoot } from "../../model/objects/documents.ts";
import { ledgerPath } from "../../model/permits/permit-wire.ts";
import type { BootConfig } from "../../options/serve.ts";
import { ledgerFreshness } from "./ledger-freshness.ts";

/** Makes a follower. @param of its copy's file has the path of the main store's copy, and this ending. */
export type FollowerAt = (
  of: Pick<StoreFollowerOptions, "path" | "name" | "log"> & { readonly fileEnding: string },
) => StoreFollower;

interface FollowedLedgerOptions {
  readonly config: Pick<BootConfig, "store" | "installMaxSourceAgeMs">;
  readonly credentials: () => Promise<StoreCredentials>;
  readonly followerAt: FollowerAt;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "followHistoryDropped">;
}

/** The copy's file, beside that of the main store. It has no secret: report tokens come with the writer's answers. */
const fileEnding = ".ledger";
/** An older copy does not decide that a machine gets no permit: the writer does. */
const currentSeconds = 15;
/** How long a start waits for the ledger, so that labels which machines have reported are known. */
const patienceMs = 3_000;
/** While more machines than these wait for permits, nothing that the writer only shows is sent. */
const maxAsking = 16;
const shownLimitMs = 5_000;

export class FollowedLedger {
  readonly known: KnownLedger;
  readonly desk: RemoteDesk;
  readonly history: RemoteHistory;
  readonly #options: FollowedLedgerOptions;
  readonly #follower: StoreFollower;
  readonly #writers: Writers;
  /** For the history, with connections of its own, so that no permit waits for it. */
  readonly #shownWriters: Writers;
  readonly #stopping = new AbortController();

  constructor(options: FollowedLedgerOptions) {
    this.#options = options;
    const { config, credentials, clock, metrics } = options;
    const { store: urls } = config;
    const log = options.log.child({ part: "ledger" });
    this.known = new KnownLedger({ clock });
    this.#follower = options.followerAt({ path: ledgerPath, fileEnding, log });
    this.known.freshBy(ledgerFreshness(clock, config, () => this.#follower.status.provenAtMs));
    this.#writers = new Writers({ urls, credentials, clock, log });
    const shown = { about: "shown", maxAsking: 1, limitMs: shownLimitMs } as const;
    this.#shownWriters = new Writers({ urls, credentials, clock, log, ...shown });
    const isBusy = () => this.#writers.asking > maxAsking;
    const last = { writers: this.#shownWriters, isBusy, clock };
    const via = followerName.test(hostname()) ? hostname() : "follower";
    this.history = new RemoteHistory({ ...last, via, run: randomBytes(8).toString("hex"), metrics });
    this.desk = new RemoteDesk({ askWriter: this.#writers.ask, view: this.known, isCurrent: () => this.#isCurrent });
  }

  /** Loads the copy on disk, and begins to follow the ledger. */
  async start(): Promise<void> {
    this.#follower.follow(davitRoot, this.known);
    await this.#follower.start();
    this.history.start();
  }

  /** Resolves when the copy equals the writer's ledger, or after some seconds. */
  async heard(): Promise<void> {
    await Promise.race([this.#follower.heard, this.#options.clock.sleep(patienceMs, this.#stopping.signal)]);
  }

  /** The documents of the copy. */
  get feed(): Feed {
    return this.#follower;
  }

  /** Problems for the operator, one per line. */
  get attention(): readonly string[] {
    if (this.#follower.status.isConnected) return [];
    return ["follow: the ledger is not followed now, so installs wait and machines boot their disks"];
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.history.stop();
    this.#writers.stop();
    this.#shownWriters.stop();
    await this.#follower.stop();
  }

  get #isCurrent(): boolean {
    const { isConnected, isWithheld, ageSeconds } = this.#follower.status;
    return isConnected && !isWithheld && ageSeconds !== undefined && ageSeconds < currentSeconds;
  }
}
