/** The metrics of the store, of its members and of its backups. */

import type { Define } from "./define.ts";

// One fdatasync takes 0.1 ms on NVMe and 20 ms on a spinning disk.
const syncSecondsBuckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5];

export function storeMetrics(define: Define) {
  const { gauge, counter, histogram, absent } = define;
  return {
    // `davit boot` has no store.
    storeWritable: absent("davit_store_writable", "1 while the log of the store takes writes; absent without a store."),
    storeFull: gauge(
      "davit_store_full",
      "1 while the disk of the log has no room, or its etcd has reached its quota (alarm NOSPACE).",
    ),
    storeProposalsFailed: counter(
      "davit_store_proposals_failed_total",
      "Changes that the log did not take, by reason.",
      "reason",
    ),
    storeSyncSeconds: histogram(
      "davit_store_sync_seconds",
      "Time to log a batch: one write and fdatasync, or one transaction of etcd until its answer.",
      syncSecondsBuckets,
    ),
    storeIndex: gauge("davit_store_index", "Changes applied to the store."),
    storeUnauthorized: counter(
      "davit_store_unauthorized_total",
      "Requests to the store that were refused because they lacked the right credentials.",
    ),
    storeFollowers: gauge("davit_store_followers", "Followers of the store now."),
    storeBytes: gauge("davit_store_bytes", "Names and values in the store; the quota is about these."),
    storeWatchers: gauge("davit_store_watchers", "Watches waiting now."),
    ...memberMetrics(define),
    ...backupMetrics(define),
  };
}

/** Metrics of a store in etcd, as this member knows it. */
function memberMetrics({ gauge, counter, absent }: Define) {
  return {
    // A davit with a log on disk is no member.
    storeIsLeader: absent(
      "davit_store_is_leader",
      "1 while this davit leads the store, 0 while it does not; absent without a store in etcd.",
    ),
    storeMembers: absent(
      "davit_store_members",
      "Davits that run on this store, this one included; absent without a store in etcd.",
    ),
    storeLeaderChanges: counter(
      "davit_store_leader_changes_seen_total",
      "How often a member began to lead the store in etcd while this davit ran.",
    ),
    storeLagSeconds: gauge(
      "davit_store_lag_seconds",
      "Time since this davit was last known to have everything in the log in etcd; up to 3 is normal.",
    ),
  };
}

/** Metrics of `--backup-every`; all 0 without this option. */
function backupMetrics({ gauge, counter }: Define) {
  return {
    backupIntervalSeconds: gauge(
      "davit_backup_interval_seconds",
      "How often a backup is due, see --backup-every; 0 for never.",
    ),
    backupAgeSeconds: gauge(
      "davit_backup_age_seconds",
      "Time since the newest scheduled backup was taken; since the start while there is none.",
    ),
    backupBytes: gauge("davit_backup_bytes", "Size of the newest scheduled backup; 0 while there is none."),
    backupFailures: counter(
      "davit_backup_failures_total",
      "Scheduled backups that could not be written, or not be removed when they were too many.",
    ),
  };
}
