/**
 * Follows the objects of one resource: lists them, watches from the list's version on, and lists again after each gap.
 *
 * Whatever happens to the connection, in the end davit holds the objects of the API server: the next list shows even a
 * deletion that the watch missed. A failure never removes an object. If davit holds objects, it believes an empty list
 * only when a second list confirms it. Listeners receive only names. After `stop` no timer, socket or callback remains.
 */

import { jittered } from "../../../lib/backoff.ts";
import { Deadline } from "../../../lib/deadline.ts";
import type { Metrics } from "../../../lib/metrics/metrics.ts";
import type { Ports } from "../../../lib/ports.ts";
import { ApiError } from "../client/api-error.ts";
import type { ApiClient } from "../client/client.ts";
import { RetryDelays } from "../client/retry-delays.ts";
import { failureText } from "./failure-text.ts";
import { Mirror, type MirrorChange, type MirroredObject, type ReadObject, readMeta } from "./mirror.ts";
import { pagedList } from "./paged-list.ts";
import { lookSecondsFor, type Proof, proofOf } from "./proof.ts";
import { PastLists, type SeenVersions } from "./seen-versions.ts";
import { type WatchEvent, watchEvents } from "./watch-events.ts";
import { isGap, toWatchFailure, WatchFailure } from "./watch-failure.ts";
import { requestFor, type WatchTarget } from "./watch-target.ts";

interface ObjectWatchOptions<Value> extends Pick<Ports, "clock" | "log" | "random"> {
  readonly client: Pick<ApiClient, "json" | "watch">;
  readonly target: WatchTarget;
  readonly read: ReadObject<Value>;
  readonly listener: ObjectWatchListener;
  readonly metrics: Pick<Metrics, "watchRestarts" | "relists">;
  readonly limits: WatchLimits;
  readonly seen: SeenVersions;
}

export interface WatchLimits {
  /** A longer silence ends a watch. With a minute or less, watches are shorter: bookmarks come only once a minute. */
  readonly silenceMs: number;
  /** See `PastListsOptions`. */
  readonly pastMs?: number;
  readonly pageSize?: number;
  readonly maxLineBytes?: number;
}

/** The watch calls these functions one at a time and in order. They must not throw. */
export interface ObjectWatchListener {
  /** Called after each list, when its changes were reported. */
  readonly listed: () => void;
  readonly changed: (changes: readonly MirrorChange[]) => void;
  /** A list or watch failed, and davit retries it. The text is for the person who repairs the failure. */
  readonly failed?: (failure: WatchFailure, text: string) => void;
  /** The connection was made or lost. */
  readonly connected?: (isConnected: boolean) => void;
  /** After its first list, davit begins another list or watch request. Until `opened`, changes may be missing. */
  readonly opening?: () => void;
  readonly opened?: () => void;
}

const presetPageSize = 500;
/** The API server accepts objects of at most 3 MiB. Escapes can make the JSON of an object longer than that. */
const presetMaxLineBytes = 16 * 1024 * 1024;
/** Like client-go, davit asks for watches of 5 to 10 minutes. The limit also ends a watch whose other end is gone. */
const watchSeconds = { min: 300, spread: 300 };
/** Bookmarks come once a minute. If `silenceMs` is not longer, davit asks for watches that end before it. */
const bookmarkMs = 60_000;
/** How much longer than requested a watch may last. */
const overdueMs = 30_000;
/** A watch that ends sooner, without an event, did not work. client-go calls it a "very short watch". */
const shortWatchMs = 1_000;
/** davit lists everything again after one to two times this duration, in case of errors that nobody foresaw. */
const relistMs = 30 * 60_000;
/** How often the log repeats a lasting failure. */
const remindMs = 10 * 60_000;

export class ObjectWatch<Value> {
  readonly #options: ObjectWatchOptions<Value>;
  readonly #mirror: Mirror<Value>;
  readonly #past: PastLists;
  readonly #delays: RetryDelays;
  /** Delays after an expired history. The API server works when it answers 410, so other failures do not count here. */
  readonly #expiryDelays: RetryDelays;
  readonly #stopping = new AbortController();
  /** Ends the running watch or delay, so that the list begins immediately. */
  #listNow = new AbortController();
  /** Where the next watch begins; undefined when a list must come first. */
  #version: string | undefined;
  /** The version that was seen last. A gap clears `#version`, but does not clear this one. */
  newestVersion: string | undefined;
  #relistAtMs = Number.POSITIVE_INFINITY;
  #isSynced = false;
  #isConnected = false;
  #isOpened = false;
  #isRefused = false;
  #heardAtMs: number;
  #provenAtMs = Number.NEGATIVE_INFINITY;
  /** Monotonic: when the API server was last heard before the current failure. */
  #goneAtMs: number | undefined;
  #loggedAtMs = 0;
  #isEmptied = false;
  #lastFailure = "";
  /** The current or last request to the API server. */
  #verb: "list" | "watch" = "list";
  #running: Promise<void> = Promise.resolve();

  constructor(options: ObjectWatchOptions<Value>) {
    this.#options = options;
    this.#mirror = new Mirror(options.read);
    this.#past = new PastLists(options);
    this.#delays = new RetryDelays(options);
    this.#expiryDelays = new RetryDelays(options);
    this.#heardAtMs = options.clock.monotonicMs();
  }

  /** True when at least one whole list was read. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Monotonic: when the API server was last heard; before the first time, when this watch was made. */
  get heardAtMs(): number {
    return this.#heardAtMs;
  }

  /** Monotonic: listeners know the API server's state at this time, or a later one. Undefined before the first list. */
  get provenAtMs(): number | undefined {
    return this.#isSynced ? this.#provenAtMs : undefined;
  }

  /** True when the API server's last answer was that davit may not read this resource. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  get(namespace: string, name: string): MirroredObject<Value> | undefined {
    return this.#mirror.get(namespace, name);
  }

  all(): Iterable<MirroredObject<Value>> {
    return this.#mirror.all();
  }

  start(): void {
    this.#running = this.#run();
  }

  /**
   * Asks the API server for a proof, unless there was a list a moment ago. davit lists everything again if the API
   * server went back to an older state, and if a second question in a row proves nothing.
   * @param proveMs the time between two questions. One takes as long at most, or five seconds if this is shorter.
   */
  async prove(proveMs: number): Promise<void> {
    const { clock } = this.#options;
    const atMs = clock.monotonicMs();
    const ageMs = atMs - (this.provenAtMs ?? atMs);
    if (!this.#isConnected || ageMs < proveMs / 4) return;
    const proof = await this.#askForProof(proveMs);
    if (!this.#isConnected || this.#stopping.signal.aborted || proof === undefined) return;
    if (proof === "rewound") this.#beginAnew();
    else if (proof === "proven" || ageMs < 1.25 * proveMs || this.#provenAtMs > atMs) return;
    else this.#options.metrics.watchRestarts.inc({ reason: "unproven" });
    this.relist();
  }

  /** Asks the API server once, for 6 s at most, for a proof that listeners know its state of now. */
  async proveNow(): Promise<void> {
    if (this.#isConnected) await this.#askForProof(6_000, presetPageSize);
  }

  /** @returns undefined without an answer. If the API server is away, the watch fails, too, and reports the reason. */
  async #askForProof(proveMs: number, limit = 1): Promise<Proof | undefined> {
    const { client, target, clock, limits } = this.#options;
    const lookSeconds = lookSecondsFor(proveMs);
    const atMs = clock.monotonicMs();
    const deadline = new Deadline({ clock, durationMs: Math.max(proveMs, (lookSeconds + 2) * 1_000) });
    const signal = AbortSignal.any([this.#stopping.signal, deadline.signal]);
    try {
      const proof = await proofOf({
        client,
        clock,
        lookSeconds,
        request: (query) => requestFor({ ...target, metadataOnly: true }, query, signal),
        limit,
        delivered: () => this.newestVersion ?? "",
        holds: (objects) => this.#mirror.isEqual(objects),
        maxLineBytes: limits.maxLineBytes ?? presetMaxLineBytes,
      });
      // If the connection was lost meanwhile, a list follows.
      if (proof === "proven" && this.#isConnected) this.#provenAtMs = Math.max(atMs, this.#provenAtMs);
      return proof;
    } catch (error) {
      if (error instanceof ApiError || error instanceof WatchFailure) return undefined;
      throw error;
    } finally {
      deadline.cancel();
    }
  }

  /** Lists everything now. */
  relist(): void {
    this.#version = undefined;
    this.#listNow.abort();
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const stop = this.#stopping.signal;
    while (!stop.aborted) {
      this.#listNow = new AbortController();
      const signal = AbortSignal.any([stop, this.#listNow.signal]);
      try {
        if (this.#options.clock.monotonicMs() >= this.#relistAtMs) this.#version = undefined;
        this.#isOpened = false;
        if (this.#isSynced) this.#options.listener.opening?.();
        if (this.#version === undefined) await this.#list(signal);
        else await this.#watch(this.#version, signal);
      } catch (thrown) {
        if (!signal.aborted) await this.#options.clock.sleep(this.#failed(toWatchFailure(thrown)), signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#verb = "list";
    const { client, target, clock, random, metrics, limits, listener } = this.#options;
    const askedAtMs = clock.monotonicMs();
    const seenBefore = this.#past.newest;
    const list = await pagedList({
      client,
      request: requestFor(target, {}, signal),
      pageSize: limits.pageSize ?? presetPageSize,
      prepare: (object) => this.#mirror.prepareListed(object),
    });
    if (signal.aborted) return;
    metrics.relists.inc();
    this.#heardAtMs = clock.monotonicMs();
    this.#assertNotEmptied(list.items.length);
    this.#past.assertBelieved(list.resourceVersion, seenBefore);
    const changes = this.#mirror.replace(list.items);
    this.#isAt(list.resourceVersion);
    this.#provenAtMs = askedAtMs;
    this.#relistAtMs = clock.monotonicMs() + jittered(relistMs, random);
    this.#isSynced = true;
    if (changes.length > 0) listener.changed(changes);
    listener.listed();
  }

  /** Rejects the first empty list if davit holds objects: a server whose store is being restored may list none. */
  #assertNotEmptied(count: number): void {
    const isEmptied = count === 0 && this.#mirror.size > 0;
    const isConfirmed = this.#isEmptied;
    this.#isEmptied = isEmptied && !isConfirmed;
    if (this.#isEmptied) throw new WatchFailure("emptied", "every object is gone at once, waiting for a second list");
  }

  async #watch(version: string, signal: AbortSignal): Promise<void> {
    this.#verb = "watch";
    const { client, target, clock, limits } = this.#options;
    const { silenceMs } = limits;
    const seconds = this.#watchSeconds(silenceMs);
    const query = {
      watch: "1",
      allowWatchBookmarks: "true",
      resourceVersion: version,
      timeoutSeconds: String(seconds),
    };
    const startedMs = clock.monotonicMs();
    let hasEvents = false;
    const batches = watchEvents({
      client,
      request: requestFor(target, query, signal),
      clock,
      silenceMs,
      maxDurationMs: seconds * 1_000 + overdueMs,
      maxLineBytes: limits.maxLineBytes ?? presetMaxLineBytes,
      onHeard: () => this.#heard(),
    });
    for await (const events of batches) {
      // A chunk may still arrive after `stop` or `relist`.
      if (signal.aborted) return;
      hasEvents ||= events.some(({ kind }) => kind !== "bookmark");
      this.#take(events);
    }
    if (signal.aborted) return;
    const durationMs = clock.monotonicMs() - startedMs;
    // The API server may have ended the watch early because it stops. This counts as a gap.
    if (durationMs < seconds * 1_000) this.#beginAnew();
    if (!hasEvents && durationMs < shortWatchMs) {
      throw new WatchFailure("short", "the watch ended as soon as it had begun");
    }
  }

  #watchSeconds(silenceMs: number): number {
    if (silenceMs <= bookmarkMs) return Math.max(1, Math.floor((silenceMs * 0.8) / 1_000));
    return Math.floor(watchSeconds.min + this.#options.random() * watchSeconds.spread);
  }

  #take(events: readonly WatchEvent[]): void {
    const changes: MirrorChange[] = [];
    try {
      for (const event of events) changes.push(...this.#takeOne(event));
    } finally {
      if (changes.length > 0) this.#options.listener.changed(changes);
    }
  }

  #takeOne(event: WatchEvent): readonly MirrorChange[] {
    if (event.kind === "bookmark") {
      this.#isAt(event.resourceVersion);
      return [];
    }
    const meta = readMeta(event.object);
    const held = event.kind === "set" ? this.#mirror.prepare(event.object) : undefined;
    if (meta === undefined) throw new WatchFailure("protocol", "an event has no object");
    const change = held === undefined ? this.#mirror.drop(meta) : this.#mirror.put(held);
    this.#isAt(meta.resourceVersion);
    return change === undefined ? [] : [change];
  }

  /** Called after a gap: the next request is a list, and davit reads all of its objects again. */
  #beginAnew(): void {
    this.#version = undefined;
    this.#mirror.distrust();
  }

  #isAt(version: string): void {
    this.#version = version;
    this.newestVersion = version;
    this.#options.seen.note(this.#options.target.resource.plural, version);
  }

  #heard(): void {
    const { clock, log, target, listener } = this.#options;
    const awaySeconds = this.#awaySeconds;
    this.#heardAtMs = clock.monotonicMs();
    if (!this.#isOpened) listener.opened?.();
    this.#isOpened = true;
    if (this.#isConnected) return;
    if (this.#lastFailure !== "") log.info({ what: target.what, awaySeconds }, "the cluster answers again");
    this.#lastFailure = "";
    this.#goneAtMs = undefined;
    this.#isConnected = true;
    this.#isRefused = false;
    listener.connected?.(true);
  }

  /** Records a failure; any other error is logged as a bug. @returns the milliseconds until the next request. */
  #failed(thrown: unknown): number {
    const { log, target, metrics, listener } = this.#options;
    const isFailure = thrown instanceof WatchFailure;
    if (!isFailure) log.error({ err: thrown, what: target.what }, "following the cluster failed");
    const failure = isFailure ? thrown : new WatchFailure("protocol", "a bug", { cause: thrown });
    if (isGap(failure.reason)) this.#beginAnew();
    metrics.watchRestarts.inc({ reason: failure.reason });
    // The API server keeps a short history, so an expired version is normal, unless it repeats.
    const delays = failure.reason === "expired" ? this.#expiryDelays : this.#delays;
    const isNormal = failure.reason === "expired" && delays.isCalm;
    const nextMs = delays.next();
    if (isNormal) return 0;
    const text = failureText(failure, { ...target, verb: this.#verb });
    this.#goneAtMs ??= this.#heardAtMs;
    if (isFailure) this.#logFailure(failure, text);
    if (this.#isConnected) listener.connected?.(false);
    this.#isConnected = false;
    this.#isRefused = failure.reason === "refused";
    listener.failed?.(failure, text);
    return Math.max(nextMs, failure.retryAfterMs ?? 0);
  }

  /** Logs a new failure immediately, and a repeated one every ten minutes. */
  #logFailure({ reason, status }: WatchFailure, problem: string): void {
    const { clock, log, target } = this.#options;
    const what = `${reason} ${status}`;
    const nowMs = clock.monotonicMs();
    if (this.#lastFailure === what && nowMs - this.#loggedAtMs < remindMs) return;
    this.#lastFailure = what;
    this.#loggedAtMs = nowMs;
    const data = { what: target.what, reason, problem, awaySeconds: this.#awaySeconds };
    log.warn(data, "not following the cluster, what is known stays");
  }

  /** Time since the API server was last heard. */
  get #awaySeconds(): number {
    return Math.round((this.#options.clock.monotonicMs() - (this.#goneAtMs ?? this.#heardAtMs)) / 1_000);
  }
}
