/**
 * Fetches the assets of Profiles into the assets directory. A file appears only after davit has checked its SHA-256.
 * davit never replaces or removes a file there: a machine may be booting from it. So if another file has the name of an
 * asset, that is a conflict, and a person gives the asset another name.
 */

import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, lstat, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { backoffMs } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { codeOf } from "../lib/errors.ts";
import { diskSentence } from "../lib/files/disk-sentence.ts";
import type { Log } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics/metrics.ts";
import { Shares } from "../lib/shares.ts";
import { type AssetState, type AssetStates, assetReasons, type ProfileAsset } from "../model/objects/profile.ts";
import type { AssetSource } from "./asset-source.ts";
import { download, removeUnfinished } from "./download.ts";
import { DownloadError } from "./get.ts";
import { type AssetDemand, demandKey, ProfileAssetIndex } from "./profile-asset-index.ts";

export interface AssetFetcherOptions {
  readonly directory: string;
  readonly source: AssetSource;
  /** davit fetches no file that makes the directory larger than this; 0: no limit. */
  readonly maxBytes: number;
  /** Returns the SHA-256 of an open file, in 64 hexadecimal digits. */
  readonly sha256: (file: FileHandle) => Promise<string>;
  readonly claim: DirectoryClaim;
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn" | "error">;
  readonly metrics: Pick<Metrics, "profileAssets">;
}

/** Lets only one davit fetch into a directory. */
export interface DirectoryClaim {
  /** Claims the directory for this davit. Returns why that is not possible now; undefined if davit has it. */
  readonly take: () => AssetState | undefined;
  /** Idempotent. */
  readonly release: () => void;
}

/** How many downloads run at a time. Those of one server are at most half of them. */
const maxDownloads = 4;
/** A download that is slower gives its place to another one. Retries continue where it ended. */
const leastBytesPerMinute = 256 * 1024;
/** How often davit checks whether a file is still the one that it hashed. */
const lookAgainMs = 60_000;
/** The shortest time between two states of one download: each of them is a write of a status. */
const progressMs = 10_000;
const retries = { firstMs: 15_000, capMs: 600_000 };
/** After a failure that needs a person, such as a wrong digest: another download would be useless. */
const lateRetries = { firstMs: 60_000, capMs: 3_600_000 };

interface Entry {
  demand: AssetDemand;
  state: AssetState;
  /** Monotonic: when to look next. */
  dueAtMs: number;
  failures: number;
  /** Ends the download that runs. */
  download: AbortController | undefined;
  /** The file that was hashed last. */
  hashed: { readonly version: string; readonly sha256: string } | undefined;
}

const unseen: AssetState = { reason: "Waiting", message: "is not checked yet" };
const waiting: AssetState = { reason: "Waiting", message: "waits until another download has ended" };
const fetching: AssetState = { reason: "Fetching", message: "is being fetched" };
const fetched: AssetState = { reason: "Fetched", message: "is there, with its SHA-256" };

export class AssetFetcher implements AssetStates {
  /** Learns from the store which assets to fetch. */
  readonly wanted: ProfileAssetIndex;
  readonly #options: AssetFetcherOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #downloads = new Set<Promise<void>>();
  /** By server: one that is slow must not keep davit from fetching from others. */
  readonly #servers = new Shares({ limit: maxDownloads });
  readonly #stopping = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** The size of all files of the directory, while downloads run. */
  #usedBytes = 0;

  constructor(options: AssetFetcherOptions) {
    this.#options = options;
    this.wanted = new ProfileAssetIndex(() => this.#want());
    this.#count();
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Ends all downloads. What they have stays for the next start. Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake.abort();
    await this.#running;
    await Promise.all(this.#downloads);
    this.#options.claim.release();
  }

  stateOf(asset: Pick<ProfileAsset, "name" | "sha256">): AssetState | undefined {
    return this.#entries.get(demandKey(asset))?.state;
  }

  /** True for the name of an asset that a Profile asks for. If there is no such file, its machines must wait. */
  isWanted(name: string): boolean {
    return this.wanted.lists(name);
  }

  /** One line for the operator, for each asset that davit cannot fetch by itself. */
  get attention(): readonly string[] {
    const failed = [...this.#entries.values()].filter(({ state }) => isTrouble(state));
    return failed.map(({ demand, state }) => `asset "${demand.name}": ${state.reason}: it ${state.message}`);
  }

  #want(): void {
    const { demands } = this.wanted;
    for (const [key, entry] of this.#entries) {
      if (demands.has(key)) continue;
      this.#entries.delete(key);
      entry.download?.abort();
    }
    const dueAtMs = this.#options.clock.monotonicMs();
    for (const [key, demand] of demands) {
      const known = this.#entries.get(key);
      const entry = known ?? { demand, state: unseen, dueAtMs, failures: 0, download: undefined, hashed: undefined };
      const isOther = String(entry.demand.urls) !== String(demand.urls);
      this.#entries.set(key, Object.assign(entry, { demand }));
      // Another URL may work, and the other file of this name may be gone.
      if (isOther || entry.state.reason === "Conflict") entry.dueAtMs = dueAtMs;
    }
    this.#count();
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const wake = new AbortController();
      this.#wake = wake;
      for (const entry of [...this.#entries.values()]) {
        if (this.#stopping.signal.aborted) return;
        if (entry.download === undefined && entry.dueAtMs <= clock.monotonicMs()) await this.#lookAt(entry);
      }
      const idle = [...this.#entries.values()].filter(({ download: running }) => running === undefined);
      const dueAtMs = Math.min(...idle.map((entry) => entry.dueAtMs));
      await clock.sleep(Math.min(lookAgainMs, Math.max(0, dueAtMs - clock.monotonicMs())), wake.signal);
    }
  }

  async #lookAt(entry: Entry): Promise<void> {
    entry.dueAtMs = this.#options.clock.monotonicMs() + lookAgainMs;
    try {
      const there = await this.#digestOf(entry);
      if (!this.#isCurrent(entry)) return;
      if (there === undefined) this.#fetchMissing(entry);
      else this.#show(entry, there === entry.demand.sha256 ? fetched : taken);
    } catch (error) {
      this.#fail(entry, error);
    }
  }

  /** Returns the digest of the file that has an asset's name; undefined if there is none; empty if it is no file. */
  async #digestOf(entry: Entry): Promise<string | undefined> {
    const path = join(this.#options.directory, entry.demand.name);
    const stats = await statsOf(path);
    if (stats === undefined || !stats.isFile()) return stats && "";
    const version = versionOf(stats);
    if (entry.hashed?.version === version) return entry.hashed.sha256;
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const sha256 = await this.#options.sha256(file);
      entry.hashed = { version, sha256 };
      return sha256;
    } finally {
      await file.close();
    }
  }

  #fetchMissing(entry: Entry): void {
    const found = this.#placeOf(entry);
    if (!("url" in found)) {
      this.#show(entry, found);
      return;
    }
    this.#show(entry, fetching);
    entry.download = new AbortController();
    this.#servers.add(found.url.host, 1);
    const work = this.#fetch(entry, found.url, AbortSignal.any([this.#stopping.signal, entry.download.signal]));
    const ended = work.finally(() => {
      entry.download = undefined;
      this.#servers.release(found.url.host);
      this.#downloads.delete(ended);
      for (const other of this.#entries.values()) if (other.state === waiting) other.dueAtMs = 0;
      this.#wake.abort();
    });
    this.#downloads.add(ended);
  }

  /** Returns where to fetch an asset from now, or why it is not fetched. */
  #placeOf({ demand, failures }: Entry): { readonly url: URL } | AssetState {
    const { source } = this.#options;
    const { name, profiles, sha256 } = demand;
    const rival = [...this.#entries.values()].find(
      (other) => other.demand.name === name && other.demand.sha256 !== sha256,
    );
    if (rival !== undefined) {
      const other = rival.demand.profiles.find((each) => !profiles.includes(each)) ?? rival.demand.profiles[0];
      const message = `has another SHA-256 in Profile "${other}": give one of the two files another name`;
      return { reason: "Conflict", message };
    }
    const allowed = this.#allowedUrls(demand);
    const url = allowed[failures % Math.max(1, allowed.length)];
    if (url === undefined) {
      const [first] = source.urlsOf(demand);
      const why = first === undefined ? "its url cannot be read" : source.refusalOf(first);
      const cure = "add it to the options, put the file into --assets-dir, or write another url";
      return { reason: "HostNotAllowed", message: `is not fetched: ${why}: ${cure}` };
    }
    const unusable = this.#options.claim.take();
    if (unusable !== undefined) return unusable;
    return this.#servers.admits(url.host) ? { url } : waiting;
  }

  #allowedUrls(demand: AssetDemand): readonly URL[] {
    const { source } = this.#options;
    return source.urlsOf(demand).filter((url) => source.refusalOf(url) === undefined);
  }

  async #fetch(entry: Entry, url: URL, signal: AbortSignal): Promise<void> {
    const { directory, maxBytes, source, sha256: hash, clock, log } = this.#options;
    const { name, sha256 } = entry.demand;
    const asset = { url, sha256, path: name };
    let ownBytes: number | undefined;
    let shownMs = clock.monotonicMs();
    try {
      this.#usedBytes = await bytesBelow(directory);
      await download(asset, {
        directory,
        clock,
        signal,
        sha256: hash,
        ask: source.ask,
        refusalOf: source.refusalOf,
        keepsOthers: true,
        leastBytesPerMinute,
        // The next URL can have what this one does not give.
        ...(this.#allowedUrls(entry.demand).length > 1 && { attempts: 1 }),
        roomBytes: () => (maxBytes === 0 ? Number.POSITIVE_INFINITY : maxBytes - this.#usedBytes),
        progress: (bytes, totalBytes) => {
          this.#usedBytes += bytes - (ownBytes ?? bytes);
          ownBytes = bytes;
          if (clock.monotonicMs() - shownMs < progressMs || totalBytes === undefined) return;
          shownMs = clock.monotonicMs();
          const percent = Math.floor((bytes / totalBytes) * 10) * 10;
          this.#show(entry, { reason: "Fetching", message: `is being fetched: ${percent} %` });
        },
        retrying: (why, inMs) => log.warn({ path: name, why, inMs }, "asset is fetched again"),
      });
      const stats = await statsOf(join(directory, name));
      entry.hashed = stats && { version: versionOf(stats), sha256 };
      entry.failures = 0;
      log.info({ path: name, bytes: ownBytes, sha256 }, "asset fetched");
      this.#show(entry, fetched);
    } catch (error) {
      if (!this.#isCurrent(entry)) await removeUnfinished(asset, directory).catch(() => undefined);
      else if (!signal.aborted) this.#fail(entry, error, url);
    }
  }

  #fail(entry: Entry, error: unknown, url?: URL): void {
    const { clock, log, source } = this.#options;
    const mayPass = !(error instanceof DownloadError) || error.mayPass;
    const urls = Math.max(1, this.#allowedUrls(entry.demand).length);
    const rounds = ++entry.failures / urls;
    const waitMs = Number.isInteger(rounds) ? backoffMs(rounds - 1, mayPass ? retries : lateRetries) : 0;
    entry.dueAtMs = clock.monotonicMs() + Math.min(waitMs, source.maxRetryMs);
    const sentence = error instanceof DownloadError ? error.message : diskSentence(error);
    if (sentence === undefined) log.error({ path: entry.demand.name, err: error }, "asset cannot be fetched");
    const why = sentence ?? "a fault of davit: its log has the error";
    // Without the query, because the query of a presigned URL is a secret.
    const from = url === undefined ? "" : ` from "${url.origin}${url.pathname}"`;
    this.#show(entry, { reason: "FetchFailed", message: `cannot be fetched${from}: ${why}` });
  }

  #show(entry: Entry, state: AssetState): void {
    if (!this.#isCurrent(entry)) return;
    if (state === fetched) this.wanted.noteChecked(entry.demand);
    const before = entry.state;
    entry.state = state;
    this.#count();
    const isNews = before.reason !== state.reason || before.message !== state.message;
    if (!isNews || !isTrouble(state)) return;
    const { name: path, profiles } = entry.demand;
    this.#options.log.warn({ path, profiles, reason: state.reason, problem: state.message }, "asset is not there");
  }

  #count(): void {
    const reasons = [...this.#entries.values()].map(({ state }) => state.reason);
    for (const reason of assetReasons) {
      this.#options.metrics.profileAssets.set({ state: reason }, reasons.filter((each) => each === reason).length);
    }
  }

  #isCurrent(entry: Entry): boolean {
    return this.#entries.get(demandKey(entry.demand)) === entry;
  }
}

const taken: AssetState = {
  reason: "Conflict",
  message: "is not fetched, because another file has its name: give this one another name, or remove the other file",
};

function isTrouble({ reason }: AssetState): boolean {
  return reason === "Conflict" || reason === "HostNotAllowed" || reason === "FetchFailed";
}

async function statsOf(path: string): Promise<BigIntStats | undefined> {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
}

/** Returns the size of all files below a directory. */
async function bytesBelow(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    // A file can vanish meanwhile.
    bytes += await lstat(join(entry.parentPath, entry.name)).then(
      ({ size }) => size,
      () => 0,
    );
  }
  return bytes;
}
