/**
 * The answers to followers. Each starts with a dump or at a position in the history. It then sends every later step
 * until the follower disconnects. For a slow follower davit keeps only its position. davit disconnects a follower if
 * the history has dropped its next step, or if the follower takes nothing for three heartbeats. The follower then
 * reconnects.
 */

import type { ServerResponse } from "node:http";
import type { Clock } from "../../lib/clock.ts";
import { encodeFollowLine, type FollowPlace, heartbeatMs } from "../../model/follow-line.ts";
import { davitRoot } from "../../model/objects/documents.ts";
import type { Store } from "../../store/store.ts";
import { FollowHistory, type FollowHistoryOptions } from "./follow-history.ts";

/** What a follower already has. */
export interface FollowRequest {
  /** The cluster whose documents the follower has; empty if it has none. */
  readonly cluster: string;
  readonly after: FollowPlace | undefined;
  /** What the follower calls itself. */
  readonly name?: string | undefined;
}

export interface FollowStreamsOptions {
  readonly store: Store;
  readonly clock: Clock;
  /**
   * Returns the last time on the monotonic clock when the store was complete: it had everything that the source had
   * reported. Undefined until davit has heard the source.
   */
  readonly provenAtMs: () => number | undefined;
  /** How often a follower gets a heartbeat; `heartbeatMs` unless given. */
  readonly beatMs?: number | undefined;
  readonly history?: FollowHistoryOptions;
  readonly maxFollowers?: number;
}

interface FollowStream {
  readonly name: string | undefined;
  readonly address: string | undefined;
  readonly sinceMs: number;
  readonly response: ServerResponse;
  /** The rest of the dump; undefined when all of it is written. */
  dump: Iterator<string> | undefined;
  /** The position of the next step in the history. */
  position: number;
  /** False while the follower has not taken what was written. */
  isFlowing: boolean;
  /** How many heartbeats in a row were due while the stream did not flow. */
  missedBeats: number;
}

// Enough for one boot replica in every rack of a large hall. Each follower costs a socket and a position.
const presetMaxFollowers = 256;
const maxMissedBeats = 3;

export class FollowStreams {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #provenAtMs: FollowStreamsOptions["provenAtMs"];
  readonly #beatMs: number;
  readonly #maxFollowers: number;
  readonly #history: FollowHistory;
  readonly #streams = new Set<FollowStream>();
  readonly #stopping = new AbortController();
  readonly #unfollow: () => void;

  constructor(options: FollowStreamsOptions) {
    const { store, clock, provenAtMs, beatMs = heartbeatMs, history, maxFollowers = presetMaxFollowers } = options;
    this.#store = store;
    this.#clock = clock;
    this.#provenAtMs = provenAtMs;
    this.#beatMs = beatMs;
    this.#maxFollowers = maxFollowers;
    this.#history = new FollowHistory(this.#place, history);
    this.#unfollow = store.follow(davitRoot, {
      replaced: (documents) => {
        this.#history.replaced(documents, this.#place);
        // Ends every stream: its follower lacks changes that the history does not have.
        for (const stream of this.#streams) this.#pump(stream);
      },
      changed: (changes, index) => {
        this.#history.changed(changes, { index, run: store.run });
        for (const stream of this.#streams) this.#pump(stream);
      },
    });
    void this.#beat();
  }

  /** How many followers are connected. */
  get count(): number {
    return this.#streams.size;
  }

  /** The followers that are connected, the longest first. */
  get followers() {
    return [...this.#streams].map(({ name, address, sinceMs, dump, position, isFlowing }) => {
      const behind = dump === undefined ? this.#history.end - position : undefined;
      return { name, address, sinceMs, behind, isReading: isFlowing };
    });
  }

  /** True when one more would be too many. */
  get isFull(): boolean {
    return this.#streams.size >= this.#maxFollowers;
  }

  /** True for a follower that has changes of this cluster that the store does not have yet. */
  isBehind({ cluster, after }: FollowRequest): boolean {
    return cluster === this.#store.identity.clusterId && after !== undefined && after.index > this.#place.index;
  }

  /**
   * Answers with a stream that ends when the follower disconnects, or at `endAll`. The caller must have sent the head.
   */
  answer(response: ServerResponse, { cluster, after, name }: FollowRequest): void {
    if (response.destroyed) return;
    const { clusterId } = this.#store.identity;
    const now = this.#place;
    const isKnown = cluster === clusterId && after !== undefined;
    const resumed = isKnown ? this.#history.positionAfter(after, now) : undefined;
    const greeting = { cluster: clusterId, nowMs: this.#nowMs };
    const dump = resumed === undefined ? this.#history.dump(greeting, now) : undefined;
    const position = resumed ?? this.#history.end;
    const from = { name, address: response.socket?.remoteAddress, sinceMs: this.#clock.monotonicMs() };
    const stream: FollowStream = { ...from, response, dump, position, isFlowing: true, missedBeats: 0 };
    this.#streams.add(stream);
    response.on("close", () => this.#streams.delete(stream));
    response.on("drain", () => {
      stream.isFlowing = true;
      stream.missedBeats = 0;
      this.#pump(stream);
    });
    if (dump === undefined) this.#write(stream, encodeFollowLine({ kind: "resume", ...greeting }));
    this.#pump(stream);
    if (stream.isFlowing) this.#write(stream, this.#now());
    if (this.#stopping.signal.aborted) response.end();
  }

  /** Ends every answer. The followers reconnect. */
  endAll(): void {
    for (const { response } of this.#streams) response.end();
  }

  /** Ends every answer. From now on, a new answer ends as soon as it begins. Idempotent. */
  stop(): void {
    this.#stopping.abort();
    this.#unfollow();
    this.endAll();
  }

  /**
   * Writes until the follower's buffer is full, or nothing is left. Disconnects a follower whose next step was dropped.
   */
  #pump(stream: FollowStream): void {
    while (stream.isFlowing && !this.#history.isGone(stream.position)) {
      const text = this.#next(stream);
      if (text === undefined) return;
      this.#write(stream, text);
    }
    if (this.#history.isGone(stream.position)) stream.response.destroy();
  }

  #next(stream: FollowStream): string | undefined {
    const piece = stream.dump?.next();
    if (piece !== undefined && piece.done !== true) return piece.value;
    stream.dump = undefined;
    const lines = this.#history.linesAt(stream.position);
    if (lines !== undefined) stream.position += 1;
    return lines;
  }

  #write(stream: FollowStream, text: string): void {
    stream.isFlowing = stream.response.write(text);
  }

  async #beat(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await this.#clock.sleep(this.#beatMs, signal);
      if (signal.aborted) return;
      for (const stream of this.#streams) this.#beatOne(stream);
    }
  }

  #beatOne(stream: FollowStream): void {
    // A flowing stream has written every step up to now. So the heartbeat may carry the current index.
    if (stream.isFlowing) this.#write(stream, this.#now());
    else stream.missedBeats += 1;
    if (stream.missedBeats * this.#beatMs >= maxMissedBeats * heartbeatMs) stream.response.destroy();
  }

  #now(): string {
    const provenAtMs = this.#provenAtMs();
    const provenMs = provenAtMs === undefined ? undefined : Math.floor(provenAtMs);
    return encodeFollowLine({ kind: "heartbeat", ...this.#place, nowMs: this.#nowMs, provenMs });
  }

  get #nowMs(): number {
    return Math.ceil(this.#clock.monotonicMs());
  }

  get #place(): FollowPlace {
    return { index: this.#store.indexes.storeIndex, run: this.#store.run };
  }
}
