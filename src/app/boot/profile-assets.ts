/** Wires the fetcher of assets into `davit serve` and `davit boot`. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { AssetFetcher, type AssetFetcherOptions, type DirectoryClaim } from "../../assets/asset-fetcher.ts";
import { type AssetSource, allowedServers } from "../../assets/asset-source.ts";
import { answerOrSilence } from "../../assets/get.ts";
import { askStore, type StoreCredentials } from "../../follow/store-request.ts";
import { diskSentence } from "../../lib/files/disk-sentence.ts";
import { type AssetState, assetPath, storeAssetsPrefix } from "../../model/objects/profile.ts";
import type { ServiceConfig } from "../../options/serve.ts";
import { WalError } from "../../store/core/log-port.ts";
import { type DirectoryLock, lockDirectory } from "../../store/wal/lock.ts";

interface AssetFetchingOptions extends Pick<AssetFetcherOptions, "sha256" | "clock" | "log" | "metrics"> {
  readonly config: Pick<ServiceConfig, "assetsDir" | "limits">;
  /** Nothing is fetched without it. */
  readonly source: AssetSource | undefined;
}

/** A directory below the assets directory. Machines get 404 for it, because of the dot. */
const lockPlace = ".davit";

/** Returns undefined without an assets directory. */
export function assetFetcher({
  config: { assetsDir: directory, limits },
  source = noSource,
  ...rest
}: AssetFetchingOptions): AssetFetcher | undefined {
  if (directory === undefined) return undefined;
  return new AssetFetcher({ ...rest, directory, source, maxBytes: limits.assetsMaxBytes, claim: claimOf(directory) });
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
