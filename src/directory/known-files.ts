/**
 * The files that the directory source knows: which version of each was read, and whether all of it counts yet. A file
 * that is rewritten in place is half written for a while, and its first half may be a valid manifest.
 *
 *   - A version that is older than 2 s when it is first seen counts at once: a finished file was moved in.
 *   - Any other counts in full once its mtime is 2 s old and nothing about the file changed for 2 s, by a clock that
 *     never steps. Then its bytes are read once more, and must be the same.
 *   - If the file became smaller or lacks its final newline, that is 10 s.
 *   - A file that is gone counts as changed for 2 s: it may be about to be replaced.
 *
 * It does no I/O and reads no clock.
 */

import { compareBytes } from "../lib/order.ts";
import type { LookedFile } from "./holdings.ts";
import { isSameFile, type ListedFile, type Listing } from "./list-files.ts";
import type { ParsedFile, ParseRequest } from "./parse-worker.ts";
import type { Definition, ReadFile } from "./read-file.ts";

/** Both clocks at one moment. */
export interface Moment {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

// Writers need a moment: what was changing at one listing is read when the next one finds it as it was.
export const pauseMs = 100;
const settleMs = 2_000;
const unfinishedSettleMs = 10_000;
// Files that were written together count together, as long as that keeps none of them for long.
const togetherMs = 500;
const maxOverdueMs = 2_000;
// A wall clock that runs at another pace than the monotonic one was set, and says nothing about a file's age.
const maxClockDriftMs = 1_000;

/** A file as the last listing had it. */
interface Sighting {
  readonly file: ListedFile;
  /** Monotonic time of the first listing that had this version. */
  readonly sinceMs: number;
  /** How old it was then, by the wall clock; 0 where that is not known. */
  readonly ageMs: number;
  readonly isSeenTwice: boolean;
}

/** A version that counted in full. */
interface Settled {
  readonly definitions: readonly Definition[];
  readonly file: ListedFile;
}

/** A file's newest version. */
interface KnownFile {
  /** Empty for one that could not be read, which is tried again. */
  readonly signature: string;
  readonly digest: string;
  readonly read: ReadFile;
  /** The last version that counted in full; this one, if `isSettled`. */
  readonly settled: Settled | undefined;
  readonly isSettled: boolean;
  /** Why it has to be at rest for longer than others. */
  readonly unfinished?: Unfinished | undefined;
  /** Monotonic time at which it was found to be gone. */
  readonly goneMs?: number;
}

export type Unfinished = "shrank" | "unended";

const nothing: ReadFile = { definitions: [], problems: [], ignored: [] };

export class KnownFiles {
  #files = new Map<string, KnownFile>();
  #sightings: ReadonlyMap<string, Sighting> = new Map();
  #clockOffsetMs: number | undefined;

  /** Takes in a listing. What cannot be looked at keeps all that was known below it. */
  see({ files, unreadable }: Listing, { nowMs, monotonicMs }: Moment): void {
    const offsetMs = nowMs - monotonicMs;
    const isSteady = Math.abs(offsetMs - (this.#clockOffsetMs ?? offsetMs)) < maxClockDriftMs;
    this.#clockOffsetMs = offsetMs;
    const before = this.#sightings;
    const sightings = files.map((file): [string, Sighting] => {
      const last = before.get(file.path);
      if (last?.file.signature === file.signature) return [file.path, { ...last, isSeenTwice: true }];
      const ageMs = isSteady ? nowMs - file.modifiedMs : 0;
      return [file.path, { file, sinceMs: monotonicMs, ageMs, isSeenTwice: false }];
    });
    const seen = new Map(sightings);
    const isLost = (path: string) => unreadable.some((lost) => path === lost || path.startsWith(`${lost}/`));
    for (const [path, sighting] of before) if (!seen.has(path) && isLost(path)) seen.set(path, sighting);
    this.#sightings = seen;
    for (const [path, known] of this.#files) if (!seen.has(path)) this.#lose(path, known, monotonicMs);
  }

  /** What has to be read now: changed files that rest, and those of which all is about to count. */
  due(moment: Moment): readonly ParseRequest[] {
    const isWave = this.#isWave(moment);
    return [...this.#sightings].flatMap(([path, { file, isSeenTwice }]) => {
      const known = this.#files.get(path);
      if (known?.signature !== file.signature) return isSeenTwice ? [file] : [];
      const isDue = isWave && !known.isSettled && this.#leftMs(path, known, moment) <= 0;
      return isDue ? [{ ...file, knownDigest: known.digest }] : [];
    });
  }

  /**
   * Takes in what was read.
   * @returns `missed` for bytes of another version than the one listed: the next look sees that version, too, and reads
   *   it at rest.
   */
  take(request: ParseRequest, parsed: ParsedFile, moment: Moment): "missed" | "unchanged" | KnownVersion {
    const { path, knownDigest } = request;
    const { signature, digest, isUnchanged, ...read } = parsed;
    if (signature !== undefined && signature !== request.signature) return "missed";
    const before = this.#files.get(path);
    if (isUnchanged === true && before !== undefined) {
      this.#files.set(path, settle(before, request));
      return "unchanged";
    }
    // Other bytes under the same times: a write within one tick of the file system's clock.
    if (knownDigest !== undefined) this.#beginAnew(path, moment);
    const unfinished = this.#unfinished(request, read, before?.settled);
    const known: KnownFile = {
      signature: signature ?? "",
      digest,
      read,
      settled: before?.settled,
      isSettled: false,
      unfinished,
    };
    const counts = signature === undefined || this.#leftMs(path, known, moment) <= 0;
    this.#files.set(path, counts ? settle(known, request) : known);
    return { before: before?.read, unfinished: counts ? undefined : unfinished };
  }

  /** Every file, in byte order of its path. */
  get looked(): readonly LookedFile[] {
    const sorted = [...this.#files].toSorted(([a], [b]) => compareBytes(a, b));
    return sorted.map(([, { read, isSettled, settled }]) =>
      isSettled ? read : { ...read, before: settled?.definitions ?? [] },
    );
  }

  /** After how many milliseconds the next file has to be read; undefined when all of every file counts. */
  waitMs(moment: Moment): number | undefined {
    if (this.#isChanging()) return pauseMs;
    const left = this.#unsettled(moment);
    if (left.length === 0) return undefined;
    return Math.ceil(left.reduce((least, leftMs) => Math.min(least, Math.max(leftMs, pauseMs)), unfinishedSettleMs));
  }

  /** True while a listed version was not read. One that cannot be read changes nothing, and is tried again now and then. */
  #isChanging(): boolean {
    return [...this.#sightings].some(([path, { file }]) => {
      const signature = this.#files.get(path)?.signature;
      return signature !== file.signature && signature !== "";
    });
  }

  #lose(path: string, known: KnownFile, monotonicMs: number): void {
    const goneMs = known.goneMs ?? monotonicMs;
    if (monotonicMs - goneMs >= settleMs) this.#files.delete(path);
    else this.#files.set(path, { ...known, signature: "gone", read: nothing, isSettled: false, goneMs });
  }

  /** False while others that were written with those that are due are not, and none has waited for long. */
  #isWave(moment: Moment): boolean {
    const left = this.#unsettled(moment);
    const isNear = left.some((leftMs) => leftMs > 0 && leftMs <= togetherMs);
    return !isNear || left.some((leftMs) => leftMs < -maxOverdueMs);
  }

  /** How long each file that does not count yet still has to rest. */
  #unsettled(moment: Moment): readonly number[] {
    return [...this.#files].flatMap(([path, known]) => (known.isSettled ? [] : [this.#leftMs(path, known, moment)]));
  }

  /** How long a file still has to rest, zero or less when it is over. */
  #leftMs(path: string, known: KnownFile, { nowMs, monotonicMs }: Moment): number {
    if (known.goneMs !== undefined) return settleMs - (monotonicMs - known.goneMs);
    const sighting = this.#sightings.get(path);
    if (sighting === undefined) return settleMs;
    const restMs = known.unfinished === undefined ? settleMs : unfinishedSettleMs;
    if (sighting.ageMs >= restMs) return 0;
    const restedMs = monotonicMs - sighting.sinceMs;
    const ageMs = nowMs - sighting.file.modifiedMs;
    // A time in the future is another machine's, or from before the clock was set.
    return restMs - (ageMs < 0 ? restedMs : Math.min(restedMs, ageMs));
  }

  #beginAnew(path: string, { monotonicMs }: Moment): void {
    const sighting = this.#sightings.get(path);
    if (sighting === undefined) return;
    this.#sightings = new Map(this.#sightings).set(path, { ...sighting, sinceMs: monotonicMs, ageMs: 0 });
  }

  #unfinished(file: ListedFile, { advice = [] }: ReadFile, settled: Settled | undefined): Unfinished | undefined {
    if (advice.some(({ code }) => code === "unfinished-file")) return "unended";
    if (settled === undefined || file.sizeBytes >= settled.file.sizeBytes) return undefined;
    // A finished file that was moved here is another one.
    const isMovedIn = !isSameFile(file, settled.file) && (this.#sightings.get(file.path)?.ageMs ?? 0) >= settleMs;
    return isMovedIn ? undefined : "shrank";
  }
}

/** What came of a version that was read. */
export interface KnownVersion {
  readonly before: ReadFile | undefined;
  /** Set where the version counts later for it. */
  readonly unfinished: Unfinished | undefined;
}

/** All of a version counts. One that holds nothing but a problem takes nothing away. */
function settle(known: KnownFile, file: ListedFile): KnownFile {
  const { definitions, problems } = known.read;
  const isBroken = definitions.length === 0 && problems.length > 0;
  const settled = isBroken && known.settled !== undefined ? known.settled : { definitions, file };
  return { ...known, settled, isSettled: true };
}
