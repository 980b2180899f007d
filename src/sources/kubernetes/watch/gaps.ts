/**
 * Gaps in the watches of the API server. After a gap, the API server may have gone back to an older state, such as when
 * its etcd was restored from a backup.
 *
 * A watch that continues from davit's last version does not show which objects the restore removed or replaced. This is
 * true even if the restored server has passed that version again. So after a gap davit lists again, and reads every
 * object again, even one with an unchanged version.
 */

import type { WatchFailureReason } from "./watch-failure.ts";

/** Failures without a gap: the API server answered, so it was not away in between. */
const harmless: ReadonlySet<WatchFailureReason> = new Set(["throttled", "emptied"]);

export function isGap(reason: WatchFailureReason): boolean {
  return !harmless.has(reason);
}

/**
 * True when `version` is older than `than`. Versions are decimal revisions of etcd, which KEP-5504 guarantees from
 * Kubernetes 1.35 on. False for versions of any other form, because davit cannot compare them.
 */
export function isOlder(version: string, than: string): boolean {
  const areNumbers = /^\d+$/.test(version) && /^\d+$/.test(than);
  return areNumbers && BigInt(version) < BigInt(than);
}
