/**
 * Backups on a schedule, each in its own file. The age of the newest file decides when the next backup is due, so a
 * restart neither skips nor adds one. During a run, ages are by the monotonic clock, so setting the wall clock changes
 * nothing.
 *
 * Of several members, only the leader takes backups. The next leader goes on by the newest file in the same directory.
 *
 * A round removes only unfinished files and surplus backups of this store, which it recognises by their names. It
 * removes surplus backups only after newer ones are on disk, so a full disk keeps the last good backups. A failure
 * never stops the store: it is logged, counted and retried.
 */

import { join } from "node:path";
import { backoffMs } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { dateOf, toRfc3339 } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { diskSentence } from "../../lib/files/disk-sentence.ts";
import type { Files } from "../../lib/files/files.ts";
import { publicProblem } from "../../lib/files/private-path.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics/metrics.ts";
import { type LogIdentity, WalError } from "../core/log-port.ts";
import { saveBackup } from "./backup.ts";

export interface BackupScheduleOptions {
  readonly store: {
    readonly identity: LogIdentity;
    /** Its size; 0 without keys. davit takes no backup before the first key. */
    readonly bytes: number;
    backup(): AsyncIterable<Uint8Array>;
    onLeadership(listener: (isLeading: boolean) => void): void;
  };
  readonly files: Files;
  /** Made with mode 0700 where it is missing. */
  readonly directory: string;
  readonly everyMs: number;
  /** How many backups are kept, from 1 on. */
  readonly keep: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: (bytes: number) => Uint8Array;
}

type BackupMetrics = Pick<Metrics, "backupIntervalSeconds" | "backupAgeSeconds" | "backupBytes" | "backupFailures">;

const firstRetryMs = 10_000;
const longestRetryMs = 15 * 60_000;
/**
 * How often davit looks for the newest backup. If the backup is gone, perhaps with its volume, davit takes another one.
 */
const lookMs = 10 * 60_000;
/** How often davit looks whether an empty store has its first keys. The first list of a source is soon whole. */
const emptyMs = 5_000;
/** How long a stop waits for a running backup: a network disk may never answer. */
const stopLimitMs = 2_000;

/** The newest backup that davit knows. */
interface Newest {
  readonly name: string;
  /**
   * When it was taken, by the monotonic clock. For a backup of an earlier run, this is before the start of the process.
   */
  readonly takenMs: number;
  /** 0 for a backup of an earlier run if its size cannot be read. */
  readonly bytes: number;
}

export class BackupSchedule {
  readonly #options: BackupScheduleOptions;
  /** Ends a time of leading. */
  #leading = new AbortController();
  #isStopped = false;
  readonly #startMs: number;
  #newest: Newest | undefined;
  #failures = 0;
  /** How many of the failures the metric has counted. */
  #counted = 0;
  #problem: string | undefined;
  #running: Promise<void> | undefined;

  constructor(options: BackupScheduleOptions) {
    this.#options = options;
    this.#startMs = options.clock.monotonicMs();
  }

  /** Why the last backup failed, in one line for a person; empty after a success. */
  get attention(): readonly string[] {
    return this.#problem === undefined ? [] : [`backup: ${this.#problem}`];
  }

  /** Sets the metrics to their present values, before they are read. */
  measure({ backupIntervalSeconds, backupAgeSeconds, backupBytes, backupFailures }: BackupMetrics): void {
    backupIntervalSeconds.set(this.#options.everyMs / 1_000);
    // The leader's age counts: the others do not look at the directory.
    backupAgeSeconds.set(this.#isOver ? 0 : this.#ageMs / 1_000);
    backupBytes.set(this.#isOver ? 0 : (this.#newest?.bytes ?? 0));
    backupFailures.inc(this.#failures - this.#counted);
    this.#counted = this.#failures;
  }

  /** Begins the schedule. If this store has no backup yet, its leader takes the first one once the store has a key. */
  start(): void {
    this.#leading.abort();
    this.#options.store.onLeadership((isLeading) => this.#lead(isLeading));
  }

  /** Stops a running backup and waits until its file is removed, at most `stopLimitMs`. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#leading.abort();
    const ended = new AbortController();
    const running = this.#running?.finally(() => ended.abort());
    await Promise.race([running, this.#options.clock.sleep(stopLimitMs, ended.signal)]);
  }

  /** Time since the newest backup was taken, or since the start if no backup is known. */
  get #ageMs(): number {
    return this.#options.clock.monotonicMs() - (this.#newest?.takenMs ?? this.#startMs);
  }

  #lead(isLeading: boolean): void {
    this.#leading.abort();
    this.#problem = undefined;
    if (!isLeading || this.#isStopped) return;
    this.#leading = new AbortController();
    const { signal } = this.#leading;
    this.#running = (this.#running ?? Promise.resolve()).then(() => this.#run(signal));
  }

  /** True while this member takes no backups. */
  get #isOver(): boolean {
    return this.#leading.signal.aborted;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.#options;
    for (let failed = 0; !signal.aborted; ) {
      if (this.#options.store.bytes === 0) {
        await clock.sleep(emptyMs, signal);
        continue;
      }
      const isDone = await this.#tryRound();
      failed = isDone ? 0 : failed + 1;
      const retryMs = backoffMs(failed - 1, { firstMs: firstRetryMs, capMs: longestRetryMs });
      const dueMs = Math.max(0, everyMs - this.#ageMs);
      await clock.sleep(isDone ? Math.min(dueMs, lookMs) : Math.min(retryMs, everyMs), signal);
    }
  }

  async #tryRound(): Promise<boolean> {
    try {
      await this.#round();
      this.#problem = undefined;
      return true;
    } catch (error) {
      if (this.#isOver) return true;
      this.#failures += 1;
      const why = diskSentence(error) ?? messageOf(error);
      this.#problem = error instanceof WalError ? why : `Writing to "${this.#options.directory}": ${why}`;
      this.#options.log.error({ problem: this.#problem, failures: this.#failures }, "scheduled backup failed");
      return false;
    }
  }

  /**
   * Takes a backup if the newest one is old enough. After that, or if no backup was due, it removes surplus backups.
   */
  async #round(): Promise<void> {
    const { store, files, directory, keep, everyMs } = this.#options;
    const { clusterId } = store.identity;
    await files.makeDirectory(directory);
    const problem = await publicProblem(directory);
    if (problem !== undefined) throw new WalError("unusable", `Writing to "${directory}": ${problem}`);
    const names = await files.list(directory);
    for (const name of unfinishedAmong(names, clusterId)) await files.remove(join(directory, name));
    const found = backupsAmong(names, clusterId);
    if (this.#newest?.name !== found.at(-1)?.name) this.#newest = await this.#ofEarlierRun(found.at(-1));
    const kept = found.map(({ name }) => name);
    if (this.#newest === undefined || this.#ageMs >= everyMs) {
      this.#newest = await this.#take(clusterId, (found.at(-1)?.number ?? 0) + 1);
      kept.push(this.#newest.name);
    }
    for (const name of kept.slice(0, -keep)) await files.remove(join(directory, name));
  }

  /**
   * A backup of an earlier run as `Newest`. It is undefined for a time in the future: the backup's age is unknown, so
   * davit takes another one.
   */
  async #ofEarlierRun(newest: NamedBackup | undefined): Promise<Newest | undefined> {
    const { files, directory, clock } = this.#options;
    if (newest === undefined || newest.atMs > clock.nowMs()) return undefined;
    const takenMs = clock.monotonicMs() - (clock.nowMs() - newest.atMs);
    const bytes = await files.sizeOf(join(directory, newest.name)).catch(() => 0);
    return { name: newest.name, takenMs, bytes };
  }

  async #take(clusterId: string, number: number): Promise<Newest> {
    const { files, directory, clock, log, random } = this.#options;
    const takenMs = clock.monotonicMs();
    const name = backupName(clusterId, number, clock.nowMs());
    const path = join(directory, name);
    const saving = saveBackup({
      files,
      path,
      mayReplace: false,
      name: "the scheduled backup",
      pieces: this.#pieces(),
      progress: () => undefined,
      random,
    });
    const { head, sizeBytes: bytes } = await saving.catch(async (error: unknown) => {
      // If only the directory's sync failed, the file has its final name. It is removed, because retries would fill the
      // disk.
      await files.remove(path).catch(() => undefined);
      throw error;
    });
    const seconds = (clock.monotonicMs() - takenMs) / 1_000;
    log.info({ file: name, index: head.index, bytes, seconds }, "scheduled backup written");
    return { name, takenMs, bytes };
  }

  async *#pieces(): AsyncGenerator<Uint8Array> {
    for await (const piece of this.#options.store.backup()) {
      if (this.#isOver) throw new WalError("unusable", "Writing the scheduled backup: it was stopped");
      yield piece;
    }
  }
}

/**
 * A scheduled backup, by its name: `davit-CLUSTER-NUMBER-TIME.backup`, such as
 * `davit-5f0c…-00000042-20260102T030405Z.backup`. NUMBER orders the backups, because a clock may be set back. CLUSTER
 * is the id of the store, so a new store neither counts nor removes the backups of a lost one.
 */
interface NamedBackup {
  readonly name: string;
  readonly number: number;
  /** When it was taken, by the wall clock: Unix milliseconds, in whole seconds. */
  readonly atMs: number;
}

/** The name of a backup. */
function backupName(clusterId: string, number: number, atMs: number): string {
  const time = toRfc3339(atMs)
    .replace(/\.\d+Z$/, "Z")
    .replaceAll(/[-:]/g, "");
  return `davit-${clusterId}-${String(number).padStart(8, "0")}-${time}.backup`;
}

/** The whole backups of a cluster among the names of a directory, the oldest first. */
function backupsAmong(names: readonly string[], clusterId: string): readonly NamedBackup[] {
  return names.flatMap((name) => parsed(name, clusterId)).toSorted((a, b) => a.number - b.number);
}

/** The unfinished backups of a cluster that a crash left. */
function unfinishedAmong(names: readonly string[], clusterId: string): readonly string[] {
  return names.flatMap((name) => {
    const [, whole = ""] = /^(.*)\.[0-9a-f]{8}(\.tmp)?$/.exec(name) ?? [];
    return parsed(whole, clusterId).length === 0 ? [] : [name];
  });
}

function parsed(name: string, clusterId: string): readonly NamedBackup[] {
  const start = `davit-${clusterId}-`;
  if (!name.startsWith(start)) return [];
  const [, digits, ...time] =
    /^(\d{8,15})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.backup$/.exec(name.slice(start.length)) ?? [];
  const [year, month, day, hour, minute, second] = time;
  const atMs = dateOf(Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)).getTime();
  const number = Number(digits);
  return Number.isNaN(atMs) || backupName(clusterId, number, atMs) !== name ? [] : [{ name, number, atMs }];
}
