/** The metrics of the store, of its members and of its backups. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

// One fdatasync takes 0.1 ms on NVMe and 20 ms on a spinning disk.
const syncSecondsBuckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5];

/** @param registers where they are registered. */
export function storeMetrics(registers: Registry[]) {
  const storeWritable = new Gauge({
    name: "davit_store_writable",
    help: "1 while the log of the store takes writes; absent without a store.",
    registers,
  });
  // `davit boot` has no store, and an alert on 0 must not fire there. So the series exists only after the first `set`.
  storeWritable.remove();
  return {
    storeWritable,
    storeFull: new Gauge({
      name: "davit_store_full",
      help: "1 while the disk of the log has no room, or its etcd has reached its quota (alarm NOSPACE).",
      registers,
    }),
    storeProposalsFailed: new Counter({
      name: "davit_store_proposals_failed_total",
      help: "Changes that the log did not take, by reason.",
      labelNames: ["reason"],
      registers,
    }),
    storeSyncSeconds: new Histogram({
      name: "davit_store_sync_seconds",
      help: "Time to log a batch: one write and fdatasync, or one transaction of etcd until its answer.",
      buckets: syncSecondsBuckets,
      registers,
    }),
    storeIndex: new Gauge({ name: "davit_store_index", help: "Changes applied to the store.", registers }),
    storeUnauthorized: new Counter({
      name: "davit_store_unauthorized_total",
      help: "Requests to the store that were refused because they lacked the right credentials.",
      registers,
    }),
    storeFollowers: new Gauge({ name: "davit_store_followers", help: "Followers of the store now.", registers }),
    storeBytes: new Gauge({
      name: "davit_store_bytes",
      help: "Names and values in the store; the quota is about these.",
      registers,
    }),
    storeWatchers: new Gauge({ name: "davit_store_watchers", help: "Watches waiting now.", registers }),
    ...memberMetrics(registers),
    ...backupMetrics(registers),
  };
}

/** Metrics of a store in etcd, as this member knows it. */
function memberMetrics(registers: Registry[]) {
  const storeIsLeader = new Gauge({
    name: "davit_store_is_leader",
    help: "1 while this davit leads the store, 0 while it does not; absent without a store in etcd.",
    registers,
  });
  const storeMembers = new Gauge({
    name: "davit_store_members",
    help: "Davits that run on this store, this one included; absent without a store in etcd.",
    registers,
  });
  // A davit with a log on disk is no member, and an alert on 0 must not fire there.
  storeIsLeader.remove();
  storeMembers.remove();
  return {
    storeIsLeader,
    storeMembers,
    storeLeaderChanges: new Counter({
      name: "davit_store_leader_changes_seen_total",
      help: "How often a member began to lead the store in etcd while this davit ran.",
      registers,
    }),
    storeLagSeconds: new Gauge({
      name: "davit_store_lag_seconds",
      help: "Time since this davit was last known to have everything in the log in etcd; up to 3 is normal.",
      registers,
    }),
  };
}

/** Metrics of `--backup-every`; all 0 without this option. */
function backupMetrics(registers: Registry[]) {
  return {
    backupIntervalSeconds: new Gauge({
      name: "davit_backup_interval_seconds",
      help: "How often a backup is due, see --backup-every; 0 for never.",
      registers,
    }),
    backupAgeSeconds: new Gauge({
      name: "davit_backup_age_seconds",
      help: "Time since the newest scheduled backup was taken; since the start while there is none.",
      registers,
    }),
    backupBytes: new Gauge({
      name: "davit_backup_bytes",
      help: "Size of the newest scheduled backup; 0 while there is none.",
      registers,
    }),
    backupFailures: new Counter({
      name: "davit_backup_failures_total",
      help: "Scheduled backups that could not be written, or not be removed when they were too many.",
      registers,
    }),
  };
}
