/**
 * Writes the status of objects into the cluster, by server-side apply on their status subresource.
 *
 * In the end, an object shows the status of the last `write`. The writer skips a status that is already shown, and
 * writes no faster than the API server accepts. It changes only `status`. `stop` drops waiting writes; davit writes
 * these statuses after its next start.
 */

import { backoffMs, jittered } from "../../../lib/backoff.ts";
import { toRfc3339 } from "../../../lib/clock.ts";
import type { Ports } from "../../../lib/ports.ts";
import { TokenBucket, type TokenBucketOptions } from "../../../lib/token-bucket.ts";
import type { JsonObject } from "../../../model/json.ts";
import { type ObjectName, type ObjectStatus, objectKey, type StatusSink } from "../../../model/objects/source.ts";
import { ApiError, fieldNotDeclared } from "../client/api-error.ts";
import type { ApiClient } from "../client/client.ts";
import { objectPath, resources } from "../client/resources.ts";
import { RetryDelays } from "../client/retry-delays.ts";
import type { SeenObject } from "../source/cluster-source.ts";
import { failureText } from "../watch/failure-text.ts";
import type { EventRecorder } from "./event-recorder.ts";
import { MissingRights } from "./missing-rights.ts";
import { eventfulChanges, type NextStatus, nextStatus } from "./next-status.ts";

export interface StatusWriterOptions extends Pick<Ports, "clock" | "log" | "random"> {
  readonly client: Pick<ApiClient, "json">;
  /** Returns an object as the API server last reported it; undefined for an object that is gone. */
  readonly seen: (name: ObjectName) => SeenObject | undefined;
  readonly events: Pick<EventRecorder, "record">;
  /** `statusPace` unless given. */
  readonly pace?: Pick<TokenBucketOptions, "perSecond" | "burst">;
}

/** An object whose status davit writes. */
interface StatusEntry {
  readonly name: ObjectName;
  wanted: ObjectStatus;
  failures: number;
  /** The wanted status that was last written, or that was already shown. */
  settled: ObjectStatus | undefined;
  /** True while a write runs, or waits after a failure. Later calls then only change the wanted status. */
  isBusy: boolean;
}

/** A written status, and the version of the object to which it was written. */
interface WrittenStatus {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly status: NextStatus;
}

/**
 * An API server on two cores accepts about 250 writes a second, so this rate leaves room for other clients. The burst
 * is for the first sync, because a person may be waiting for it. With 10,000 objects, davit writes the first 7,500 at
 * the server's full speed (30 s), and the last 2,500 at this rate (17 s). The burst is full again after 20 s without
 * writes.
 */
export const statusPace = { perSecond: 150, burst: 3_000 } as const;
const maxWrites = 8;
const retryDelays = { firstMs: 1_000, capMs: 60_000 };
/**
 * Delays before davit repairs a status that another writer changed. Without them two writers, such as davits of two
 * versions, would overwrite each other without a pause.
 */
const repairDelays = { firstMs: 1_000, capMs: 300_000 };
const repairsResetMs = 600_000;
/**
 * The pause after a 429 without `Retry-After`. An API server without priority and fairness never asks for a longer one.
 */
const throttledMs = 1_000;

/** How a write ended. After `gone`, the writer does not retry. `conflict`: another object has this name now. */
type WriteOutcome = "done" | "gone" | "conflict" | "throttled" | "failed";

export class StatusWriter implements StatusSink {
  readonly #options: StatusWriterOptions;
  readonly #bucket: TokenBucket;
  readonly #entries = new Map<string, StatusEntry>();
  /** Writes that the watch has not reported yet. The oldest is first. */
  readonly #unheard = new Map<StatusEntry, WrittenStatus>();
  /** How often davit repaired a status that another writer had changed, and when it last did. */
  readonly #repairs = new WeakMap<StatusEntry, { readonly count: number; readonly atMs: number }>();
  /** Objects to check and perhaps write, in order, but Machines only behind all others. */
  readonly #due = new Set<StatusEntry>();
  readonly #dueMachines = new Set<StatusEntry>();
  #machineWrites = 0;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #delays: RetryDelays;
  readonly #lanes = new WriteLanes(maxWrites);
  readonly #rights = new MissingRights();
  #failuresInARow = 0;
  #isOnHold = false;

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket({ clock: options.clock, ...(options.pace ?? statusPace) });
    this.#delays = new RetryDelays(options);
  }

  /** For people: rights that are missing now. */
  get attention(): readonly string[] {
    return this.#rights.lines.map((line) => `cluster: ${line}`);
  }

  /**
   * Sets the wanted status. It resolves immediately, because the write may have to wait until the API server is back.
   */
  write(name: ObjectName, status: ObjectStatus): Promise<void> {
    const key = objectKey(name);
    const known = this.#entries.get(key);
    const entry = known ?? { name, wanted: status, failures: 0, settled: undefined, isBusy: false };
    entry.wanted = status;
    this.#entries.set(key, entry);
    this.#add(entry);
    return Promise.resolve();
  }

  forget(name: ObjectName): void {
    const key = objectKey(name);
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      this.#dueOf(entry).delete(entry);
      this.#unheard.delete(entry);
    }
    this.#entries.delete(key);
    this.#rights.forget(name);
  }

  /**
   * Checks an object that the watch reported: another writer may have changed its status.
   * @param isReplaced true if davit may have written to another object of this name, even one with the same version.
   */
  recheck(name: ObjectName, isReplaced: boolean): void {
    const entry = this.#entries.get(objectKey(name));
    if (entry === undefined) return;
    if (isReplaced) this.#unheard.delete(entry);
    this.#add(entry);
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#due.clear();
    this.#dueMachines.clear();
    await Promise.all(this.#running);
  }

  #add(entry: StatusEntry): void {
    if (this.#stopping.signal.aborted) return;
    this.#dueOf(entry).add(entry);
    this.#next();
  }

  #dueOf({ name }: StatusEntry): Set<StatusEntry> {
    return name.kind === "Machine" ? this.#dueMachines : this.#due;
  }

  #next(): void {
    for (const entry of this.#due) {
      if (!this.#hasLane) return;
      if (!entry.isBusy) this.#begin(entry);
    }
    // Thousands of machines may boot at once. At least one lane stays free for what a person has just changed.
    for (const entry of this.#dueMachines) {
      if (!this.#hasLane || this.#machineWrites >= Math.max(1, this.#lanes.count / 2)) return;
      if (!entry.isBusy) this.#begin(entry);
    }
  }

  get #hasLane(): boolean {
    return !this.#isOnHold && this.#running.size < this.#lanes.count;
  }

  #begin(entry: StatusEntry): void {
    const due = this.#dueOf(entry);
    const count = due === this.#dueMachines ? 1 : 0;
    due.delete(entry);
    this.#machineWrites += count;
    const running = this.#run(entry).finally(() => {
      this.#running.delete(running);
      this.#machineWrites -= count;
      this.#next();
    });
    this.#running.add(running);
  }

  async #run(entry: StatusEntry): Promise<void> {
    // After a start, most statuses are already shown. They cost no token.
    if (this.#pending(entry) === undefined) {
      entry.settled = entry.wanted;
      this.#rights.forget(entry.name);
      return;
    }
    entry.isBusy = true;
    const delayMs = this.#repairDelayMs(entry);
    if (delayMs > 0) {
      void this.#addLater(entry, delayMs);
      return;
    }
    await this.#bucket.take(this.#stopping.signal);
    if (this.#stopping.signal.aborted) return;
    this.#ended(entry, await this.#apply(entry));
  }

  /**
   * Returns the delay before a write. It is 0 unless the write is a repair: another writer changed the status that
   * davit had written. The first repair has no delay either, and further delays grow.
   */
  #repairDelayMs(entry: StatusEntry): number {
    if (entry.settled !== entry.wanted) return 0;
    entry.settled = undefined;
    const nowMs = this.#options.clock.monotonicMs();
    const { count, atMs } = this.#repairs.get(entry) ?? { count: 0, atMs: nowMs };
    const repairs = nowMs - atMs >= repairsResetMs ? 0 : count;
    this.#repairs.set(entry, { count: repairs + 1, atMs: nowMs });
    return repairs === 0 ? 0 : backoffMs(repairs - 1, repairDelays);
  }

  #ended(entry: StatusEntry, outcome: WriteOutcome): void {
    this.#failuresInARow = outcome === "failed" ? this.#failuresInARow + 1 : 0;
    if (this.#failuresInARow >= maxWrites && !this.#isOnHold) void this.#hold(this.#delays.next());
    if (outcome === "failed" || outcome === "conflict") {
      void this.#retryLater(entry, outcome);
      return;
    }
    entry.isBusy = false;
    entry.failures = 0;
    if (outcome === "done") this.#lanes.succeeded();
    if (outcome === "throttled" && this.#entries.get(objectKey(entry.name)) === entry) this.#add(entry);
  }

  /** Pauses all writes. While none can succeed, 10,000 objects must not all try in turn. */
  async #hold(durationMs: number): Promise<void> {
    this.#isOnHold = true;
    await this.#options.clock.sleep(durationMs, this.#stopping.signal);
    this.#isOnHold = false;
    this.#next();
  }

  /**
   * Waits outside the queue, so that an object that davit cannot write delays no other object. A conflict means that
   * another object has this name now. The watch will report that object soon, so delays do not grow with conflicts.
   */
  async #retryLater(entry: StatusEntry, outcome: "failed" | "conflict"): Promise<void> {
    const attempt = outcome === "conflict" ? 0 : entry.failures++;
    await this.#addLater(entry, backoffMs(attempt, retryDelays));
  }

  async #addLater(entry: StatusEntry, durationMs: number): Promise<void> {
    const { clock, random } = this.#options;
    await clock.sleep(jittered(durationMs, random), this.#stopping.signal);
    entry.isBusy = false;
    if (this.#entries.get(objectKey(entry.name)) === entry) this.#add(entry);
  }

  /** Starts a pause after a 429. Further 429s during the pause are part of the same overload, so they do not count. */
  #throttled({ retryAfterMs = throttledMs }: ApiError): "throttled" {
    if (this.#isOnHold) return "throttled";
    this.#lanes.throttled();
    void this.#hold(jittered(retryAfterMs, this.#options.random));
    return "throttled";
  }

  async #apply(entry: StatusEntry): Promise<WriteOutcome> {
    const { wanted } = entry;
    const pending = this.#pending(entry);
    if (pending === undefined) return "done";
    const { seen, shown, next } = pending;
    const { uid, resourceVersion } = seen;
    try {
      await this.#patch(entry.name, uid, next);
      entry.settled = wanted;
      this.#rights.granted(entry.name);
      this.#noteWritten(entry, { uid, resourceVersion, status: next });
      for (const change of eventfulChanges(shown, next)) {
        this.#options.events.record({ object: entry.name, uid, ...change });
      }
      return "done";
    } catch (error) {
      return this.#failed(entry, error);
    }
  }

  /**
   * Remembers a write until the watch reports it. The watch reports most writes in their order, so this only drops the
   * oldest ones.
   */
  #noteWritten(entry: StatusEntry, written: WrittenStatus): void {
    this.#unheard.delete(entry);
    if (this.#entries.get(objectKey(entry.name)) === entry) this.#unheard.set(entry, written);
    for (const [oldest, { uid, resourceVersion }] of this.#unheard) {
      const seen = this.#options.seen(oldest.name);
      if (seen?.uid === uid && seen.resourceVersion === resourceVersion) return;
      this.#unheard.delete(oldest);
    }
  }

  async #patch({ kind, namespace, name }: ObjectName, uid: string, status: NextStatus): Promise<void> {
    const resource = resources[kind];
    await this.#options.client.json({
      method: "PATCH",
      path: `${objectPath(resource, namespace, name)}/status`,
      query: { fieldManager: "davit-controller", force: "true" },
      // With the uid, the API server answers 409 if another object has this name now.
      body: {
        contentType: "application/apply-patch+yaml",
        value: { apiVersion: resource.apiVersion, kind, metadata: { namespace, name, uid }, status },
      },
      signal: this.#stopping.signal,
      retries: 0,
    });
  }

  #failed(entry: StatusEntry, error: unknown): WriteOutcome {
    const { name, failures } = entry;
    if (!(error instanceof ApiError)) throw error;
    if (this.#stopping.signal.aborted) return "gone";
    if (error.status === 404) {
      this.#rights.forget(name);
      return "gone";
    }
    if (error.status === 429) return this.#throttled(error);
    const { kind, namespace, name: object } = name;
    const problem = failureText(error, { verb: "patch", resource: resources[kind], subresource: "status", namespace });
    const data = { kind, namespace, name: object, problem };
    // For an object that is gone by now, no later write would clear the missing right.
    if (error.status === 403 && this.#entries.get(objectKey(name)) === entry) this.#rights.refused(name, problem);
    // The cluster's CRD may be of another version, which would also refuse a retry. Only the resync tries again.
    if (error.status === 400 || error.status === 422 || error.what === fieldNotDeclared) {
      this.#options.log.warn(data, "the API server refuses a status, is its CRD of this version of davit?");
      return "gone";
    }
    if (error.status === 409) return "conflict";
    if (failures === 0) this.#options.log.warn(data, "cannot write a status, trying again later");
    return "failed";
  }

  /** Returns the status to write; undefined when nothing needs writing. */
  #pending(entry: StatusEntry) {
    const seen = this.#options.seen(entry.name);
    const { uid, ...wanted } = entry.wanted;
    // If another object has this name now, the controller will give that object a status.
    if (seen === undefined || (uid !== undefined && uid !== seen.uid)) return undefined;
    const written = this.#unheard.get(entry);
    // Until the watch reports the last write, the seen object has the status from before that write.
    const isStale = written?.uid === seen.uid && written.resourceVersion === seen.resourceVersion;
    const shown: JsonObject = isStale ? toJson(written.status) : seen.value.status;
    const now = toRfc3339(this.#options.clock.nowMs()).replace(/\.\d+Z$/, "Z");
    const next = nextStatus(wanted, shown, now);
    return next && { seen, shown, next };
  }
}

function toJson({ conditions, ...fields }: NextStatus): JsonObject {
  return { ...fields, conditions: conditions.map((condition) => ({ ...condition })) };
}

// Twenty writes take a few tenths of a second. A peak of other clients lasts about as long.
const successesForOneMore = 20;

/**
 * Decides how many writes run at the same time: half as many after a 429, and one more after 20 successes. So davit
 * uses a large API server fully, but does not overload a small one. TCP does the same with a network (RFC 5681, 3.1).
 */
export class WriteLanes {
  readonly #most: number;
  #count: number;
  #successes = 0;

  /** @param most the maximum number of lanes, which is also the first number. */
  constructor(most: number) {
    this.#most = most;
    this.#count = most;
  }

  get count(): number {
    return this.#count;
  }

  throttled(): void {
    this.#count = Math.max(1, Math.floor(this.#count / 2));
    this.#successes = 0;
  }

  succeeded(): void {
    this.#successes += 1;
    if (this.#successes < successesForOneMore) return;
    this.#count = Math.min(this.#most, this.#count + 1);
    this.#successes = 0;
  }
}
