/**
 * Gaps in the watches of the API server. After a gap, the API server may have gone back to an older state, such as when
 * its etcd was restored from a backup.
 *
 * A watch that continues from davit's last version does not show which objects the restore removed or replaced. This is
 * true even if the restored server has passed that version again. So after a gap davit lists again, and reads every
 * object again, even one with an unchanged version.
 */

import { isJsonObject } from "../../model/json.ts";
import type { ApiClient, ApiRequest } from "../client/client.ts";
import type { WatchFailureReason } from "./watch-failure.ts";

/** Failures without a gap: the API server answered, so it was not away in between. */
const harmless: ReadonlySet<WatchFailureReason> = new Set(["throttled", "emptied"]);

export function isGap(reason: WatchFailureReason): boolean {
  return !harmless.has(reason);
}

export interface RewindQuestion {
  readonly client: Pick<ApiClient, "json">;
  /** The request for the collection. */
  readonly request: ApiRequest;
  /** The newest version that davit has seen. */
  readonly version: string;
}

/**
 * Asks the API server for its newest version. True if that version is older than the newest one that davit has seen.
 * @throws {ApiError}
 */
export async function hasRewound({ client, request, version }: RewindQuestion): Promise<boolean> {
  const query = { ...request.query, limit: "1" };
  const { metadata } = await client.json({ ...request, query, retries: 0 });
  const newest = isJsonObject(metadata) ? metadata.resourceVersion : undefined;
  return typeof newest === "string" && isOlder(newest, version);
}

/**
 * True when `version` is older than `than`. Versions are decimal revisions of etcd, which KEP-5504 guarantees from
 * Kubernetes 1.35 on. False for versions of any other form, because davit cannot compare them.
 */
export function isOlder(version: string, than: string): boolean {
  const areNumbers = /^\d+$/.test(version) && /^\d+$/.test(than);
  return areNumbers && BigInt(version) < BigInt(than);
}
