/**
 * `davit boot`: only the boot service, which follows a store in another process. Any number of followers can follow one
 * store. Each answers machines from its own copy, even while it cannot reach the store.
 */

import { hostname } from "node:os";
import { CopyFile } from "../follow/copy-file.ts";
import { type CredentialFiles, readCredentials } from "../follow/credentials.ts";
import { StoreFollower } from "../follow/follow.ts";
import type { Clock } from "../lib/clock.ts";
import { diskFiles } from "../lib/files/files.ts";
import { FileError } from "../lib/files/watched-files.ts";
import type { Log } from "../lib/log.ts";
import { RecentLines } from "../lib/logging/recent-lines.ts";
import { createMetrics, type Metrics } from "../lib/metrics/metrics.ts";
import { random } from "../lib/ports.ts";
import { StartError } from "../lib/start-error.ts";
import { Suspensions } from "../lib/suspension.ts";
import type { Address } from "../lib/text/address.ts";
import { type BootConfig, shownTokenFile } from "../options/serve.ts";
import { BootService } from "./boot/boot-service.ts";
import { followedStore } from "./boot/profile-assets.ts";
import { SecretKeys } from "./core/secret-keys.ts";
import { FollowedLedger, type FollowerAt } from "./ledger/followed-ledger.ts";
import { machineBook } from "./ledger/machine-book.ts";
import type { MachineAddresses } from "./listener/boot-listener.ts";

interface BootAppOptions {
  readonly config: BootConfig;
  readonly log: Log;
  readonly clock: Clock;
  readonly version: string;
}

/** Facts for the welcome text, which appears when davit begins to answer machines. */
export interface ServedFromStore extends MachineAddresses {
  readonly version: string;
  readonly groups: number;
  /** Origins of the store's members. */
  readonly store: string;
  readonly opsAddress: Address;
}

export class BootApp {
  readonly #options: BootAppOptions;
  readonly #metrics: Metrics;
  readonly #boot: BootService;
  readonly #follower: StoreFollower;
  readonly #ledger: FollowedLedger;
  readonly #suspensions: Suspensions;
  readonly #lines: RecentLines;
  readonly #credentialFiles: CredentialFiles;
  readonly #secretKeys: SecretKeys;

  constructor(options: BootAppOptions) {
    const { config, clock, version } = options;
    this.#lines = new RecentLines(clock);
    const log = this.#lines.over(options.log);
    this.#options = options;
    this.#metrics = createMetrics(version);
    this.#credentialFiles = {
      tokenFile: shownTokenFile(config),
      caFile: config.storeCaFile,
      certFile: config.storeCertFile,
      keyFile: config.storeKeyFile,
    };
    const credentials = () => readCredentials(this.#credentialFiles);
    // Later than any proof that comes in time (`signs-of-life.ts`).
    const unprovenMs = config.installMaxSourceAgeMs === 0 ? undefined : config.installMaxSourceAgeMs * 0.8;
    const followerAt: FollowerAt = ({ fileEnding, ...more }) => {
      const path = config.copyFile && `${config.copyFile}${fileEnding}`;
      return new StoreFollower({
        urls: config.store,
        unprovenMs,
        credentials,
        copyFile: path === undefined ? undefined : new CopyFile({ path, files: diskFiles, clock, log: more.log }),
        clock,
        // Precise enough for waits of seconds.
        random,
        ...more,
      });
    };
    this.#follower = followerAt({ name: hostname(), fileEnding: "", log: log.child({ part: "follow" }) });
    this.#suspensions = new Suspensions(clock);
    this.#ledger = new FollowedLedger({ config, followerAt, credentials, clock, log, metrics: this.#metrics });
    const { known: ledger, desk, history } = this.#ledger;
    const { copyFile: path, secretsKeyFile } = config;
    this.#secretKeys = new SecretKeys({ path: secretsKeyFile, clock, log: log.child({ part: "secrets" }) });
    const historyDirectory = path === undefined ? undefined : `${path}.history`;
    this.#boot = new BootService({
      config,
      log,
      lines: this.#lines,
      clock,
      metrics: this.#metrics,
      version,
      historyDirectory,
      ledger,
      desk,
      secretKeys: this.#secretKeys,
      feeds: { store: this.#follower, ledger: this.#ledger.feed },
      handOn: history,
      assetSource: config.fetchAssets ? followedStore(config.store, credentials) : undefined,
    });
  }

  /**
   * Starts every part and resolves when all of them listen. `ready` resolves later, when davit begins to answer
   * machines.
   * @throws {StartError} with one sentence for the operator. After an error, the caller must call `stop`, which ends
   * the parts that have started.
   */
  async start(): Promise<{ readonly ready: Promise<ServedFromStore> }> {
    const { version } = this.#options;
    await this.#checkCredentials();
    await this.#secretKeys.start();
    await this.#ledger.start();
    this.#boot.follow(this.#follower);
    const opsAddress = await this.#boot.listenForOperators({
      waitingFor: "no copy of a store with a finished sync",
      attention: () => this.#attention(),
      provenAtMs: () => this.#suspensions.corrected(this.#follower.status.provenAtMs),
      measure: () => this.#measure(),
      machines: { book: this.#book(), office: undefined },
      followed: { place: this.#stores, status: () => this.#follower.status },
    });
    const machines = await this.#boot.listenForMachines();
    await this.#follower.start();
    const heard = this.#follower.heard.then(() => this.#ledger.heard());
    const ready = this.#boot.openWhenHeard(heard).then(() => ({
      version,
      groups: this.#boot.index.groupCount,
      store: this.#stores,
      opsAddress,
      ...machines,
    }));
    return { ready };
  }

  /** Reports not ready. Then updates the copy on disk, and finishes the requests in flight. Idempotent. */
  async stop(): Promise<void> {
    this.#boot.beginStop();
    await this.#follower.stop();
    await this.#boot.stop();
    await this.#ledger.stop();
    this.#secretKeys.stop();
  }

  /**
   * Fails the start if the credentials cannot be read, so that a person sees the mistake. Later mistakes are only
   * logged, because davit reads the files again and needs no restart.
   */
  async #checkCredentials(): Promise<void> {
    try {
      await readCredentials(this.#credentialFiles);
    } catch (error) {
      if (error instanceof FileError) throw new StartError(error.message, { cause: error });
      throw error;
    }
  }

  #book() {
    const problems = () => this.#ledger.attention;
    return machineBook({ index: this.#boot.index, known: this.#ledger.known, problems });
  }

  #attention(): readonly string[] {
    return [...this.#ownAttention(), ...this.#ledger.attention];
  }

  #ownAttention(): readonly string[] {
    const { isConnected, isWithheld, ageSeconds } = this.#follower.status;
    if (isConnected && !isWithheld) return [];
    const age = ageSeconds === undefined ? "there is no copy yet" : `the copy is ${Math.round(ageSeconds)} s old`;
    const why = isConnected ? "has not read everything from its source" : "is not followed now";
    return [`follow: the store at ${this.#stores} ${why}, ${age}`];
  }

  get #stores(): string {
    return this.#options.config.store.map(({ origin }) => origin).join(", ");
  }

  #measure(): void {
    const { isConnected, index = 0, ageSeconds = 0 } = this.#follower.status;
    this.#metrics.followConnected.set(isConnected ? 1 : 0);
    this.#metrics.followIndex.set(index);
    this.#metrics.followAgeSeconds.set(ageSeconds);
  }
}
