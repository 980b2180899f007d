/**
 * Gaps in the watches of the API server. After a gap, the API server may have gone back to an older state, such as when
 * its etcd is restored from a backup.
 *
 * A watch that continues from a version shows neither what was lost before that version, nor what replaced it. This
 * holds whether the restored server is still below that version or has passed it again. So after a gap davit lists
 * again, and trusts no object that it held, whatever its version.
 */

import { isJsonObject } from "../../model/json.ts";
import type { ApiClient, ApiRequest } from "../client/client.ts";
import type { WatchFailureReason } from "./watch-failure.ts";

/** Failures without a gap: the API server answered, so it was there all along. */
const harmless: ReadonlySet<WatchFailureReason> = new Set(["throttled", "emptied"]);

export function isGap(reason: WatchFailureReason): boolean {
  return !harmless.has(reason);
}

export interface RewindQuestion {
  readonly client: Pick<ApiClient, "json">;
  /** The request for the collection. */
  readonly request: ApiRequest;
  /** The newest version that was seen. */
  readonly version: string;
}

/**
 * Asks the API server, while its watch is open, whether it is at an older version than one that davit saw.
 * @throws {ApiError}
 */
export async function hasRewound({ client, request, version }: RewindQuestion): Promise<boolean> {
  const query = { ...request.query, limit: "1" };
  const { metadata } = await client.json({ ...request, query, retries: 0 });
  const newest = isJsonObject(metadata) ? metadata.resourceVersion : undefined;
  return typeof newest === "string" && isOlder(newest, version);
}

/**
 * True when the API server is at an older version than one that was seen. Versions are revisions of etcd, in decimal
 * (KEP-5504 promises so from 1.35 on). Other forms of version allow no conclusion.
 */
export function isOlder(version: string, than: string): boolean {
  const areNumbers = /^\d+$/.test(version) && /^\d+$/.test(than);
  return areNumbers && BigInt(version) < BigInt(than);
}
