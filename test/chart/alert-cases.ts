/**
 * When each alert of the chart fires, and when it does not: series of one hour, a value each minute, as promtool writes
 * them. Labels of the release's pod are added to each; `alerts.test.ts` looks at the end of the hour.
 */

export interface AlertCase {
  /** What it is an example of. */
  readonly name: string;
  /** Values by series. */
  readonly series: Readonly<Record<string, string>>;
}

export interface AlertCases {
  readonly fires: readonly AlertCase[];
  readonly silent: readonly AlertCase[];
}

const hour = 60;

/** The same value all the time. */
const always = (value: number) => `${value}+0x${hour}`;
/** A counter that grows by so much a minute. */
const growing = (by: number) => `0+${by}x${hour}`;
/** One value, and another one for the last minutes. */
const since = (minutes: number, value: number, before = 0) => `${before}+0x${hour - minutes - 1} ${value}+0x${minutes}`;
/** A counter that stands still, and grows in the last minutes. */
const growingSince = (minutes: number, by: number) => `0+0x${hour - minutes - 1} ${by}+${by}x${minutes}`;
/** A counter that grew once, so many minutes ago. */
const grewOnce = (minutes: number) => since(minutes, 1);

const answers = (code: number) => `davit_boot_requests_total{endpoint="ipxe",code="${code}"}`;
const refusals = (reason: string) => `davit_boot_refusals_total{reason="${reason}"}`;
const ledgerMachines = (state: string) => `davit_ledger_machines{state="${state}"}`;
const installs = (result: string) => `davit_installs_total{result="${result}"}`;
const machines = (phase: string) => `davit_machines{phase="${phase}"}`;
const assets = (state: string) => `davit_profile_assets{state="${state}"}`;
const day = 86_400;

/** A gauge that must not stay beyond a limit. */
function limit(series: string, limits: { readonly good: number; readonly bad: number; readonly minutes: number }) {
  const { good, bad, minutes } = limits;
  return {
    fires: [{ name: "all the time", series: { [series]: always(bad) } }],
    silent: [
      { name: "never", series: { [series]: always(good) } },
      { name: "not for long enough", series: { [series]: since(minutes - 2, bad, good) } },
      { name: "not any more", series: { [series]: `${bad}+0x57 ${good}+0x2` } },
    ],
  };
}

/** What the store holds, of a quota between the two. */
export function nearQuota(bytes: { readonly good: number; readonly bad: number }) {
  return limit("davit_store_bytes", { ...bytes, minutes: 15 });
}

/** A counter that must not grow at all; the alert stays for half an hour. */
function single(series: string): AlertCases {
  return {
    fires: [
      { name: "it grows", series: { [series]: growing(1) } },
      { name: "once, a moment ago", series: { [series]: grewOnce(10) } },
    ],
    silent: [
      { name: "it stands still", series: { [series]: always(7) } },
      { name: "longer ago", series: { [series]: grewOnce(40) } },
    ],
  };
}

/** A counter that must not grow for long. */
function growth(series: string, minutes: number): AlertCases {
  return {
    fires: [{ name: "it grows all the time", series: { [series]: growing(10) } }],
    silent: [
      { name: "it stands still", series: { [series]: always(1_000) } },
      { name: "it grows since a moment", series: { [series]: growingSince(minutes - 2, 10) } },
    ],
  };
}

/** By the name of the alert. */
export const alertCases: Readonly<Record<string, AlertCases>> = {
  DavitAbsent: {
    fires: [
      { name: "nothing is scraped", series: {} },
      { name: "it stopped a quarter of an hour ago", series: { 'davit_build_info{version="1"}': "1+0x45 stale" } },
    ],
    silent: [
      { name: "one pod is scraped", series: { 'davit_build_info{version="1"}': always(1) } },
      { name: "a restart", series: { 'davit_build_info{version="1"}': "1+0x54 stale _x2 1+0x2" } },
    ],
  },
  DavitBootErrors: {
    fires: [
      { name: "one of ten fails", series: { [answers(200)]: growing(90), [answers(500)]: growing(10) } },
      { name: "all fail", series: { [answers(500)]: growing(1) } },
    ],
    silent: [
      { name: "a held machine alone", series: { [answers(503)]: growing(12), [refusals("held")]: growing(12) } },
      { name: "half of them wait", series: { [answers(200)]: growing(50), [answers(503)]: growing(50) } },
      { name: "one of a hundred fails", series: { [answers(200)]: growing(99), [answers(500)]: growing(1) } },
      { name: "machines of no Group", series: { [answers(404)]: growing(50) } },
      { name: "nobody asks", series: { [answers(200)]: always(7), [answers(500)]: always(7) } },
      { name: "since a moment", series: { [answers(200)]: growing(1), [answers(500)]: growingSince(5, 50) } },
    ],
  },
  DavitMachinesWait: {
    fires: [
      ...[
        "notReady",
        "withheld",
        "refused",
        "oldProfile",
        "failed",
        "doubtful",
        "undecryptable",
        "unreadable",
        "ambiguous",
      ],
      // These two end after a minute, unless the source is away or the store takes no writes.
      ...["bereft", "vanished"],
    ].map((reason) => ({ name: reason, series: { [refusals(reason)]: growing(12) } })),
    silent: [
      ...["held", "noMatch", "noPart"].map((reason) => ({
        name: `the reason ${reason}`,
        series: { [refusals(reason)]: growing(12) },
      })),
      ...["bereft", "vanished"].map((reason) => ({
        name: `the reason ${reason} for a minute, every five minutes`,
        series: { [refusals(reason)]: Array.from({ length: 12 }, (_, at) => `${12 * (at + 1)}+0x4`).join(" ") },
      })),
      { name: "twenty minutes", series: { [refusals("withheld")]: growingSince(20, 12) } },
      { name: "it is over", series: { [refusals("withheld")]: `0+12x45 ${12 * 45}+0x14` } },
    ],
  },
  DavitMachinesRefused: {
    fires: ["noProfile", "tied", "busy"].map((reason) => ({
      name: reason,
      series: { [refusals(reason)]: growing(1) },
    })),
    silent: [
      { name: "machines of no Group", series: { [refusals("noMatch")]: growing(10) } },
      { name: "a held machine", series: { [refusals("held")]: growing(10) } },
      { name: "one that asked once", series: { [refusals("tied")]: grewOnce(5) } },
    ],
  },
  DavitBootsRepeat: limit('davit_boot_stuck_machines{state="looping"}', { good: 0, bad: 1, minutes: 5 }),
  DavitRenderFailures: {
    fires: [
      { name: "each time", series: { [refusals("broken")]: growing(1) } },
      { name: "once, ten minutes ago", series: { [refusals("broken")]: grewOnce(10) } },
    ],
    silent: [
      { name: "never", series: { [refusals("broken")]: always(0) } },
      { name: "once, forty minutes ago", series: { [refusals("broken")]: grewOnce(40) } },
      { name: "other refusals", series: { [refusals("held")]: growing(1), [refusals("noMatch")]: growing(1) } },
    ],
  },
  DavitBootThreadLost: single("davit_boot_threads_lost_total"),
  DavitWatchDisconnected: limit('davit_watch_connected{resource="groups"}', { good: 1, bad: 0, minutes: 5 }),
  DavitCacheStale: limit("davit_cache_age_seconds", { good: 60, bad: 200, minutes: 5 }),
  DavitSourceStale: limit("davit_source_staleness_seconds", { good: 20, bad: 200, minutes: 5 }),
  DavitObjectsNotReady: limit('davit_resources{kind="Group",ready="false"}', { good: 0, bad: 1, minutes: 15 }),
  DavitDeletionsWithheld: limit("davit_withheld_deletions", { good: 0, bad: 1, minutes: 15 }),
  DavitReconcileErrors: growth('controller_runtime_reconcile_errors_total{controller="group"}', 10),
  DavitQueueGrows: limit('workqueue_depth{name="objects"}', { good: 100, bad: 101, minutes: 15 }),
  DavitStoreNotWritable: limit("davit_store_writable", { good: 1, bad: 0, minutes: 5 }),
  DavitStoreFull: limit("davit_store_full", { good: 0, bad: 1, minutes: 2 }),
  DavitStoreNoLeader: limit("davit_store_is_leader", { good: 1, bad: 0, minutes: 2 }),
  // The suite renders the chart with three members; a host had them in the first half hour.
  DavitStoreMembersMissing: {
    fires: [
      { name: "one is lost", series: { davit_store_members: since(30, 2, 3) } },
      { name: "all but one are lost", series: { davit_store_members: since(30, 1, 3) } },
    ],
    silent: [
      { name: "all run", series: { davit_store_members: always(3) } },
      { name: "an upgrade", series: { davit_store_members: since(8, 2, 3) } },
      { name: "a store on disk", series: { davit_store_index: always(7) } },
    ],
  },
  DavitStoreBehind: limit("davit_store_lag_seconds", { good: 2, bad: 60, minutes: 5 }),
  DavitStoreSyncSlow: {
    fires: [{ name: "a slow disk", series: syncs({ quick: 0, slow: 60 }) }],
    silent: [
      { name: "a quick disk", series: syncs({ quick: 60, slow: 0 }) },
      { name: "one of a thousand is slow", series: syncs({ quick: 999, slow: 1 }) },
      { name: "nobody writes", series: syncs({ quick: 0, slow: 0 }) },
    ],
  },
  DavitStoreNearQuota: nearQuota({ good: 50e6, bad: 60e6 }),
  DavitBackupOld: {
    fires: [
      { name: "three intervals", series: backups({ every: day, age: 3 * day }) },
      { name: "never one, since two hours, of an hourly schedule", series: backups({ every: 3_600, age: 7_300 }) },
    ],
    silent: [
      { name: "without a schedule", series: backups({ every: 0, age: 0 }) },
      { name: "one and a half", series: backups({ every: day, age: 1.5 * day }) },
    ],
  },
  DavitBackupFails: {
    fires: [{ name: "each try", series: { davit_backup_failures_total: "0+1x60" } }],
    silent: [
      { name: "never", series: { davit_backup_failures_total: always(3) } },
      { name: "once", series: { davit_backup_failures_total: grewOnce(45) } },
    ],
  },
  DavitStoreUnauthorized: growth("davit_store_unauthorized_total", 15),
  DavitFollowerDisconnected: limit("davit_follow_connected", { good: 1, bad: 0, minutes: 5 }),
  DavitFollowerStale: limit("davit_follow_age_seconds", { good: 30, bad: 200, minutes: 5 }),
  DavitInstallsWait: limit('davit_install_doubt{doubt="stale"}', { good: 0, bad: 1, minutes: 5 }),
  DavitLedgerNotWritable: {
    ...limit("davit_ledger_writable", { good: 1, bad: 0, minutes: 5 }),
    silent: [
      ...limit("davit_ledger_writable", { good: 1, bad: 0, minutes: 5 }).silent,
      { name: "a follower, which has no ledger", series: { davit_follow_connected: always(1) } },
    ],
  },
  DavitLedgerNearlyFull: {
    fires: [
      {
        name: "two states together are too many",
        series: { [ledgerMachines("installed")]: always(40_000), [ledgerMachines("unconfirmed")]: always(20_000) },
      },
    ],
    silent: [
      {
        name: "two states together are few enough",
        series: { [ledgerMachines("installed")]: always(40_000), [ledgerMachines("unconfirmed")]: always(18_000) },
      },
      { name: "not for long enough", series: { [ledgerMachines("installed")]: since(13, 60_000) } },
    ],
  },
  DavitInstallsFail: {
    fires: ["failed", "unconfirmed"].map((result) => ({
      name: `one ${result} a quarter of an hour ago`,
      series: { [installs(result)]: grewOnce(15) },
    })),
    silent: [
      { name: "all end well", series: { [installs("installed")]: growing(10), [installs("failed")]: always(7) } },
      { name: "one, longer ago", series: { [installs("failed")]: grewOnce(40) } },
    ],
  },
  DavitMachinesNotInstalled: {
    fires: ["Failed", "Unconfirmed"].map((phase) => ({
      name: `one is ${phase}`,
      series: { [machines(phase)]: always(1) },
    })),
    silent: [
      {
        name: "other phases",
        series: { [machines("Held")]: always(5), [machines("Installing")]: always(5), [machines("Failed")]: always(0) },
      },
      { name: "one, for half an hour", series: { [machines("Failed")]: since(30, 1) } },
    ],
  },
  DavitPendingMachinesMany: limit("davit_pending_machines", { good: 900, bad: 901, minutes: 15 }),
  DavitAssetMismatch: single("davit_boot_asset_mismatches_total"),
  DavitProfileAssetNotFetched: {
    fires: [
      { name: "one failed", series: { [assets("FetchFailed")]: always(1) } },
      { name: "two names are taken", series: { [assets("Conflict")]: always(2), [assets("Fetched")]: always(3) } },
    ],
    silent: [
      { name: "downloads run", series: { [assets("Fetching")]: always(2), [assets("Waiting")]: always(5) } },
      { name: "all are there", series: { [assets("Fetched")]: always(3), [assets("FetchFailed")]: always(0) } },
      { name: "since ten minutes", series: { [assets("FetchFailed")]: since(10, 1) } },
    ],
  },
  DavitHistoryNotWritten: limit("davit_boot_history_writable", { good: 1, bad: 0, minutes: 15 }),
  DavitAuditLogNotWritten: {
    fires: [
      { name: "its lines wait", series: { davit_audit_writable: always(0), davit_audit_lost_total: always(0) } },
      { name: "lines are lost", series: { davit_audit_writable: always(1), davit_audit_lost_total: growing(1) } },
    ],
    silent: [
      { name: "it is written", series: { davit_audit_writable: always(1), davit_audit_lost_total: always(7) } },
      { name: "no file", series: { davit_audit_lost_total: always(0) } },
      { name: "not for long enough", series: { davit_audit_writable: since(10, 0, 1) } },
    ],
  },
  DavitFollowerHistoryDropped: growth("davit_follow_history_dropped_total", 15),
  DavitSigningKeyExpires: {
    fires: [
      { name: "in ten days", series: { davit_signing_key_expiry_timestamp_seconds: always(10 * day) } },
      { name: "it has", series: { davit_signing_key_expiry_timestamp_seconds: always(60) } },
    ],
    silent: [
      { name: "never, or no key", series: { davit_signing_key_expiry_timestamp_seconds: always(0) } },
      { name: "in three weeks", series: { davit_signing_key_expiry_timestamp_seconds: always(21 * day) } },
    ],
  },
  DavitSigningKeyProblem: limit("davit_signing_key_problem", { good: 0, bad: 1, minutes: 15 }),
};

/** Writes of the log a minute. */
function syncs({ quick, slow }: { readonly quick: number; readonly slow: number }): AlertCase["series"] {
  const bucket = (le: string) => `davit_store_sync_seconds_bucket{le="${le}"}`;
  const all = growing(quick + slow);
  return {
    [bucket("0.005")]: growing(quick),
    [bucket("0.25")]: growing(quick),
    [bucket("0.5")]: all,
    [bucket("+Inf")]: all,
  };
}

function backups({ every, age }: { readonly every: number; readonly age: number }): AlertCase["series"] {
  return { davit_backup_interval_seconds: always(every), davit_backup_age_seconds: always(age) };
}
