/**
 * The tracks of machines, or of addresses, in the order in which they were last seen: the one not seen for longest is
 * dropped first.
 */

import type { Ring } from "./request-rows.ts";

/** A machine that boots asks several times within this. */
const placeMs = 20_000;

export class Track<Own> {
  readonly key: string;
  readonly own: Own;
  readonly ring: Ring = { newest: 0, count: 0 };
  lastSeenMs = 0;
  /** When it got its place in the order of being seen. */
  placedMs = 0;
  /** False after it made room for another one. */
  isKept = true;
  /** Its neighbours in the order of being seen. */
  older: Track<Own> | undefined;
  newer: Track<Own> | undefined;

  constructor(key: string, own: Own) {
    this.key = key;
    this.own = own;
  }
}

export class Tracks<Own> {
  readonly #tracks = new Map<string, Track<Own>>();
  #oldest: Track<Own> | undefined;
  #newest: Track<Own> | undefined;

  get count(): number {
    return this.#tracks.size;
  }

  get oldest(): Track<Own> | undefined {
    return this.#oldest;
  }

  get(key: string): Track<Own> | undefined {
    return this.#tracks.get(key);
  }

  /** Adds a track as the one seen last. */
  add(track: Track<Own>, seenMs: number): Track<Own> {
    track.lastSeenMs = seenMs;
    track.placedMs = seenMs;
    this.#tracks.set(track.key, track);
    this.#append(track);
    return track;
  }

  /** Moves a track to those seen last; within the last seconds it keeps its place. */
  touch(track: Track<Own>, seenMs: number): void {
    track.lastSeenMs = seenMs;
    // Each move waits for the memory of three other tracks.
    if (seenMs - track.placedMs < placeMs) return;
    track.placedMs = seenMs;
    if (track === this.#newest) return;
    this.#unlink(track);
    this.#append(track);
  }

  delete(track: Track<Own>): void {
    track.isKept = false;
    this.#tracks.delete(track.key);
    this.#unlink(track);
  }

  /** In no order; others may be added, moved and deleted meanwhile. */
  all(): Iterable<Track<Own>> {
    return this.#tracks.values();
  }

  /** From the one seen last on. */
  *newestFirst(): Generator<Track<Own>> {
    for (let track = this.#newest; track !== undefined; track = track.older) yield track;
  }

  #append(track: Track<Own>): void {
    track.older = this.#newest;
    track.newer = undefined;
    if (this.#newest === undefined) this.#oldest = track;
    else this.#newest.newer = track;
    this.#newest = track;
  }

  #unlink({ older, newer }: Track<Own>): void {
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
  }
}
