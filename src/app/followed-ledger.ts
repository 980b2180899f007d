/** The ledger of `davit boot`: a copy that it follows, and a desk that asks the ledger's writer. */

import { randomInt } from "node:crypto";
import { CopyFile } from "../follow/copy-file.ts";
import { StoreFollower } from "../follow/follow.ts";
import { RemoteDesk } from "../follow/remote-desk.ts";
import { RemoteSightings } from "../follow/remote-sightings.ts";
import type { StoreCredentials } from "../follow/store-request.ts";
import { Writers } from "../follow/writers.ts";
import { KnownLedger } from "../ledger/known-ledger.ts";
import type { Clock } from "../lib/clock.ts";
import { diskFiles } from "../lib/files.ts";
import type { Log } from "../lib/log.ts";
import { davitRoot } from "../model/documents.ts";
import { ledgerPath } from "../model/permit-wire.ts";
import type { BootConfig } from "../options/serve.ts";

export interface FollowedLedgerOptions {
  readonly config: Pick<BootConfig, "store" | "copyFile">;
  readonly credentials: () => Promise<StoreCredentials>;
  /** See `StoreFollowerOptions`. */
  readonly unprovenMs: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** The copy's file, beside that of the main store. It has no secret: report tokens come with the writer's answers. */
const fileEnding = ".ledger";
/** An older copy does not decide that a machine gets no permit: the writer does. */
const currentSeconds = 15;
/** How long a start waits for the ledger, so that labels which machines have reported are known. */
const patienceMs = 3_000;
/** While more machines than these wait for permits, no sightings are sent. */
const maxAsking = 16;
const sightingsLimitMs = 5_000;

export class FollowedLedger {
  readonly known: KnownLedger;
  readonly desk: RemoteDesk;
  readonly sightings: RemoteSightings;
  readonly #options: FollowedLedgerOptions;
  readonly #follower: StoreFollower;
  readonly #writers: Writers;
  /** With connections of its own, so that no permit waits for it. */
  readonly #sightingWriters: Writers;
  readonly #stopping = new AbortController();

  constructor(options: FollowedLedgerOptions) {
    this.#options = options;
    const { config, credentials, unprovenMs, clock } = options;
    const { store: urls, copyFile } = config;
    const log = options.log.child({ part: "ledger" });
    this.known = new KnownLedger({ clock });
    this.#follower = new StoreFollower({
      urls,
      path: ledgerPath,
      unprovenMs,
      credentials,
      copyFile:
        copyFile === undefined
          ? undefined
          : new CopyFile({ path: `${copyFile}${fileEnding}`, files: diskFiles, clock, log }),
      clock,
      // Precise enough for waits of seconds.
      random: () => randomInt(2 ** 32) / 2 ** 32,
      log,
    });
    this.#writers = new Writers({ urls, credentials, clock, log });
    const one = { about: "sightings", maxAsking: 1, limitMs: sightingsLimitMs } as const;
    this.#sightingWriters = new Writers({ urls, credentials, clock, log, ...one });
    const isBusy = () => this.#writers.asking > maxAsking;
    this.sightings = new RemoteSightings({ writers: this.#sightingWriters, isBusy, clock });
    this.desk = new RemoteDesk({ writers: this.#writers, view: this.known, isCurrent: () => this.#isCurrent, clock });
  }

  /** Loads the copy on disk, and begins to follow the ledger. */
  async start(): Promise<void> {
    this.#follower.follow(davitRoot, this.known);
    await this.#follower.start();
    this.sightings.start();
  }

  /** Resolves when the copy equals the writer's ledger, or after some seconds. */
  async heard(): Promise<void> {
    await Promise.race([this.#follower.heard, this.#options.clock.sleep(patienceMs, this.#stopping.signal)]);
  }

  /** Problems for the operator, one per line. */
  get attention(): readonly string[] {
    if (this.#follower.status.isConnected) return [];
    return ["follow: the ledger is not followed now, so installs wait and machines boot their disks"];
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#writers.stop();
    this.#sightingWriters.stop();
    await this.sightings.stop();
    await this.#follower.stop();
  }

  get #isCurrent(): boolean {
    const { isConnected, isWithheld, ageSeconds } = this.#follower.status;
    return isConnected && !isWithheld && ageSeconds !== undefined && ageSeconds < currentSeconds;
  }
}
