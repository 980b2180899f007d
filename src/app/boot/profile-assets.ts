/** Wires the fetcher of assets into `davit serve` and `davit boot`. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AssetFetcher, type AssetFetcherOptions, type DirectoryClaim } from "../../assets/asset-fetcher.ts";
import { type AssetSource, allowedServers } from "../../assets/asset-source.ts";
import { answerOrSilence } from "../../assets/get.ts";
import { askStore, type StoreCredentials } from "../../follow/store-request.ts";
import { type AssetRoute, type AssetsOptions, assetRoute } from "../../http/assets/assets.ts";
import type { Clock } from "../../lib/clock.ts";
import { diskSentence } from "../../lib/files/disk-sentence.ts";
import type { Log } from "../../lib/log.ts";
import { type AssetState, assetPath, storeAssetsPrefix } from "../../model/objects/profile-asset.ts";
import type { PermitDesk } from "../../model/permits/permit-desk.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import { WalError } from "../../store/core/log-port.ts";
import { type DirectoryLock, lockDirectory } from "../../store/wal/lock.ts";
import { maxAssetFiles } from "../core/open-files.ts";
import { MissingAssets } from "./missing-assets.ts";

export interface BootAssetsOptions extends Required<Pick<AssetsOptions, "digests" | "clients">> {
  readonly metrics: AssetsOptions["metrics"] & AssetFetcherOptions["metrics"];
  readonly config: Pick<
    ServiceConfig,
    "assetsDir" | "assetsDotfiles" | "assetsMaxBytes" | "assetsCacheBytes" | "bootThreads"
  >;
  /** Nothing is fetched without it. */
  readonly source: AssetSource | undefined;
  /** Records the downloads whose URLs name a claim. */
  readonly desk?: Pick<PermitDesk, "report"> | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface BootAssets {
  /** Answers machines and followers. */
  readonly route: AssetRoute;
  /** Undefined without an assets directory. */
  readonly fetcher: AssetFetcher | undefined;
  /** The missing files that keep machines from an install. */
  readonly missing: MissingAssets;
}

/** A directory below the assets directory. Machines get 404 for it, because of the dot. */
const lockPlace = ".davit";

export function openAssets(options: BootAssetsOptions): BootAssets {
  const { config, source = noSource, digests, clients, desk, clock, log, metrics } = options;
  const { assetsDir: directory, assetsMaxBytes: maxBytes, assetsCacheBytes: cacheBytes } = config;
  const fetcher =
    directory === undefined
      ? undefined
      : new AssetFetcher({
          directory,
          source,
          maxBytes,
          sha256: ({ fd }) => digests.hash(fd),
          claim: claimOf(directory),
          clock,
          log: log.child({ part: "assets" }),
          metrics,
        });
  const route = assetRoute({
    root: directory,
    serveDotfiles: config.assetsDotfiles,
    cacheBytes: Math.floor(cacheBytes / config.bootThreads),
    digests,
    wanted: fetcher?.wanted,
    clock,
    log: log.child({ part: "http" }),
    metrics,
    clients,
    maxOpen: maxAssetFiles(config.bootThreads),
    desk,
  });
  return { route, fetcher, missing: new MissingAssets({ clock, log: log.child({ part: "assets" }) }) };
}

/**
 * The store that a follower follows: its davit has the same assets, and has checked them. So a follower connects to no
 * other server.
 * @param urls of the members of the store.
 */
export function followedStore(urls: readonly URL[], credentials: () => Promise<StoreCredentials>): AssetSource {
  const origins = new Set(urls.map(({ origin }) => origin));
  return {
    urlsOf: ({ name, sha256 }) =>
      urls.map((url) => new URL(`${storeAssetsPrefix}${assetPath(name)}?sha256=${sha256}`, url)),
    refusalOf: ({ origin }) => (origins.has(origin) ? undefined : "--store does not name that server"),
    ask: async (url, options) => await answerOrSilence(askStore(url, await credentials(), options)),
    maxRetryMs: 30_000,
  };
}

/** For a davit that does not fetch: other programs write its assets directory. */
const noSource: AssetSource = {
  ...allowedServers([]),
  refusalOf: () => "--fetch-assets is not given",
};

/**
 * Claims a directory by a lock. Members of one store, or a follower and its store, may share a directory: one of them
 * fetches, and all serve.
 */
function claimOf(directory: string): DirectoryClaim {
  const place = join(directory, lockPlace);
  let lock: DirectoryLock | undefined;
  const release = () => {
    lock?.release();
    lock = undefined;
  };
  const take = (): AssetState | undefined => {
    if (lock?.isHeld() === true) return undefined;
    release();
    try {
      mkdirSync(place, { recursive: true });
      lock = lockDirectory(place);
      return undefined;
    } catch (error) {
      if (error instanceof WalError && error.reason === "locked") return shared;
      const why = diskSentence(error) ?? "its lock cannot be opened";
      return { reason: "FetchFailed", message: `cannot be fetched, because davit cannot write --assets-dir: ${why}` };
    }
  };
  return { take, release };
}

const shared: AssetState = {
  reason: "Waiting",
  message: "is not there yet: another davit fetches into this directory",
};
