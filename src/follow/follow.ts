/**
 * Follows a store in another process over HTTP, for a boot service whose process has no store. The store may have
 * several members: the follower is at one of them, and goes on at the next one when that fails.
 *
 * A `StoreFollower` passes on the store's documents, in whole steps and in the store's order. It reconnects when the
 * connection ends or falls silent. While the store is away, it serves the last copy. It never replaces a copy by one
 * with less information (`copy.ts`), and never writes to the store.
 */

import { backoffMs, jittered } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { Deadline } from "../lib/deadline.ts";
import { assert } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { Suspensions } from "../lib/suspension.ts";
import { LineReader } from "../lib/text/line-reader.ts";
import type { DocumentChange, Feed, FeedListener } from "../model/feed.ts";
import { decodeFollowLine, type FollowLine, followPath } from "../model/follow-line.ts";
import { decodeGroup, groupsRoot, profilesRoot } from "../model/objects/documents.ts";
import { FollowedCopy, isSynced, type LineEffect } from "./copy.ts";
import type { CopyFile } from "./copy-file.ts";
import { FollowError } from "./follow-error.ts";
import { StoreClock } from "./store-clock.ts";
import { readStore, type StoreCredentials } from "./store-request.ts";

export interface StoreFollowerOptions {
  /** Of the store's members; at least one. */
  readonly urls: readonly URL[];
  /** The route that is followed: `followPath` for the store's documents, unless given. */
  readonly path?: string;
  /**
   * With several members: the longest time without a proof that a member's state matches the source. After that, the
   * follower goes on at the next member. 48,000 unless given.
   */
  readonly unprovenMs?: number | undefined;
  /** Reads the credentials before each connection. An error fails only that attempt. */
  readonly credentials: () => Promise<StoreCredentials>;
  readonly copyFile?: CopyFile | undefined;
  /** What the follower calls itself, for the people who look at the store's davit. */
  readonly name?: string | undefined;
  readonly clock: Clock;
  /** Returns a random number from 0 to below 1, uniformly distributed. */
  readonly random: () => number;
  readonly log: Log;
  readonly limits?: { readonly silenceMs?: number; readonly maxLineBytes?: number };
}

/** The follower's state, for metrics and for people. */
interface FollowStatus {
  readonly isConnected: boolean;
  /** True while the store has less information than the served copy, which then stays in use (`copy.ts`). */
  readonly isWithheld: boolean;
  /** The index of the served copy; undefined before there is one. */
  readonly index: number | undefined;
  /** Time since the served copy last equalled the store; undefined if it never did. */
  readonly ageSeconds: number | undefined;
  /**
   * A monotonic time: the served copy includes everything that the store's source had reported up to then. It is
   * undefined while `isWithheld`, and until this process has received a proof for the served copy.
   */
  readonly provenAtMs: number | undefined;
}

interface Listening {
  readonly prefix: string;
  readonly listener: FeedListener;
}

/** The time of three heartbeats. */
const presetSilenceMs = 30_000;
/**
 * The longest time to open a connection. In a cluster, a name may resolve to the address of a removed pod for some
 * seconds. The removed pod never answers, but a retry may get the address of another pod.
 */
const connectMs = 5_000;
/** Longer than a proof takes with the presets of davit serve (`app/core/signs-of-life.ts`). */
const presetUnprovenMs = 48_000;
/**
 * The longest line that the follower takes. The templates of a Profile have at most 4 MiB together. They are encoded as
 * JSON twice, first in the document and then in the line, which makes seven bytes of one byte at most: 28 MiB. The
 * other fields of an object take 3 MiB at most, which is the limit of the API server: 21 MiB.
 */
const presetMaxLineBytes = 64 * 1024 * 1024;
/** After one to two times this duration a new connection replaces one that works, to measure the store's clock anew. */
const renewMs = 15 * 60_000;
/**
 * The waits are short, because a restarted store is back within seconds. `jittered` adds a random part of up to the
 * same length. So a wait is at most 5 s, and followers do not all return at the same moment.
 */
const retries = { firstMs: 125, capMs: 2_500 };

export class StoreFollower implements Feed {
  readonly #options: StoreFollowerOptions;
  readonly #listeners = new Set<Listening>();
  readonly #stopping = new AbortController();
  readonly #heard = Promise.withResolvers<void>();
  #copy = new FollowedCopy();
  #following: Promise<void> | undefined;
  #isConnected = false;
  /** Monotonic; when the served copy last equalled the store. */
  #currentAtMs: number | undefined;
  #provenAtMs: number | undefined;
  #askedAtMs = 0;
  #storeClock: StoreClock | undefined;
  readonly #suspensions: Suspensions;
  /** The value of `Suspensions.missedMs` when the store was asked. */
  #missedMs = 0;
  /** Ends the connection, so that a new one measures the store's clock. */
  #renewal = new AbortController();
  #attempt = 0;
  /** Index of the member that is asked. */
  #at: number;
  /**
   * True after an unexpected error. The listeners' state may then differ from the copy, so the next request asks for
   * everything.
   */
  #isDoubtful = false;
  /** Failures since the served copy last equalled the store: each is logged once. */
  readonly #failures = new Set<string>();

  constructor(options: StoreFollowerOptions) {
    this.#options = options;
    this.#suspensions = new Suspensions(options.clock);
    // Followers of one store spread over its members.
    this.#at = Math.floor(options.random() * options.urls.length);
  }

  /**
   * Resolves the first time after `start` that the served copy equals the store. A copy without the document of a sync
   * does not count, because machines may not be answered from it.
   */
  get heard(): Promise<void> {
    return this.#heard.promise;
  }

  get status(): FollowStatus {
    const sinceMs = this.#currentAtMs === undefined ? undefined : this.#options.clock.monotonicMs() - this.#currentAtMs;
    return {
      isConnected: this.#isConnected,
      isWithheld: this.#copy.isWithheld,
      index: this.#copy.served?.index,
      ageSeconds: sinceMs === undefined ? undefined : sinceMs / 1000,
      provenAtMs: this.#copy.isWithheld ? undefined : this.#provenAtMs,
    };
  }

  /** Loads the copy on disk, if there is one, and begins to follow the store. */
  async start(): Promise<void> {
    const { copyFile, clock, log } = this.#options;
    const saved = await copyFile?.load();
    if (saved !== undefined) {
      this.#copy = new FollowedCopy(saved);
      // If the wall clock was set back since the copy was saved, the copy counts as saved now.
      this.#currentAtMs = clock.monotonicMs() - Math.max(0, clock.nowMs() - saved.savedAtMs);
      log.info({ index: saved.index, documents: saved.documents.size }, "copy on disk read");
      this.#notifyReplaced();
    }
    this.#following = this.#followForEver();
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
    await this.#options.copyFile?.stop();
  }

  follow(prefix: string, listener: FeedListener): () => void {
    const listening = { prefix, listener };
    this.#listeners.add(listening);
    listener.replaced(this.#documentsBelow(prefix));
    return () => this.#listeners.delete(listening);
  }

  async #followForEver(): Promise<void> {
    const { clock, random, urls } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const hasFailed = await this.#followOnce();
      this.#isConnected = false;
      if (hasFailed) this.#at = (this.#at + 1) % urls.length;
      // The waits grow once every member has failed.
      const waitMs = jittered(backoffMs(Math.floor(this.#attempt / urls.length), retries), random);
      this.#attempt += 1;
      await clock.sleep(waitMs, signal);
    }
  }

  get #url(): URL {
    const url = this.#options.urls[this.#at];
    assert(url !== undefined, "A follower has a store");
    return url;
  }

  /** @returns true if the connection failed. */
  async #followOnce(): Promise<boolean> {
    const { clock, random, limits = {} } = this.#options;
    const { silenceMs = presetSilenceMs, maxLineBytes = presetMaxLineBytes } = limits;
    const refuse = (detail: string, cause: unknown) => new FollowError("protocol", detail, { cause });
    const lines = new LineReader({ maxLineBytes, refuse });
    this.#renewal = new AbortController();
    const renewal = new Deadline({ clock, durationMs: jittered(renewMs, random) });
    const signal = AbortSignal.any([this.#stopping.signal, renewal.signal, this.#renewal.signal]);
    this.#copy.begin();
    this.#storeClock = undefined;
    const connected = () => {
      this.#askedAtMs = clock.monotonicMs();
      this.#missedMs = this.#suspensions.missedMs;
    };
    try {
      const credentials = await this.#credentials();
      const asked = { target: this.#target, credentials, clock, silenceMs, connectMs, signal, connected };
      for await (const chunk of readStore(asked)) for (const line of lines.push(chunk)) this.#takeLine(line);
      throw new FollowError("ended");
    } catch (error) {
      if (signal.aborted) return false;
      this.#logFailure(error);
      return true;
    } finally {
      renewal.cancel();
    }
  }

  /** The route of the member that is asked, with the place up to which the follower has the store's history. */
  get #target(): URL {
    const { path = followPath, name } = this.#options;
    const { place } = this.#copy;
    const query = new URLSearchParams(place && { cluster: place.cluster, after: String(place.index) });
    // Without a run, the store sends everything. A member of the store that is behind the index catches up first.
    if (place?.run !== undefined && !this.#isDoubtful) query.set("run", place.run);
    if (name !== undefined) query.set("name", name);
    return new URL(`${path}?${query}`, this.#url);
  }

  async #credentials(): Promise<StoreCredentials> {
    try {
      return await this.#options.credentials();
    } catch (error) {
      throw new FollowError("credentials", undefined, { cause: error });
    }
  }

  #takeLine(text: string): void {
    const line = decodeFollowLine(text);
    if (line === undefined) throw new FollowError("protocol", "a line is not of this protocol");
    const effect = this.#copy.take(line);
    // A proof is valid only for the copy to which it belongs.
    if (effect.kind === "replaced") this.#provenAtMs = undefined;
    this.#takeTimes(line);
    if (effect.kind === "none") return;
    if (!this.#isConnected) {
      const { place } = this.#copy;
      this.#options.log.info({ store: this.#url.origin, index: place?.index }, "following the store");
    }
    this.#isConnected = true;
    if (effect.kind !== "withheld") this.#failures.clear();
    // The store sends a heartbeat only to a follower that has caught up. A follower that is too slow gets none before
    // the store disconnects it, so its waits grow with each attempt.
    if (line.kind === "heartbeat") this.#attempt = 0;
    this.#apply(effect);
    this.#refuseUnproven();
  }

  /** @throws {FollowError} silent, where another member may know more: this one may be cut off from the others. */
  #refuseUnproven(): void {
    const { urls, clock, unprovenMs = presetUnprovenMs } = this.#options;
    const lastMs = Math.max(this.#askedAtMs, this.#provenAtMs ?? this.#askedAtMs);
    if (urls.length > 1 && clock.monotonicMs() - lastMs > unprovenMs) {
      throw new FollowError("silent", "no sign of life from its source");
    }
  }

  #takeTimes(line: FollowLine): void {
    if (!("nowMs" in line) || line.nowMs === undefined) return;
    if (this.#suspensions.missedMs !== this.#missedMs) {
      // A line from before may arrive now. The estimate of the store's clock no longer shows how old it is.
      this.#renewal.abort();
      return;
    }
    if (line.kind !== "heartbeat") {
      this.#storeClock = new StoreClock(this.#askedAtMs, line.nowMs);
      return;
    }
    const storeClock = this.#storeClock;
    storeClock?.hear(line.nowMs, this.#options.clock.monotonicMs());
    if (storeClock === undefined || line.provenMs === undefined || this.#copy.isWithheld) return;
    this.#provenAtMs = Math.max(storeClock.localTime(line.provenMs), this.#provenAtMs ?? Number.NEGATIVE_INFINITY);
  }

  #apply(effect: Exclude<LineEffect, { kind: "none" }>): void {
    if (effect.kind === "withheld") {
      this.#logWithheld();
      return;
    }
    if (effect.kind === "replaced") {
      this.#notifyReplaced();
      this.#isDoubtful = false;
    }
    if (effect.kind === "changed") this.#notifyChanged(effect.changes);
    this.#currentAtMs = this.#options.clock.monotonicMs();
    const { served } = this.#copy;
    if (served === undefined || !isSynced(served)) return;
    this.#heard.resolve();
    if (effect.kind !== "current") this.#options.copyFile?.keep(served, isUrgent(effect));
  }

  #notifyReplaced(): void {
    for (const { prefix, listener } of this.#listeners) listener.replaced(this.#documentsBelow(prefix));
  }

  #notifyChanged(changes: readonly DocumentChange[]): void {
    for (const { prefix, listener } of this.#listeners) {
      const below = changes.filter(({ path }) => isAtOrBelow(path, prefix));
      if (below.length > 0) listener.changed(below);
    }
  }

  *#documentsBelow(prefix: string): Iterable<readonly [path: string, text: string]> {
    for (const document of this.#copy.served?.documents ?? []) if (isAtOrBelow(document[0], prefix)) yield document;
  }

  #logWithheld(): void {
    this.#logOnce("withheld", () =>
      this.#options.log.warn({}, "the store has not read everything from its source, the last copy stays until it has"),
    );
  }

  /**
   * Logs why a connection ended. An error that is no `FollowError` is a bug. After a bug, the next request asks for
   * everything.
   */
  #logFailure(error: unknown): void {
    const { log } = this.#options;
    if (!(error instanceof FollowError)) {
      this.#isDoubtful = true;
      log.error({ err: error }, "following failed");
      return;
    }
    const { reason, detail, cause } = error;
    const why = reason === "credentials" && cause instanceof Error ? cause.message : detail;
    const store = this.#url.origin;
    this.#logOnce(`${store} ${reason} ${why}`, () =>
      log.warn(
        { store, reason, why, problem: error.message },
        this.#copy.served === undefined
          ? "not following the store"
          : "not following the store, the last copy is served",
      ),
    );
  }

  #logOnce(what: string, write: () => void): void {
    if (this.#failures.has(what)) return;
    this.#failures.add(what);
    write();
  }
}

/**
 * True if the copy must be saved without a pause. Otherwise a restart could serve the older copy on disk, and install a
 * machine by mistake. This is so if another copy is served now, if a Profile changed, or if a Group is held or removed.
 */
function isUrgent(effect: Exclude<LineEffect, { kind: "none" }>): boolean {
  if (effect.kind !== "changed") return effect.kind === "replaced";
  return effect.changes.some(({ path, text }) => {
    if (isAtOrBelow(path, profilesRoot)) return true;
    return isAtOrBelow(path, groupsRoot) && (text === undefined || decodeGroup(text)?.spec.hold === true);
  });
}

function isAtOrBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}
