/**
 * Whether the API server has gone back to an older state, as it does when its etcd is restored from a backup.
 *
 * A watch from a version that is still to come is not refused: it is silent until that version is reached, and even then
 * tells nothing of what was lost and of what came in its place. So after a failure that may have been such an end, the
 * newest version is asked for before the watch goes on from an older one.
 */

import { isJsonObject } from "../model/json.ts";
import type { ApiClient, ApiRequest } from "./client.ts";
import type { WatchFailureReason } from "./watch-failure.ts";

/** An API server that went back was away in between: others that refuse were there the whole time. */
const doubtful: ReadonlySet<WatchFailureReason> = new Set(["network", "silent", "overdue", "server"]);

export function mayFollowRewind(reason: WatchFailureReason): boolean {
  return doubtful.has(reason);
}

export interface RewindQuestion {
  readonly client: Pick<ApiClient, "json">;
  /** Of the collection. */
  readonly request: ApiRequest;
  /** The newest one that was seen. */
  readonly version: string;
}

/** @throws {ApiError} */
export async function hasRewound({ client, request, version }: RewindQuestion): Promise<boolean> {
  const query = { ...request.query, limit: "1" };
  const { metadata } = await client.json({ ...request, query, retries: 0 });
  const newest = isJsonObject(metadata) ? metadata.resourceVersion : undefined;
  return typeof newest === "string" && isOlder(newest, version);
}

/**
 * Versions are revisions of etcd, in decimal (KEP-5504 promises so from 1.35 on). Where they are something else, nothing
 * is concluded from them; where they are no ascending numbers, the price is a list.
 */
function isOlder(version: string, than: string): boolean {
  const areNumbers = /^\d+$/.test(version) && /^\d+$/.test(than);
  return areNumbers && BigInt(version) < BigInt(than);
}
