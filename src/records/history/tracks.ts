/**
 * Keeps the tracks of machines or of addresses, in the order in which they were last seen. A track has the requests of
 * one machine or address, and further data about it.
 */

import type { Ring } from "./request-rows.ts";

/** A track moves in the order at most once in this time, because a booting machine sends several requests in it. */
const placeMs = 20_000;

export class Track<Own> {
  readonly key: string;
  readonly own: Own;
  readonly ring: Ring = { newest: 0, count: 0 };
  lastSeenMs = 0;
  /** When the track was last moved in the order. */
  placedMs = 0;
  /** False after the track was dropped. */
  isKept = true;
  /** The neighbours in the order. */
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

  /** Adds a track as the newest in the order. */
  add(track: Track<Own>, seenMs: number): Track<Own> {
    track.lastSeenMs = seenMs;
    track.placedMs = seenMs;
    this.#tracks.set(track.key, track);
    this.#append(track);
    return track;
  }

  /** Makes a track the newest in the order, unless it was moved within the last `placeMs`. */
  touch(track: Track<Own>, seenMs: number): void {
    track.lastSeenMs = Math.max(track.lastSeenMs, seenMs);
    // A move loads three other tracks from memory, which is slow.
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

  /** Returns all tracks in no particular order. Callers may add, move and delete tracks meanwhile. */
  all(): Iterable<Track<Own>> {
    return this.#tracks.values();
  }

  /** Yields all tracks, the last seen first. The order can be wrong by `placeMs` and by the delay of late requests. */
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
